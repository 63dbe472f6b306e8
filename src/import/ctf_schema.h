// SPDX-License-Identifier: Apache-2.0
//
// CtfSchema: what a CTF trace's metadata says about its binary streams, the
// same for version 1.8 (ctf_tsdl.h) and version 2 (ctf_json.h): field classes,
// stream and event classes, clocks, the environment. Field classes stand in one
// array and refer to each other by index; a class always comes after the ones
// it is made of, so there are no circles. Passive data; ctf_program.h turns it
// into programs that decode.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::import_ {

enum class CtfKind : uint8_t {
  kInteger,   // also enumerations and booleans; bits, align, is_signed, order
  kSkipped,   // floating point and what else is never looked at; bits, align
  kVarint,    // LEB128
  kString,    // up to a NUL
  kStruct,    // members
  kArray,     // element; length, or the field it is in
  kVariant,   // members are the options, one is chosen by a field
  kOptional,  // element, there or not by a field
};

enum class CtfOrder : uint8_t { kNative, kLittle, kBig };

// The part of a packet that a field or a reference starts from.
enum class CtfScope : uint8_t {
  kPacketHeader,
  kPacketContext,
  kEventHeader,
  kCommonContext,
  kEventContext,
  kPayload,
  kSearch,  // a reference without origin: the enclosing structures, outwards
};
inline constexpr size_t kCtfScopes = 6;

// Fields with a meaning for decoding itself. Version 2 says so, version 1.8 has
// names for them.
enum class CtfRole : uint8_t {
  kNone,
  kMagic,
  kStreamClassId,
  kStreamId,
  kBegin,
  kEnd,
  kContentSize,
  kPacketSize,
  kSequence,
  kDiscarded,
  kCpu,
  kEventId,
  kTimestamp,
};
inline constexpr size_t kCtfRoles = 13;

struct CtfRange {
  int64_t low = 0;
  int64_t high = 0;
};

struct CtfLabel {
  std::string name;
  CtfRange range;
};

struct CtfReference {
  CtfScope origin = CtfScope::kSearch;
  std::vector<std::string> path;
};

struct CtfMember {
  std::string name;
  uint32_t field = 0;
  std::vector<CtfRange> ranges = {};  // of an option; empty: by the selector's labels
};

struct CtfField {
  CtfKind kind = CtfKind::kInteger;
  CtfOrder order = CtfOrder::kNative;
  CtfRole role = CtfRole::kNone;
  bool is_signed = false;
  bool has_clock = false;  // its value is a time
  bool dynamic = false;    // array: the length is in another field
  bool reversed = false;   // bit order contrary to the byte order: not supported
  uint32_t bits = 0;
  uint32_t align = 1;  // in bits, a power of two; of a structure or array: at least
  uint32_t element = 0;
  uint64_t length = 0;
  CtfReference reference = {};
  std::vector<CtfMember> members = {};
  std::vector<CtfLabel> labels = {};
  std::vector<CtfRange> ranges = {};  // kOptional: when it is there; empty: if not zero
};

struct CtfClock {
  std::string name;
  uint64_t frequency = 1'000'000'000;
  int64_t offset_s = 0;
  int64_t offset_cycles = 0;
  bool is_wall = true;  // its origin is 1970
};

inline constexpr uint32_t kNoField = UINT32_MAX;

struct CtfEventClass {
  uint64_t id = 0;
  uint64_t stream_id = 0;
  std::string name;
  uint32_t context = kNoField;
  uint32_t payload = kNoField;
};

struct CtfStreamClass {
  uint64_t id = 0;
  uint32_t packet_context = kNoField;
  uint32_t event_header = kNoField;
  uint32_t event_context = kNoField;
  std::string clock;  // empty: the first
};

struct CtfSchema {
  int major = 1;
  bool big_endian = false;
  uint32_t packet_header = kNoField;
  std::vector<CtfField> fields;
  std::vector<CtfStreamClass> streams;
  std::vector<CtfEventClass> events;
  std::vector<CtfClock> clocks;
  std::map<std::string, std::string, std::less<>> environment;

  uint32_t Add(CtfField field) {
    fields.push_back(std::move(field));
    return static_cast<uint32_t>(fields.size() - 1);
  }
  bool HasEvent(std::string_view name) const {
    for (const CtfEventClass& event : events) {
      if (event.name == name) return true;
    }
    return false;
  }
};

// Beyond these a description is refused: no real one comes near.
inline constexpr size_t kMaxCtfFields = 2'000'000;
inline constexpr int kMaxCtfDepth = 32;
inline constexpr uint32_t kMaxCtfAlign = 1 << 16;

}  // namespace culprit::import_
