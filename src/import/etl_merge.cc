// SPDX-License-Identifier: Apache-2.0
#include "import/etl_merge.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace culprit::import_ {
namespace {

struct EtlPlace {
  uint64_t time = 0;
  size_t position = 0;
  bool operator<(const EtlPlace& other) const {
    return std::tie(time, position) < std::tie(other.time, other.position);
  }
};

struct OpenEtlBuffer {
  std::string records;
  std::vector<EtlPlace> facts;  // in order of time
  size_t next = 0;

  size_t bytes() const { return records.size() + facts.size() * sizeof(EtlPlace); }
};

struct EtlTurn {
  uint64_t time = 0;
  size_t buffer = 0;
  size_t slot = 0;
  bool operator>(const EtlTurn& other) const {
    return std::tie(time, buffer) > std::tie(other.time, other.buffer);
  }
};

class EtlMerge {
 public:
  EtlMerge(const Bytes& bytes, const EtlHeader& header, const std::vector<EtlBuffer>& buffers,
           const std::vector<EtlSpan>& spans)
      : bytes_(bytes), header_(header), buffers_(buffers), spans_(spans) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (spans[i].first <= spans[i].last) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return std::tie(spans[a].first, a) < std::tie(spans[b].first, b);
    });
  }

  Status Run(const std::function<Status(const EtlEvent&, uint64_t)>& visitor) {
    for (;;) {
      CULPRIT_TRY(OpenDue());
      if (turns_.empty()) return {};
      const EtlTurn turn = turns_.top();
      turns_.pop();
      OpenEtlBuffer& open = slots_[turn.slot];
      const EtlBuffer& buffer = buffers_[turn.buffer];
      EtlWalk walk(std::string_view(open.records).substr(open.facts[open.next].position),
                   buffer.cpu);
      EtlEvent event;
      if (walk.Next(event)) CULPRIT_TRY(visitor(event, buffer.offset));
      if (++open.next < open.facts.size()) {
        turns_.push({open.facts[open.next].time, turn.buffer, turn.slot});
      } else {
        open_bytes_ -= open.bytes();
        open = {};
        free_.push_back(turn.slot);
      }
    }
  }

 private:
  Status OpenDue() {
    while (next_ < order_.size()) {
      const size_t index = order_[next_];
      const bool due = turns_.empty() || spans_[index].first <= turns_.top().time;
      if (!due || (!turns_.empty() && open_bytes_ >= kMaxOpenEtlBytes)) return {};
      ++next_;
      CULPRIT_TRY(Open(index));
    }
    return {};
  }

  Status Open(size_t index) {
    OpenEtlBuffer open;
    Diagnostics known;  // the survey met the same damage
    const EtlBuffer& buffer = buffers_[index];
    CULPRIT_TRY(LoadEtlBuffer(bytes_, header_, buffer, open.records, known));
    EtlWalk walk(open.records, buffer.cpu);
    EtlEvent event;
    while (walk.Next(event)) {
      if (IsEtlFact(event)) open.facts.push_back({event.time, event.position});
    }
    if (open.facts.empty()) return {};
    std::sort(open.facts.begin(), open.facts.end());
    open_bytes_ += open.bytes();
    if (free_.empty()) {
      free_.push_back(slots_.size());
      slots_.emplace_back();
    }
    const size_t slot = free_.back();
    free_.pop_back();
    turns_.push({open.facts.front().time, index, slot});
    slots_[slot] = std::move(open);
    return {};
  }

  const Bytes& bytes_;
  const EtlHeader& header_;
  const std::vector<EtlBuffer>& buffers_;
  const std::vector<EtlSpan>& spans_;
  std::vector<size_t> order_;  // buffers by the time of their first fact
  size_t next_ = 0;
  std::vector<OpenEtlBuffer> slots_;
  std::vector<size_t> free_;
  std::priority_queue<EtlTurn, std::vector<EtlTurn>, std::greater<>> turns_;
  size_t open_bytes_ = 0;
};

}  // namespace

Status VisitEtlFacts(const Bytes& bytes, const EtlHeader& header,
                     const std::vector<EtlBuffer>& buffers, const std::vector<EtlSpan>& spans,
                     const std::function<Status(const EtlEvent&, uint64_t offset)>& visitor) {
  return EtlMerge(bytes, header, buffers, spans).Run(visitor);
}

}  // namespace culprit::import_
