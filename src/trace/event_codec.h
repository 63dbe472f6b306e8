// SPDX-License-Identifier: Apache-2.0
//
// The payload of an event block: up to kMaxBlockEvents events as columns.
//
// Events are grouped by owner: the thread of the event, or, for an unwait, the
// thread it wakes. Within an owner they are in time order. Then nearly every
// time is known in advance: a tile begins where the owner's last one ended, a
// wake-up happens where the wait ended, a ready carries the wait's stack. Only
// the differences from these expectations are stored, one column for each
// field of each kind (column_codec.h), and columns of zeros not at all; moments at
// which a CPU goes from thread to thread once (hand_overs.h). The grammar is in
// docs/format.md.
//
// Decoding costs about as much as reading memory (see docs/benchmarks.md) and
// trusts nothing: lengths, kinds, ids and the range of times are checked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "trace/event.h"
#include "trace/trace_reader.h"

namespace culprit::trace {

inline constexpr size_t kMaxBlockEvents = 1 << 20;
// Times beyond this (146 years) are taken for damage, so that sums of a few
// never overflow.
inline constexpr int64_t kMaxTimeNs = INT64_MAX / 2;

class BlockEncoder {
 public:
  explicit BlockEncoder(int zstd_level);
  ~BlockEncoder();

  // Groups and sorts `events` (at most kMaxBlockEvents, not empty) and appends
  // their payload to `out`. Fills all of `info` but its place in the file.
  void Encode(std::vector<Event>& events, std::string& out, BlockInfo& info);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What ids may occur: the sizes of the tables they point into.
struct IdLimits {
  uint32_t threads = 0;
  uint32_t stacks = 0;
};

class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();

  // False: the payload is damaged; `events` is then empty.
  bool Decode(std::string_view payload, const IdLimits& limits, std::vector<Event>& events);
  // The same with the events of each owner put to a place of their own, where there
  // is room for as many as `expected` says. False also if the payload is not of
  // that many events of those owners; what stands at the places is then undefined.
  bool DecodeInto(std::string_view payload, const IdLimits& limits, const BlockInfo& expected,
                  std::span<Event* const> places);
  // Only the head of the payload, for an index made by scanning.
  static bool DecodeInfo(std::string_view payload, const IdLimits& limits, BlockInfo& info);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The index of a block as it stands at the head of its payload and, again, in
// the file's index.
void EncodeBlockInfo(const BlockInfo& info, ByteWriter& out);
bool DecodeBlockInfo(ByteReader& in, const IdLimits& limits, BlockInfo& info);

}  // namespace culprit::trace
