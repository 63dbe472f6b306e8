// SPDX-License-Identifier: Apache-2.0
#include "import/ring_buffer_page.h"

namespace culprit::import_ {
namespace {

constexpr uint32_t kLostEvents = uint32_t{1} << 31;
constexpr uint32_t kLostCountStored = uint32_t{1} << 30;
constexpr uint32_t kCommitBytes = (uint32_t{1} << 27) - 1;

constexpr uint32_t kPadding = 29;
constexpr uint32_t kTimeExtend = 30;
constexpr uint32_t kTimeStamp = 31;
constexpr int kDeltaBits = 27;
// An absolute time has 59 bits; the five above it stay those of the page.
constexpr uint64_t kTimeStampMask = (uint64_t{1} << 59) - 1;
constexpr size_t kMaxPageBytes = size_t{1} << 20;

}  // namespace

void PageLayout::ReadHeaderPage(std::string_view text) {
  for (const EventField& field : ParseFields(text)) {
    if (field.offset > 64) continue;
    if (field.name == "commit" && (field.size == 4 || field.size == 8)) {
      commit_offset = field.offset;
      commit_bytes = field.size;
    } else if (field.name == "data" && field.offset >= 12) {
      data_offset = field.offset;
      const size_t bytes = size_t{field.offset} + field.size;
      if (field.size >= 64 && bytes <= kMaxPageBytes) page_bytes = bytes;
    }
  }
}

PageReader::PageReader(const PageLayout& layout, std::string_view page) : order_(layout.order) {
  if (page.size() < layout.data_offset) {
    damaged_ = !page.empty();
    return;
  }
  time_ = LoadUnsigned(page, 0, 8, order_);
  const auto commit =
      static_cast<uint32_t>(LoadUnsigned(page, layout.commit_offset, layout.commit_bytes, order_));
  size_t bytes = commit & kCommitBytes;
  if (bytes > page.size() - layout.data_offset) {
    bytes = page.size() - layout.data_offset;
    damaged_ = true;
  }
  used_ = page.substr(layout.data_offset, bytes);
  data_offset_ = layout.data_offset;
  lost_ = (commit & kLostEvents) != 0;
  if (lost_ && (commit & kLostCountStored) != 0) {
    lost_count_ = LoadUnsigned(page, layout.data_offset + bytes, layout.commit_bytes, order_);
    if (lost_count_ > UINT32_MAX) lost_count_ = 0;
  }
}

uint32_t PageReader::Word(size_t offset) const {
  return static_cast<uint32_t>(LoadUnsigned(used_, offset, 4, order_));
}

bool PageReader::End(bool damaged) {
  damaged_ = damaged_ || damaged;
  position_ = used_.size();
  return false;
}

bool PageReader::Next(PageEvent& event) {
  while (used_.size() - position_ >= 4) {
    const size_t head_at = position_;
    const uint32_t head = Word(head_at);
    const bool big = order_ == ByteOrder::kBig;
    const uint32_t type = big ? head >> kDeltaBits : head & 31;
    const uint64_t delta = big ? head & kCommitBytes : head >> 5;
    const size_t left = used_.size() - head_at - 4;
    if (type == kPadding && delta == 0) return End(false);
    const bool has_word = type == 0 || type >= kPadding;
    if (has_word && left < 4) return End(true);
    const uint32_t word = has_word ? Word(head_at + 4) : 0;
    if (type == kTimeExtend || type == kTimeStamp) {
      const uint64_t ticks = uint64_t{word} << kDeltaBits | delta;
      time_ = type == kTimeExtend ? time_ + ticks : (time_ & ~kTimeStampMask) | ticks;
      position_ = head_at + 8;
      continue;
    }
    // Data of a long event, like the gap that padding leaves, begins with its
    // own length, which counts itself.
    const size_t bytes = has_word ? (size_t{word} + 3) & ~size_t{3} : size_t{type} * 4;
    if (bytes > left || (has_word && word < 4)) return End(true);
    time_ += delta;
    position_ = head_at + 4 + bytes;
    if (type == kPadding) continue;
    const size_t skip = has_word ? 8 : 4;
    event = {.time = time_,
             .data = used_.substr(head_at + skip, position_ - head_at - skip),
             .offset = data_offset_ + head_at + skip};
    return true;
  }
  return false;
}

}  // namespace culprit::import_
