// SPDX-License-Identifier: Apache-2.0
//
// CtfProgram: a piece of a CTF packet (packet header and context, an event's
// header, an event's contexts and payload) compiled to a flat list of
// operations, run by a CtfMachine. Fields nobody asked for melt into single
// skips wherever their size and alignment are known beforehand, so most events
// take a handful of operations. What is kept: the fields with a role, fields
// asked for by name, and integers that a later variant, array or optional field
// looks at.
//
// Running never reads outside of the given bits, never allocates, and ends after
// at most as many steps as there are bits times the operations of a loop's body.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "import/ctf_schema.h"

namespace culprit::import_ {

// A field that was kept. Integers fill `number` (sign-extended); strings and
// arrays of whole-byte integers fill `bytes`, arrays also `number` with their
// count and what an element is.
struct CtfValue {
  uint64_t number = 0;
  std::string_view bytes = {};
  uint8_t element_bits = 0;
  bool big_endian = false;
  bool seen = false;
};

// Where roles, then the fields asked for, are kept.
inline constexpr size_t kCtfWants = 24;
inline constexpr size_t kCtfValues = kCtfRoles + kCtfWants;

struct CtfOp {
  enum class Kind : uint8_t {
    kSkip,     // `count` bits
    kAlign,    // to `count` bits
    kInteger,  // of `bits`
    kVarint,
    kString,
    kBlock,   // `count` elements of `bits` each, one after the other
    kLoop,    // `count` times up to `target`
    kSwitch,  // by register to a case, else to `target`
    kJump,    // to `target`
    kImpossible,
  };
  static constexpr uint16_t kNone = UINT16_MAX;

  Kind kind = Kind::kSkip;
  bool is_signed = false;
  bool big_endian = false;
  bool is_time = false;      // moves the clock
  uint16_t value = kNone;    // keep in values[value]
  uint16_t save = kNone;     // keep in registers[save]
  uint16_t counter = kNone;  // kBlock, kLoop, kSwitch: this register instead of `count`
  uint32_t bits = 0;
  uint32_t target = 0;
  uint64_t count = 0;  // kSwitch: first case in the low half, how many in the high half
};

struct CtfCase {
  CtfRange range;
  uint32_t target = 0;
};

struct CtfProgram {
  static constexpr uint32_t kFail = UINT32_MAX;  // a target: no option fits

  std::vector<CtfOp> ops;
  std::vector<CtfCase> cases;
};

enum class CtfOutcome : uint8_t { kDone, kPastEnd, kNoOption };

// The state of decoding one stream. Positions are bits from the packet's start.
struct CtfMachine {
  const uint8_t* data = nullptr;
  uint64_t position = 0;
  uint64_t end = 0;
  uint64_t clock = 0;  // cycles; shorter timestamps only replace its low bits
  std::array<CtfValue, kCtfValues> values = {};
  std::vector<uint64_t> registers = {};

  CtfOutcome Run(const CtfProgram& program);
  const CtfValue& role(CtfRole which) const { return values[static_cast<size_t>(which)]; }

 private:
  bool Integer(const CtfOp& op);
  bool Varint(const CtfOp& op);
  bool String(const CtfOp& op);
  bool Block(const CtfOp& op);
  void Keep(const CtfOp& op, uint64_t value);
};

// Reads `bits` (1 to 64) at bit `position`, packed as CTF does: from the least
// significant bit in little-endian order, from the most significant in
// big-endian. The caller has made sure that they are there.
uint64_t ReadCtfBits(const uint8_t* data, uint64_t position, uint32_t bits, bool big_endian);

}  // namespace culprit::import_
