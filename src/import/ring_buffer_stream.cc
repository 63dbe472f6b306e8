// SPDX-License-Identifier: Apache-2.0
#include "import/ring_buffer_stream.h"

#include <algorithm>
#include <queue>
#include <sstream>
#include <tuple>

#include "base/text.h"

namespace culprit::import_ {
namespace {

using Kind = TracepointFacts::Kind;
__extension__ using Wide = unsigned __int128;

constexpr int64_t kMaxTime = int64_t{1} << 61;

class PlainPageFeed : public PageFeed {
 public:
  PlainPageFeed(const Bytes& input, uint64_t offset, uint64_t bytes, size_t page_bytes)
      : input_(input), offset_(offset), left_(bytes), page_bytes_(page_bytes) {}

  Result<bool> Next(std::string& page, uint64_t& offset) override {
    const auto count = static_cast<size_t>(std::min<uint64_t>(left_, page_bytes_));
    if (count == 0) return false;
    CULPRIT_TRY(input_.ReadAt(offset_, count, page));
    if (page.empty()) return false;
    offset = offset_;
    offset_ += count;
    left_ -= count;
    return true;
  }

 private:
  const Bytes& input_;
  uint64_t offset_;
  uint64_t left_;
  size_t page_bytes_;
};

}  // namespace

std::unique_ptr<PageFeed> PlainPages(const Bytes& input, uint64_t offset, uint64_t bytes,
                                     size_t page_bytes) {
  const uint64_t size = input.size();
  const uint64_t begin = std::min(offset, size);
  return std::make_unique<PlainPageFeed>(input, begin, std::min(bytes, size - begin), page_bytes);
}

std::optional<int64_t> RingClock::Nanoseconds(uint64_t ticks) const {
  Wide time = ticks;
  if (mult != 0) time = (time * mult) >> std::min<uint32_t>(shift, 64);
  if (time > static_cast<Wide>(kMaxTime)) return {};
  const int64_t offset = std::clamp(offset_ns, -kMaxTime, kMaxTime);
  const int64_t sum = static_cast<int64_t>(time) + offset;
  if (sum < -kMaxTime || sum > kMaxTime) return {};
  return sum;
}

Result<bool> RingStream::NextPage(Diagnostics& diagnostics) {
  if (reader_.damaged()) {
    diagnostics.Count("damaged page of the ring buffer, rest of it skipped", 1, page_offset_);
  }
  CULPRIT_ASSIGN(const bool more, pages_->Next(page_, page_offset_));
  if (!more) {
    reader_ = PageReader();
    return false;
  }
  reader_ = PageReader(layout_, page_);
  if (reader_.lost() && reader_.lost_count() != 0) {
    diagnostics.Count("event lost while recording", reader_.lost_count(), page_offset_);
  } else if (reader_.lost()) {
    diagnostics.Count("gap while recording, number of lost events not known", 1, page_offset_);
  }
  return true;
}

// The next record of whatever kind into next_.
Result<bool> RingStream::ReadNext(Diagnostics& diagnostics) {
  PageEvent event;
  for (;;) {
    while (reader_.Next(event)) {
      const std::optional<int64_t> time_ns = clock_.Nanoseconds(event.time);
      if (!time_ns.has_value()) {
        diagnostics.Count("record with an impossible time", 1, page_offset_ + event.offset);
        continue;
      }
      next_.time_ns = *time_ns;
      next_.offset = page_offset_ + event.offset;
      next_.data = event.data;
      next_.kernel_stack.clear();
      next_.user_stack.clear();
      return true;
    }
    CULPRIT_ASSIGN(const bool more, NextPage(diagnostics));
    if (!more) return false;
  }
}

// Takes next_ into current_ if it is a stack of it that is not there yet. An
// interrupt's events may stand between an event and its stack; the thread's
// stack that comes after those is then one too many and is counted.
bool RingStream::Join(const TracepointFacts& facts) {
  const Kind kind = facts.KindOf(next_.data);
  if (kind == Kind::kKernelStack && current_.kernel_stack.empty()) {
    current_.kernel_stack.swap(next_.data);
    return true;
  }
  if (kind == Kind::kUserStack && current_.user_stack.empty()) {
    current_.user_stack.swap(next_.data);
    return true;
  }
  return false;
}

Result<bool> RingStream::Advance(const TracepointFacts& facts, Diagnostics& diagnostics) {
  if (!started_) {
    started_ = true;
    CULPRIT_ASSIGN(has_next_, ReadNext(diagnostics));
  }
  if (!has_next_) return false;
  std::swap(current_, next_);
  do {
    CULPRIT_ASSIGN(has_next_, ReadNext(diagnostics));
  } while (has_next_ && Join(facts));
  return true;
}

TracepointRecord RingStream::record() const {
  return {.time_ns = current_.time_ns,
          .cpu = cpu_,
          .offset = current_.offset,
          .data = current_.data,
          .kernel_stack = current_.kernel_stack,
          .user_stack = current_.user_stack};
}

Status MergeStreams(std::vector<RingStream>& streams, TracepointFacts& facts,
                    Diagnostics& diagnostics) {
  using Head = std::tuple<int64_t, size_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  const auto advance = [&](size_t index) -> Status {
    CULPRIT_ASSIGN(const bool more, streams[index].Advance(facts, diagnostics));
    if (more) heads.emplace(streams[index].time_ns(), index);
    return {};
  };
  for (size_t i = 0; i < streams.size(); ++i) CULPRIT_TRY(advance(i));
  while (!heads.empty()) {
    const size_t index = std::get<1>(heads.top());
    heads.pop();
    CULPRIT_TRY(facts.Feed(streams[index].record()));
    CULPRIT_TRY(advance(index));
  }
  return {};
}

Status FinishFacts(TracepointFacts& facts, assemble::Assembler& assembler,
                   trace::TraceWriter& writer, Diagnostics& diagnostics) {
  CULPRIT_TRY(facts.Finish());
  CULPRIT_TRY(assembler.Finish(facts.last_ns()));
  diagnostics.Merge(assembler.diagnostics());
  trace::Metadata& metadata = writer.metadata();
  if (facts.unused() != 0) metadata.properties["events.unused"] = std::to_string(facts.unused());
  // Records that made no fact still lie within the recording.
  const bool empty = metadata.begin_ns == 0 && metadata.end_ns == 0;
  metadata.begin_ns = empty ? facts.first_ns() : std::min(metadata.begin_ns, facts.first_ns());
  metadata.end_ns = std::max(metadata.end_ns, facts.last_ns());
  return {};
}

void AddThreadNames(const std::string& saved_cmdlines, TracepointFacts& facts) {
  std::istringstream lines(saved_cmdlines);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::optional<uint64_t> tid = ParseUnsigned(line.substr(0, space));
    const std::string name = line.substr(space + 1);
    const bool named = !name.empty() && name != "<...>";
    if (named && tid.has_value() && *tid != 0 && *tid <= INT32_MAX) {
      facts.AddThreadName(static_cast<int64_t>(*tid), name);
    }
  }
}

std::string ChosenClock(std::string_view trace_clock) {
  const size_t open = trace_clock.find('[');
  const size_t close = trace_clock.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(trace_clock.substr(open + 1, close - open - 1));
}

}  // namespace culprit::import_
