// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace culprit::import_ {
namespace {

// What a few rounds of a usual recording need; more goes back.
constexpr size_t kMaxSpareSegments = 32;

}  // namespace

char* PerfDataQueue::Allot(size_t size, uint64_t& place) {
  // Also what has no bytes has a place inside a segment.
  size = std::max<size_t>(size, 1);
  if (kSegmentBytes - used_ < size) {
    if (spare_.empty()) {
      segments_.emplace_back(new char[kSegmentBytes]);
    } else {
      segments_.push_back(std::move(spare_.back()));
      spare_.pop_back();
    }
    used_ = 0;
  }
  place = (first_segment_ + segments_.size() - 1) * kSegmentBytes + used_;
  char* const room = segments_.back().get() + used_;
  used_ += size;
  return room;
}

const char* PerfDataQueue::At(uint64_t place) const {
  return segments_[place / kSegmentBytes - first_segment_].get() + place % kSegmentBytes;
}

void PerfDataQueue::DropSegmentsBefore(uint64_t place) {
  while (!segments_.empty() && first_segment_ < place / kSegmentBytes) {
    if (spare_.size() < kMaxSpareSegments) spare_.push_back(std::move(segments_.front()));
    segments_.pop_front();
    ++first_segment_;
  }
  if (segments_.empty()) used_ = kSegmentBytes;
}

Status PerfDataQueue::Add(uint64_t time, const PerfRecordView& record) {
  const size_t size = record.body.size();
  CULPRIT_CHECK(size <= UINT16_MAX);
  const bool full =
      kSegmentBytes - used_ <= size && (segments_.size() + 1) * kSegmentBytes > kMaxQueueBytes;
  if (full || entries_.size() >= kMaxQueueRecords) CULPRIT_TRY(Shrink());
  newest_ = std::max(newest_, time);
  uint64_t place = 0;
  char* const room = Allot(size, place);
  if (size != 0) std::memcpy(room, record.body.data(), size);
  entries_.push_back({.time = time,
                      .offset = record.offset,
                      .place = place,
                      .type = record.type,
                      .misc = record.misc,
                      .size = static_cast<uint16_t>(size)});
  return {};
}

// The older half leaves; what stays may stand anywhere and moves together.
Status PerfDataQueue::Shrink() {
  std::vector<uint64_t> times(entries_.size());
  std::transform(entries_.begin(), entries_.end(), times.begin(),
                 [](const Entry& entry) { return entry.time; });
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  CULPRIT_TRY(Flush(*middle));
  used_ = kSegmentBytes;  // what moves does not mix with what is still to move
  for (Entry& entry : entries_) {
    const char* const from = At(entry.place);
    DropSegmentsBefore(entry.place);
    char* const room = Allot(entry.size, entry.place);
    std::memcpy(room, from, entry.size);
  }
  DropSegmentsBefore(entries_.empty() ? UINT64_MAX : entries_.front().place);
  return {};
}

Status PerfDataQueue::EndRound() {
  CULPRIT_TRY(Flush(round_limit_));
  round_limit_ = newest_;
  return {};
}

Status PerfDataQueue::Finish() { return Flush(UINT64_MAX); }

// Moves to due_ what is not newer than `limit`, and notes where its runs begin.
void PerfDataQueue::TakeDue(uint64_t limit) {
  due_.clear();
  runs_.clear();
  auto stays = entries_.begin();
  uint64_t last = UINT64_MAX;
  for (const Entry& entry : entries_) {
    if (entry.time > limit) {
      *stays++ = entry;
      continue;
    }
    if (entry.time < last) runs_.push_back(due_.size());
    last = entry.time;
    due_.push_back(entry);
  }
  // The first entry begins a run even at the end of time.
  if (!due_.empty() && (runs_.empty() || runs_.front() != 0)) runs_.insert(runs_.begin(), 0);
  entries_.erase(stays, entries_.end());
}

// Neighbouring runs are merged until one is left. Entries stand in the order
// they came and merging is stable, so that order breaks ties.
void PerfDataQueue::SortDue() {
  const auto earlier = [](const Entry& a, const Entry& b) { return a.time < b.time; };
  const auto at = [&](size_t run) {
    return due_.begin() + static_cast<ptrdiff_t>(run < runs_.size() ? runs_[run] : due_.size());
  };
  while (runs_.size() > 1) {
    merged_.resize(due_.size());
    auto out = merged_.begin();
    size_t kept = 0;
    for (size_t run = 0; run < runs_.size(); run += 2) {
      const auto begin = at(run);
      const auto middle = at(run + 1);
      const auto end = at(run + 2);
      out = std::merge(begin, middle, middle, end, out, earlier);
      runs_[kept++] = static_cast<size_t>(begin - due_.begin());
    }
    runs_.resize(kept);
    due_.swap(merged_);
  }
}

Status PerfDataQueue::Flush(uint64_t limit) {
  TakeDue(limit);
  SortDue();
  for (const Entry& entry : due_) {
    CULPRIT_TRY(visitor_(entry.time, {.type = entry.type,
                                      .misc = entry.misc,
                                      .body = std::string_view(At(entry.place), entry.size),
                                      .offset = entry.offset}));
  }
  DropSegmentsBefore(entries_.empty() ? UINT64_MAX : entries_.front().place);
  return {};
}

}  // namespace culprit::import_
