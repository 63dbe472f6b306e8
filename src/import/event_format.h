// SPDX-License-Identifier: Apache-2.0
//
// EventFormat: the kernel's own description of one tracepoint, as found under
// events/SYSTEM/NAME/format, in perf.data and in trace.dat:
//
//   name: sched_switch
//   ID: 314
//   format:
//     field:pid_t prev_pid;  offset:24;  size:4;  signed:1;
//     field:__data_loc char[] name;  offset:8;  size:4;  signed:0;
//   print fmt: "...", REC->...
//
// RecordView reads the fields of one record by such a description. Nothing of
// the record or the description is trusted: a field that does not lie inside
// the record reads as zero or as the empty text. Views point into the record.
// Parsing is linear in the text; reading a field is a bounds check and a load.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::import_ {

enum class ByteOrder : uint8_t { kLittle, kBig };

// The integer in the first `size` (1 to 8) bytes of `bytes`; zero if they are
// not there.
uint64_t LoadUnsigned(std::string_view bytes, size_t offset, size_t size, ByteOrder order);
int64_t LoadSigned(std::string_view bytes, size_t offset, size_t size, ByteOrder order);

struct EventField {
  enum class Place : uint8_t {
    kInline,    // at `offset`
    kDataLoc,   // `offset` holds length << 16 | offset in the record
    kRelative,  // the same, counted from the end of that word
  };

  std::string name;  // "prev_comm", without the array bounds
  std::string type;  // "unsigned long", "char[16]"
  uint32_t offset = 0;
  uint32_t size = 0;
  bool is_signed = false;
  bool is_array = false;
  Place place = Place::kInline;
};

struct EventFormat {
  std::string system;  // "sched", where the caller knows it
  std::string name;
  uint32_t id = 0;
  std::vector<EventField> fields;
  std::string print;  // what stands after "print fmt:"

  // nullptr: there is no such field.
  const EventField* Find(std::string_view field) const;
};

// Nothing if the text has no name, no ID or no field.
std::optional<EventFormat> ParseEventFormat(std::string_view text, std::string_view system = {});
// The "field:" lines alone, as in header_page.
std::vector<EventField> ParseFields(std::string_view text);

// What the bits of sched_switch's prev_state mean differs between kernels; the
// format's own print clause ({ 0x01, "S" }, ...) tells.
struct TaskStates {
  uint64_t blocked = 0xff;  // no bit of these set: the task is still runnable
  uint64_t dead = 0x30;     // any bit of these set: it will not run again

  static TaskStates FromPrint(std::string_view print);
};

class RecordView {
 public:
  RecordView(std::string_view bytes, ByteOrder order) : bytes_(bytes), order_(order) {}

  // All of these take nullptr for a field the format does not have.
  uint64_t Unsigned(const EventField* field) const;
  int64_t Signed(const EventField* field) const;
  // The bytes of an array, inline or dynamic. An inline array whose size is
  // not given reaches to the end of the record.
  std::string_view Array(const EventField* field) const;
  // The same up to the first NUL.
  std::string_view Text(const EventField* field) const;

  std::string_view bytes() const { return bytes_; }
  ByteOrder order() const { return order_; }

 private:
  std::string_view bytes_;
  ByteOrder order_;
};

}  // namespace culprit::import_
