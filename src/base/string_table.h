// SPDX-License-Identifier: Apache-2.0
//
// StringTable: every distinct string once, as a dense StringId in order of
// first appearance. The bytes never move, so a string_view from Get() stays
// valid as long as the table. Strings are bytes: no encoding is assumed and
// NUL is allowed. One thread at a time. Interning costs one hash and on
// average one compare; 24 bytes a string plus its text, which like all large
// tables leave the heap beyond a bound (large_memory.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "base/large_memory.h"
#include "base/text_store.h"

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
  void Grow();

  LargeVector<std::string_view> views_;
  LargeVector<uint32_t> slots_;
  TextStore text_;
};

}  // namespace culprit
