// SPDX-License-Identifier: Apache-2.0
//
// TextStore: many pieces of text, kept until the store goes. They never move, so the
// views that Store() gives stay valid. They lie one behind the other in chunks which
// begin small and grow with the store; large ones count against the bound on tables, and
// beyond it are in mapped files (large_memory.h). One thread at a time.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit {

class TextStore {
 public:
  TextStore() = default;
  TextStore(TextStore&& other) noexcept { Swap(other); }
  TextStore& operator=(TextStore&& other) noexcept {
    TextStore gone(std::move(other));
    Swap(gone);
    return *this;
  }
  TextStore(const TextStore&) = delete;
  TextStore& operator=(const TextStore&) = delete;
  ~TextStore();

  std::string_view Store(std::string_view text);

 private:
  struct Chunk {
    char* bytes = nullptr;
    size_t size = 0;
  };
  void Swap(TextStore& other) noexcept;

  std::vector<Chunk> chunks_;
  size_t room_ = 0;  // in the last one
};

}  // namespace culprit
