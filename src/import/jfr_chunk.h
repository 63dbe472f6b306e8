// SPDX-License-Identifier: Apache-2.0
//
// A chunk of a Java Flight Recorder file: a recording complete in itself. A file
// is any number of them, one after the other.
//
//   chunk  = "FLR\0", major u16, minor u16, size u64, pool offset u64,
//            metadata offset u64, start ns u64, duration ns u64,
//            start ticks u64, ticks per second u64, features u32, { event }
//   event  = size int, class long, fields as the metadata describes
//   class 0: metadata, a tree of elements; class 1: entries of constant pools
//
// JfrSchema is what the metadata says: every class of events and values with its
// fields. JfrLayout picks the fields that somebody wants and knows how to pass
// over the rest. Nothing in the file is trusted; recursion, counts and lengths
// are bounded by the bytes there are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/jfr_reader.h"

namespace culprit::import_ {

inline constexpr std::string_view kJfrMagic("FLR\0", 4);
inline constexpr size_t kJfrHeadBytes = 68;
inline constexpr int64_t kJfrMetadataClass = 0;
inline constexpr int64_t kJfrPoolClass = 1;

struct JfrChunkHead {
  uint16_t major = 0;
  uint64_t size = 0;  // with the head; 0: still being written
  uint64_t metadata_offset = 0;
  int64_t start_ns = 0;  // since 1970
  int64_t dur_ns = 0;
  int64_t start_ticks = 0;
  int64_t ticks_per_second = 1;
  bool compressed = false;
};
// Nothing: no chunk begins here.
std::optional<JfrChunkHead> ReadJfrChunkHead(std::string_view bytes);

// One event of a chunk: its class and fields.
struct JfrEvent {
  int64_t class_id = 0;
  std::string_view fields;
  size_t offset = 0;  // in the chunk
};
// The event at `offset` of a chunk, and where the next one is; nothing at the
// end, or where no event fits.
std::optional<JfrEvent> ReadJfrEvent(std::string_view chunk, bool compressed, size_t& offset);

struct JfrField {
  std::string name;
  int64_t class_id = 0;
  bool pooled = false;
  bool array = false;
};

struct JfrClass {
  std::string name;
  std::vector<JfrField> fields;
};

class JfrSchema {
 public:
  // Adds what a metadata event says. False: it is damaged.
  bool Add(std::string_view fields, bool compressed);
  const JfrClass* Find(int64_t class_id) const;
  const std::unordered_map<int64_t, JfrClass>& classes() const { return classes_; }
  // Reads past one value. False: its class is not known, or too deep.
  bool SkipValue(JfrReader& reader, const JfrField& field, int depth = 0) const;
  bool SkipOne(JfrReader& reader, int64_t class_id, int depth) const;

 private:
  std::unordered_map<int64_t, JfrClass> classes_;
};

inline constexpr size_t kJfrSlots = 8;
struct JfrRow {
  std::array<int64_t, kJfrSlots> numbers = {};  // pooled values: the entry
  std::array<JfrString, kJfrSlots> strings;
  std::vector<int64_t> items;  // of the one array asked for, its first number each
};

// A field by name, and where it goes. An array of structures gives the number
// of the member `item`.
struct JfrWant {
  std::string_view field;
  size_t slot = 0;
  std::string_view item = {};
};

class JfrLayout {
 public:
  JfrLayout() = default;
  JfrLayout(const JfrSchema& schema, int64_t class_id, std::span<const JfrWant> wants);

  bool Has(size_t slot) const { return has_[slot]; }
  // False: the row is not whole.
  bool Read(JfrReader& reader, JfrRow& row) const;

 private:
  static constexpr size_t kNoSlot = SIZE_MAX;

  bool ReadField(JfrReader& reader, const JfrField& field, size_t slot, JfrRow& row) const;
  bool ReadItems(JfrReader& reader, const JfrField& field, JfrRow& row) const;

  const JfrSchema* schema_ = nullptr;
  const JfrClass* class_ = nullptr;
  std::vector<size_t> slots_;  // beside the fields of the class
  std::array<bool, kJfrSlots> has_ = {};
  std::string_view item_;
  size_t items_field_ = kNoSlot;
};

}  // namespace culprit::import_
