// SPDX-License-Identifier: Apache-2.0
#include "trace/event_codec.h"

#include <algorithm>

#include "base/bytes.h"

namespace culprit::trace {

void EncodeBlockInfo(const BlockInfo& info, ByteWriter& out) {
  out.Varint(info.events);
  out.SignedVarint(info.min_time_ns);
  out.SignedVarint(info.max_end_ns);
  for (uint32_t count : info.kind_counts) out.Varint(count);
  out.Varint(info.owners.size());
  uint32_t previous = 0;
  for (const BlockInfo::Owner& owner : info.owners) {
    const uint32_t slot = owner.thread.value + 1;  // none() is 0
    out.Varint(slot - previous);
    out.Varint(owner.events);
    previous = slot;
  }
}

bool DecodeBlockInfo(ByteReader& in, const IdLimits& limits, BlockInfo& info) {
  const uint64_t events = in.Varint();
  info.min_time_ns = in.SignedVarint();
  info.max_end_ns = in.SignedVarint();
  if (in.failed() || events == 0 || events > kMaxBlockEvents) return false;
  if (info.min_time_ns < -kMaxTimeNs || info.max_end_ns > kMaxTimeNs) return false;
  if (info.min_time_ns > info.max_end_ns) return false;
  info.events = static_cast<uint32_t>(events);
  uint64_t sum = 0;
  for (uint32_t& count : info.kind_counts) {
    count = static_cast<uint32_t>(std::min<uint64_t>(in.Varint(), kMaxBlockEvents + 1));
    sum += count;
  }
  if (sum != events) return false;
  const uint64_t owners = in.Varint();
  if (owners > events) return false;
  info.owners.clear();
  uint64_t slot = 0;
  sum = 0;
  for (uint64_t i = 0; i < owners; ++i) {
    const uint64_t step = in.Varint();
    const uint64_t count = in.Varint();
    if (in.failed() || step > UINT32_MAX || (step == 0 && i > 0) || count > events) return false;
    slot += step;
    sum += count;
    if (slot > limits.threads) return false;
    info.owners.push_back({.thread = slot == 0 ? ThreadId() : ThreadId(slot - 1),
                           .events = static_cast<uint32_t>(count)});
  }
  return !in.failed() && sum == events;
}

}  // namespace culprit::trace
