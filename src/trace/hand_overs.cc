// SPDX-License-Identifier: Apache-2.0
#include "trace/hand_overs.h"

#include <algorithm>
#include <iterator>

namespace culprit::trace {
namespace {

// CPU and time since the block's begin as one number: longer blocks have none.
constexpr int kTimeBits = 48;

bool KeyOf(const Event& event, int64_t start_ns, uint64_t& key) {
  const auto since = static_cast<uint64_t>(event.end_ns() - start_ns);
  key = uint64_t{event.cpu} << kTimeBits | since;
  return event.cpu != Event::kNoCpu && since >> kTimeBits == 0;
}

}  // namespace

void HandOvers::Clear() {
  times_.clear();
  lanes_.clear();
}

void HandOvers::Find(const std::vector<Event>& events, int64_t start_ns) {
  Clear();
  run_ends_.clear();
  ready_ends_.clear();
  for (const Event& event : events) {
    uint64_t key = 0;
    if (event.kind == EventKind::kRunning && KeyOf(event, start_ns, key)) run_ends_.push_back(key);
    if (event.kind == EventKind::kReady && KeyOf(event, start_ns, key)) ready_ends_.push_back(key);
  }
  std::sort(run_ends_.begin(), run_ends_.end());
  std::sort(ready_ends_.begin(), ready_ends_.end());
  run_ends_.erase(std::unique(run_ends_.begin(), run_ends_.end()), run_ends_.end());
  std::set_intersection(run_ends_.begin(), run_ends_.end(), ready_ends_.begin(), ready_ends_.end(),
                        std::back_inserter(times_));
  for (uint32_t i = 0; i < times_.size(); ++i) {
    const auto cpu = static_cast<size_t>(times_[i] >> kTimeBits);
    if (cpu >= lanes_.size()) lanes_.resize(cpu + 1);
    Lane& lane = lanes_[cpu];
    if (lane.end == 0) lane.begin = lane.at = i;
    lane.end = i + 1;
    times_[i] &= (uint64_t{1} << kTimeBits) - 1;
  }
}

void HandOvers::Write(ColumnEncoder& columns, ByteWriter& out) const {
  const auto used = [](const Lane& lane) { return lane.begin != lane.end; };
  out.Varint(static_cast<uint64_t>(std::count_if(lanes_.begin(), lanes_.end(), used)));
  std::vector<uint64_t> steps;
  steps.reserve(times_.size());
  for (size_t cpu = 0; cpu < lanes_.size(); ++cpu) {
    const Lane& lane = lanes_[cpu];
    if (!used(lane)) continue;
    out.Varint(cpu);
    out.Varint(lane.end - lane.begin);
    uint64_t last = 0;
    for (uint32_t i = lane.begin; i < lane.end; ++i) {
      steps.push_back(times_[i] - last);
      last = times_[i];
    }
  }
  columns.Column(steps, out);
}

bool HandOvers::Read(ByteReader& in, size_t max, ColumnDecoder& columns) {
  Clear();
  const uint64_t cpus = in.Varint();
  uint32_t sum = 0;
  for (uint64_t i = 0; i < cpus; ++i) {
    const uint64_t cpu = in.Varint();
    const uint64_t moments = in.Varint();
    // In ascending order, each once.
    if (in.failed() || cpu >= Event::kNoCpu || cpu < lanes_.size() || moments == 0 ||
        moments > max - sum) {
      return false;
    }
    lanes_.resize(cpu + 1);
    lanes_[cpu] = {.begin = sum, .end = sum + static_cast<uint32_t>(moments), .at = sum};
    sum += static_cast<uint32_t>(moments);
  }
  if (!columns.Column(in, sum, times_)) return false;
  for (const Lane& lane : lanes_) {
    uint64_t last = 0;
    for (uint32_t i = lane.begin; i < lane.end; ++i) {
      const uint64_t time = last + times_[i];
      if (time < last) return false;  // it wrapped: not in order
      last = times_[i] = time;
    }
  }
  return true;
}

// The cursor only saves time: the answer is the same wherever it stands.
uint32_t HandOvers::First(Lane& lane, uint64_t time) {
  if (lane.owner != owner_) {
    lane.owner = owner_;
    lane.at = lane.begin;
  }
  uint32_t low = lane.at;
  uint32_t high = low;
  if (low > lane.begin && times_[low - 1] >= time) {
    low = lane.begin;
  } else {
    uint32_t stride = 1;
    while (lane.end - low > stride && times_[low + stride - 1] < time) {
      low += stride;
      stride *= 2;
    }
    high = std::min(lane.end, low + stride);
  }
  const auto at = std::lower_bound(times_.begin() + low, times_.begin() + high, time);
  return lane.at = static_cast<uint32_t>(at - times_.begin());
}

uint32_t HandOvers::AtOrAfter(uint16_t cpu, uint64_t time, uint32_t more) {
  Lane* lane = LaneOf(cpu);
  if (lane == nullptr) return kNowhere;
  const uint32_t first = First(*lane, time);
  if (lane->end - first <= more) return kNowhere;
  return lane->at = first + more;  // where the run begins that comes next
}

uint32_t HandOvers::StepsTo(uint16_t cpu, uint64_t from, uint64_t time, uint32_t max) {
  Lane* lane = LaneOf(cpu);
  if (lane == nullptr) return kNowhere;
  const uint32_t first = First(*lane, from);
  const uint32_t end = lane->end - first > max ? first + max + 1 : lane->end;
  const auto at = std::lower_bound(times_.begin() + first, times_.begin() + end, time);
  const auto found = static_cast<uint32_t>(at - times_.begin());
  return found < end && *at == time ? found - first : kNowhere;
}

}  // namespace culprit::trace
