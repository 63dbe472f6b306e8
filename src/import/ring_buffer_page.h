// SPDX-License-Identifier: Apache-2.0
//
// One page of the kernel's trace ring buffer, as read from trace_pipe_raw and
// as trace.dat stores it:
//
//   page  := timestamp:u64 commit:long event*
//   event := head:u32 (type_len:5, time_delta:27) data
//
//   type_len 1..28   type_len * 4 bytes of data
//            0       a u32 n, then n - 4 bytes of data
//            29      padding; to the end of the page if time_delta is 0
//            30      a u32 of high bits: time += u32 << 27 | time_delta
//            31      the same, but as an absolute time
//
// The low bits of commit are the bytes used; bit 31 says that events were lost
// before this page, bit 30 that their number stands after the last event. All
// lengths are checked: a page that does not add up ends there, damaged() is
// set. A reader is a few words on top of a page that the caller keeps.
#pragma once

#include <cstdint>
#include <string_view>

#include "import/event_format.h"

namespace culprit::import_ {

struct PageLayout {
  size_t page_bytes = 4096;
  size_t commit_offset = 8;
  size_t commit_bytes = 8;  // the size of the kernel's long
  size_t data_offset = 16;
  ByteOrder order = ByteOrder::kLittle;

  // From the text of events/header_page. What it does not say, or says
  // impossibly, stays as it is.
  void ReadHeaderPage(std::string_view text);
};

struct PageEvent {
  uint64_t time = 0;
  std::string_view data;  // from the event's common_type on
  size_t offset = 0;      // of the data in the page
};

class PageReader {
 public:
  PageReader() = default;
  PageReader(const PageLayout& layout, std::string_view page);

  // False at the end of the page.
  bool Next(PageEvent& event);

  bool damaged() const { return damaged_; }
  // Events were lost before this page; lost_count() 0: nobody knows how many.
  bool lost() const { return lost_; }
  uint64_t lost_count() const { return lost_count_; }

 private:
  uint32_t Word(size_t offset) const;
  bool End(bool damaged);

  std::string_view used_;  // up to the commit
  size_t data_offset_ = 0;
  size_t position_ = 0;
  uint64_t time_ = 0;
  ByteOrder order_ = ByteOrder::kLittle;
  bool damaged_ = false;
  bool lost_ = false;
  uint64_t lost_count_ = 0;
};

}  // namespace culprit::import_
