// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "import/source.h"

namespace culprit::import_ {

Result<std::string_view> BytesReader::Peek(size_t count) {
  const uint64_t have_end = buffer_offset_ + buffer_.size();
  const bool have = offset_ >= buffer_offset_ && offset_ <= have_end && have_end - offset_ >= count;
  if (!have && offset_ < bytes_.size()) {
    const uint64_t left = bytes_.size() - offset_;
    const auto wanted =
        static_cast<size_t>(std::min<uint64_t>(left, std::max(count, buffer_bytes_)));
    // What is beyond the buffer but promised may be missing: a file cut short
    // while it is read. The buffer then simply ends early.
    CULPRIT_TRY(bytes_.ReadAt(offset_, wanted, buffer_));
    buffer_offset_ = offset_;
  }
  if (offset_ < buffer_offset_ || offset_ >= buffer_offset_ + buffer_.size()) {
    return std::string_view();
  }
  return std::string_view(buffer_).substr(offset_ - buffer_offset_, count);
}

void BytesReader::Skip(uint64_t count) {
  const uint64_t left = bytes_.size() - std::min(offset_, bytes_.size());
  offset_ += std::min(count, left);
}

Result<bool> BytesReader::Line(std::string& line, size_t max_line) {
  line.clear();
  cut_ = false;
  bool any = false;
  while (!AtEnd()) {
    CULPRIT_ASSIGN(const std::string_view first, Peek(1));
    if (first.empty()) {
      offset_ = bytes_.size();
      break;
    }
    any = true;
    const std::string_view rest = std::string_view(buffer_).substr(offset_ - buffer_offset_);
    const auto* end = static_cast<const char*>(std::memchr(rest.data(), '\n', rest.size()));
    const size_t length = end == nullptr ? rest.size() : static_cast<size_t>(end - rest.data());
    const size_t room = max_line - std::min(max_line, line.size());
    line.append(rest.substr(0, std::min(length, room)));
    cut_ = cut_ || length > room;
    offset_ += length;
    if (end != nullptr) {
      ++offset_;
      break;
    }
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return any;
}

}  // namespace culprit::import_
