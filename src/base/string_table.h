// SPDX-License-Identifier: Apache-2.0
//
// StringTable: every distinct string once, as a dense StringId in order of
// first appearance. The bytes live in chunks that never move, so a
// string_view from Get() stays valid as long as the table. Strings are bytes:
// no encoding is assumed and NUL is allowed. One thread at a time. Interning
// costs one hash and on average one compare; 16 bytes a string plus its text.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace culprit {

using StringId = Id<struct StringTag>;

class StringTable {
 public:
  StringTable() = default;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  StringId Intern(std::string_view text);
  // The id of a string already interned, or none().
  StringId Find(std::string_view text) const;
  // The empty string for none().
  std::string_view Get(StringId id) const;
  size_t size() const { return views_.size(); }

 private:
  size_t Slot(std::string_view text) const;
  std::string_view Store(std::string_view text);
  void Grow();

  std::vector<std::string_view> views_;
  std::vector<uint32_t> slots_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_used_ = 0;
  size_t chunk_size_ = 0;
};

}  // namespace culprit
