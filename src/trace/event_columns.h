// SPDX-License-Identifier: Apache-2.0
//
// What encoder and decoder of event blocks agree on: the ids of columns and the codes
// in them. The grammar is in docs/format.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit::trace {

// Fields with a column of their own for every kind.
enum Field : uint8_t { kStart, kDur, kStack, kOther, kCpu, kArg0, kArg1, kDetail, kFields };

// Column ids. Later versions may add some; readers skip what they do not know.
constexpr uint8_t kKindsColumn = 1;
constexpr uint8_t kFlagsColumn = 2;
constexpr uint8_t kStackRanksColumn = 3;
constexpr uint8_t kThreadRanksColumn = 4;
constexpr uint8_t kHandOversColumn = 5;
constexpr uint8_t kRunEndsColumn = 6;
constexpr uint8_t kReadyEndsColumn = 7;
constexpr uint8_t kOddFlagsColumn = 8;
constexpr uint8_t kFirstFieldColumn = 16;

constexpr uint8_t FieldColumn(size_t kind, size_t field) {
  return static_cast<uint8_t>(kFirstFieldColumn + kind * 8 + field);
}

// Ids in columns: none, the one expected, or a rank in the block's own table,
// most frequent first, so that common ids are small numbers.
constexpr uint64_t kCodeNone = 0;
constexpr uint64_t kCodeExpected = 1;
constexpr uint64_t kFirstRankCode = 2;

// How a run or a ready time ends, in a block with hand-overs: by a duration of its
// own; or at the hand-over of its CPU that is the next after the begin of a run, or for
// a ready time at or after its begin, so many further as the number is above this.
constexpr uint8_t kEndsByDuration = 0;
constexpr uint8_t kEndsAtNext = 1;
constexpr uint32_t kMaxSteps = UINT8_MAX - kEndsAtNext;

}  // namespace culprit::trace
