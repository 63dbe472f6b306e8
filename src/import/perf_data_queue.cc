// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_queue.h"

#include <algorithm>

namespace culprit::import_ {

Status PerfDataQueue::Add(uint64_t time, const PerfRecordView& record) {
  if (bytes_.size() + record.body.size() > kMaxQueueBytes ||
      entries_.size() >= kMaxQueueBytes / sizeof(Entry)) {
    std::vector<uint64_t> times(entries_.size());
    std::transform(entries_.begin(), entries_.end(), times.begin(),
                   [](const Entry& entry) { return entry.time; });
    const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    CULPRIT_TRY(Flush(*middle));
  }
  newest_ = std::max(newest_, time);
  entries_.push_back({.time = time,
                      .offset = record.offset,
                      .place = static_cast<uint32_t>(bytes_.size()),
                      .type = record.type,
                      .misc = record.misc,
                      .size = static_cast<uint16_t>(record.body.size())});
  bytes_ += record.body;
  return {};
}

Status PerfDataQueue::EndRound() {
  CULPRIT_TRY(Flush(round_limit_));
  round_limit_ = newest_;
  return {};
}

Status PerfDataQueue::Finish() { return Flush(UINT64_MAX); }

Status PerfDataQueue::Flush(uint64_t limit) {
  // Places grow with the order of arrival, so they break ties.
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.place < b.place;
  });
  const auto end = std::partition_point(entries_.begin(), entries_.end(),
                                        [&](const Entry& entry) { return entry.time <= limit; });
  const std::string_view all = bytes_;
  for (auto it = entries_.begin(); it != end; ++it) {
    CULPRIT_TRY(visitor_(it->time, {.type = it->type,
                                    .misc = it->misc,
                                    .body = all.substr(it->place, it->size),
                                    .offset = it->offset}));
  }
  // What stays moves to the front. By time, which keeps the order of ties.
  std::string kept;
  for (auto it = end; it != entries_.end(); ++it) {
    const auto place = static_cast<uint32_t>(kept.size());
    kept += all.substr(it->place, it->size);
    it->place = place;
  }
  entries_.erase(entries_.begin(), end);
  bytes_ = std::move(kept);
  return {};
}

}  // namespace culprit::import_
