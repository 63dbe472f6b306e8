// SPDX-License-Identifier: Apache-2.0
#include "base/text_store.h"

#include <algorithm>
#include <cstring>

#include "base/large_memory.h"

namespace culprit {
namespace {

constexpr size_t kFirstChunk = 64 * 1024;
constexpr size_t kLargestChunk = 16 * LargeMemory::kLargeBytes;

}  // namespace

TextStore::~TextStore() {
  for (const Chunk& chunk : chunks_) LargeMemory::Free(chunk.bytes, chunk.size);
}

void TextStore::Swap(TextStore& other) noexcept {
  std::swap(chunks_, other.chunks_);
  std::swap(room_, other.room_);
}

std::string_view TextStore::Store(std::string_view text) {
  if (text.empty()) return {};
  if (room_ < text.size()) {
    const size_t grown =
        chunks_.empty() ? kFirstChunk : std::min(kLargestChunk, 2 * chunks_.back().size);
    const size_t size = std::max(grown, text.size());
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back({.bytes = static_cast<char*>(LargeMemory::Allocate(size)), .size = size});
    room_ = size;
  }
  char* place = chunks_.back().bytes + (chunks_.back().size - room_);
  std::memcpy(place, text.data(), text.size());
  room_ -= text.size();
  return {place, text.size()};
}

}  // namespace culprit
