// SPDX-License-Identifier: Apache-2.0
//
// From the pages of several CPUs to one line of records by time. A PageFeed
// gives the pages of one CPU's buffer one after the other, wherever they are;
// a RingStream cuts them into records and joins to each the stacks that follow
// it; MergeStreams feeds the earliest record of all to the decoder. Memory is a
// page (or compressed chunk) and two records a CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/ring_buffer_page.h"
#include "import/source.h"
#include "import/tracepoint_facts.h"

namespace culprit::import_ {

class PageFeed {
 public:
  virtual ~PageFeed() = default;
  // Replaces `page` by the next one and `offset` by where it stands in the
  // input; false at the end. The last page may be short.
  virtual Result<bool> Next(std::string& page, uint64_t& offset) = 0;
};

// Pages that stand one after the other in [offset, offset + bytes).
std::unique_ptr<PageFeed> PlainPages(const Bytes& input, uint64_t offset, uint64_t bytes,
                                     size_t page_bytes);

// How the buffer's ticks become nanoseconds: ticks * mult >> shift, plus the
// offset. mult 0: ticks are nanoseconds.
struct RingClock {
  uint32_t mult = 0;
  uint32_t shift = 0;
  int64_t offset_ns = 0;

  // Nothing if the time is beyond what a trace may hold.
  std::optional<int64_t> Nanoseconds(uint64_t ticks) const;
};

class RingStream {
 public:
  RingStream(uint16_t cpu, const PageLayout& layout, const RingClock& clock,
             std::unique_ptr<PageFeed> pages)
      : cpu_(cpu), layout_(layout), clock_(clock), pages_(std::move(pages)) {}

  // Goes to the next record that is not a stack; false at the end.
  Result<bool> Advance(const TracepointFacts& facts, Diagnostics& diagnostics);
  // Valid until the next Advance().
  TracepointRecord record() const;
  int64_t time_ns() const { return current_.time_ns; }

 private:
  struct Kept {
    int64_t time_ns = 0;
    uint64_t offset = 0;
    std::string data;
    std::string kernel_stack;
    std::string user_stack;
  };

  Result<bool> ReadNext(Diagnostics& diagnostics);
  Result<bool> NextPage(Diagnostics& diagnostics);
  bool Join(const TracepointFacts& facts);

  uint16_t cpu_;
  PageLayout layout_;
  RingClock clock_;
  std::unique_ptr<PageFeed> pages_;
  std::string page_;
  uint64_t page_offset_ = 0;
  PageReader reader_;
  Kept current_;
  Kept next_;
  bool has_next_ = false;
  bool started_ = false;
};

// Feeds the records of all streams in order of time; of equal times the stream
// that stands first goes first.
Status MergeStreams(std::vector<RingStream>& streams, TracepointFacts& facts,
                    Diagnostics& diagnostics);
// Ends the trace where the records end.
Status FinishFacts(TracepointFacts& facts, assemble::Assembler& assembler,
                   trace::TraceWriter& writer, Diagnostics& diagnostics);

// What lies beside the pages in tracefs: saved_cmdlines ("1234 bash" a line)
// and trace_clock ("local global [perf] mono").
void AddThreadNames(const std::string& saved_cmdlines, TracepointFacts& facts);
std::string ChosenClock(std::string_view trace_clock);

}  // namespace culprit::import_
