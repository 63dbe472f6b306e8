// SPDX-License-Identifier: Apache-2.0
//
// EtlEvent: one record of an ETW buffer, whichever of the headers it has, and
// EtlWalk, which goes through the records of a buffer. Kernel events come with
// the compact headers of the kernel logger or, in files that were written anew
// by a tool, under the GUID of their class: both give the same code.
//
// Views point into the buffer. A record whose length cannot be ends the walk:
// what follows it cannot be found. No allocation.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "import/etl_layout.h"

namespace culprit::import_ {

struct EtlEvent {
  uint64_t time = 0;  // ticks of the file's clock
  uint32_t tid = kEtlNoId;
  uint32_t pid = kEtlNoId;
  EtlProvider provider = EtlProvider::kOther;
  uint16_t code = 0;  // EtlKernelCode, or the opcode or id
  uint8_t version = 0;
  uint8_t pointer_bytes = 8;
  uint16_t cpu = 0;
  size_t position = 0;  // in the buffer's records
  std::string_view data;
};

// Reads the fields of an event's data.
class EtlFields {
 public:
  explicit EtlFields(const EtlEvent& event)
      : reader_(event.data), pointer_bytes_(event.pointer_bytes) {}

  ByteReader& reader() { return reader_; }
  uint64_t Pointer() { return pointer_bytes_ == 4 ? reader_.U32() : reader_.U64(); }
  uint8_t U8() { return reader_.U8(); }
  uint16_t U16() { return reader_.U16(); }
  uint32_t U32() { return reader_.U32(); }
  uint64_t U64() { return reader_.U64(); }
  void Skip(size_t bytes) { reader_.Bytes(bytes); }
  void SkipPointers(size_t count) { reader_.Bytes(count * pointer_bytes_); }
  // A security identifier with the two pointers before it, or four zero bytes.
  void SkipUser();
  size_t pointer_bytes() const { return pointer_bytes_; }
  bool failed() const { return reader_.failed(); }

 private:
  ByteReader reader_;
  size_t pointer_bytes_;
};

class EtlWalk {
 public:
  EtlWalk(std::string_view records, uint16_t cpu) : records_(records), cpu_(cpu) {}

  // False at the end of the buffer.
  bool Next(EtlEvent& event);
  // The walk ended at a record that cannot be.
  bool damaged() const { return damaged_; }
  size_t position() const { return position_; }

 private:
  // The length of the record; 0: it cannot be.
  size_t ParseRecord(std::string_view record, EtlEvent& event) const;
  size_t ParseKernel(std::string_view record, EtlEvent& event) const;
  size_t ParseFull(std::string_view record, EtlEvent& event) const;
  size_t ParseEventHeader(std::string_view record, EtlEvent& event) const;

  std::string_view records_;
  uint16_t cpu_;
  size_t position_ = 0;
  bool damaged_ = false;
};

}  // namespace culprit::import_
