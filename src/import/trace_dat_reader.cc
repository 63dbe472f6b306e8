// SPDX-License-Identifier: Apache-2.0
#include "import/trace_dat_reader.h"

namespace culprit::import_ {

std::string TraceDatReader::Blob(uint64_t size) {
  const uint64_t left = bytes_.size() - std::min(bytes_.size(), input_.offset());
  if (failed_ || size > left || size > kMaxBlob) {
    failed_ = true;
    return {};
  }
  const Result<std::string_view> got = input_.Peek(static_cast<size_t>(size));
  if (!got.ok() || got.value().size() < size) {
    failed_ = true;
    return {};
  }
  std::string blob(got.value());
  input_.Skip(size);
  return blob;
}

std::string TraceDatReader::String(size_t max_bytes) {
  if (failed_) return {};
  const Result<std::string_view> got = input_.Peek(max_bytes + 1);
  const size_t end = got.ok() ? got.value().find('\0') : std::string_view::npos;
  if (end == std::string_view::npos) {
    failed_ = true;
    return {};
  }
  std::string text(got.value().substr(0, end));
  input_.Skip(end + 1);
  return text;
}

}  // namespace culprit::import_
