// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_program.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "import/load_whole.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxLoops = kMaxCtfDepth + 1;

uint64_t Mask(uint32_t bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

struct Loop {
  uint32_t body = 0;
  uint32_t end = 0;
  uint64_t left = 0;
  uint64_t position = 0;  // where this round began
};

// Where a switch leads; compares as the selector is signed or not.
uint32_t Choose(const CtfProgram& program, const CtfOp& op, uint64_t selector) {
  const auto first = static_cast<size_t>(op.count & UINT32_MAX);
  const auto count = static_cast<size_t>(op.count >> 32);
  for (size_t i = first; i < first + count; ++i) {
    const CtfRange& range = program.cases[i].range;
    const bool inside = op.is_signed ? static_cast<int64_t>(selector) >= range.low &&
                                           static_cast<int64_t>(selector) <= range.high
                                     : selector >= static_cast<uint64_t>(range.low) &&
                                           selector <= static_cast<uint64_t>(range.high);
    if (inside) return program.cases[i].target;
  }
  return op.target;
}

}  // namespace

uint64_t ReadCtfBits(const uint8_t* data, uint64_t position, uint32_t bits, bool big_endian) {
  const uint8_t* at = data + position / 8;
  if (position % 8 == 0) {
    if (bits == 8) return *at;
    if (bits == 16) return LoadWhole<uint16_t>(at, big_endian);
    if (bits == 32) return LoadWhole<uint32_t>(at, big_endian);
    if (bits == 64) return LoadWhole<uint64_t>(at, big_endian);
  }
  auto offset = static_cast<uint32_t>(position % 8);
  uint64_t value = 0;
  for (uint32_t done = 0; done < bits;) {
    const uint32_t take = std::min(8 - offset, bits - done);
    if (big_endian) {
      const uint64_t part = (uint64_t{*at} >> (8 - offset - take)) & Mask(take);
      value = (value << (take % 64)) | part;
    } else {
      value |= ((uint64_t{*at} >> offset) & Mask(take)) << done;
    }
    done += take;
    offset = 0;
    ++at;
  }
  return value;
}

void CtfMachine::Keep(const CtfOp& op, uint64_t value) {
  if (op.save != CtfOp::kNone) registers[op.save] = value;
  if (op.value != CtfOp::kNone) {
    values[op.value].number = value;
    values[op.value].seen = true;
  }
}

bool CtfMachine::Integer(const CtfOp& op) {
  if (op.bits > end - position) return false;
  uint64_t value = ReadCtfBits(data, position, op.bits, op.big_endian);
  position += op.bits;
  if (op.is_time) {
    const uint64_t mask = Mask(op.bits);
    const uint64_t before = clock & mask;
    clock = (clock & ~mask) | value;
    if (value < before && op.bits < 64) clock += mask + 1;
  }
  if (op.is_signed && op.bits > 0 && op.bits < 64) {
    const uint32_t shift = 64 - op.bits;
    value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  }
  Keep(op, value);
  return true;
}

bool CtfMachine::Varint(const CtfOp& op) {
  uint64_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    if (end - position < 8 || shift >= 70) return false;
    const uint8_t byte = data[position / 8];
    position += 8;
    if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) != 0) continue;
    const uint32_t used = shift + 7;
    if (op.is_signed && used < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << used;
    break;
  }
  if (op.is_time) clock = value;
  Keep(op, value);
  return true;
}

bool CtfMachine::String(const CtfOp& op) {
  const uint8_t* start = data + position / 8;
  const size_t there = (end - position) / 8;
  const void* nul = there == 0 ? nullptr : std::memchr(start, 0, there);
  if (nul == nullptr) return false;
  const auto length = static_cast<size_t>(static_cast<const uint8_t*>(nul) - start);
  position += 8 * (uint64_t{length} + 1);
  if (op.value != CtfOp::kNone) {
    values[op.value].bytes = {reinterpret_cast<const char*>(start), length};
    values[op.value].seen = true;
  }
  return true;
}

bool CtfMachine::Block(const CtfOp& op) {
  const uint64_t count = op.counter == CtfOp::kNone ? op.count : registers[op.counter];
  if (op.bits != 0 && count > (end - position) / op.bits) return false;
  const uint64_t bits = count * op.bits;
  if (op.value != CtfOp::kNone && position % 8 == 0) {
    values[op.value] = {.number = count,
                        .bytes = {reinterpret_cast<const char*>(data + position / 8), bits / 8},
                        .element_bits = static_cast<uint8_t>(op.bits),
                        .big_endian = op.big_endian,
                        .seen = true};
  }
  position += bits;
  return true;
}

CtfOutcome CtfMachine::Run(const CtfProgram& program) {
  std::array<Loop, kMaxLoops> loops;
  size_t open = 0;
  const auto size = static_cast<uint32_t>(program.ops.size());
  for (uint32_t i = 0;; ++i) {
    while (open > 0 && i == loops[open - 1].end) {
      Loop& loop = loops[open - 1];
      // A round that took nothing would go on doing so.
      if (--loop.left == 0 || loop.position == position) {
        --open;
      } else {
        loop.position = position;
        i = loop.body;
      }
    }
    if (i >= size) return CtfOutcome::kDone;
    const CtfOp& op = program.ops[i];
    bool fits = true;
    switch (op.kind) {
      case CtfOp::Kind::kSkip:
        fits = op.count <= end - position;
        position += fits ? op.count : 0;
        break;
      case CtfOp::Kind::kAlign: {
        const uint64_t aligned = (position + op.count - 1) & ~(op.count - 1);
        fits = aligned <= end;
        position = fits ? aligned : position;
        break;
      }
      case CtfOp::Kind::kInteger:
        fits = Integer(op);
        break;
      case CtfOp::Kind::kVarint:
        fits = Varint(op);
        break;
      case CtfOp::Kind::kString:
        fits = String(op);
        break;
      case CtfOp::Kind::kBlock:
        fits = Block(op);
        break;
      case CtfOp::Kind::kLoop: {
        const uint64_t count = op.counter == CtfOp::kNone ? op.count : registers[op.counter];
        if (count == 0) {
          i = op.target - 1;
          break;
        }
        CULPRIT_CHECK(open < kMaxLoops);
        loops[open++] = {i + 1, op.target, count, position};
        break;
      }
      case CtfOp::Kind::kSwitch: {
        const uint32_t target = Choose(program, op, registers[op.counter]);
        if (target == CtfProgram::kFail) return CtfOutcome::kNoOption;
        i = target - 1;
        break;
      }
      case CtfOp::Kind::kJump:
        i = op.target - 1;
        break;
      case CtfOp::Kind::kImpossible:
        return CtfOutcome::kNoOption;
    }
    if (!fits) return CtfOutcome::kPastEnd;
  }
}

}  // namespace culprit::import_
