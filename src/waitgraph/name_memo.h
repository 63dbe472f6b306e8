// SPDX-License-Identifier: Apache-2.0
//
// NameMemo: what a function of a name gave, kept for the next trace. Traces of a
// corpus bring the same thousands of frames again and again; looking a name up
// costs one hash, holding it against tables of globs and suffixes several.
//
// The function must depend on the name alone. Forgets everything when it knows
// kMostNames, so names made up at run time cannot fill memory. One thread at a
// time: meant to be thread_local.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/string_table.h"

namespace culprit::waitgraph {

template <class Value>
class NameMemo {
 public:
  template <class Make>
  Value Of(std::string_view name, Make make) {
    if (values_.size() >= kMostNames) {
      names_ = StringTable();
      values_.clear();
    }
    const StringId id = names_.Intern(name);
    if (id.value == values_.size()) values_.push_back(make(name));
    return values_[id.value];
  }

 private:
  static constexpr size_t kMostNames = 1 << 16;
  StringTable names_;
  std::vector<Value> values_;
};

}  // namespace culprit::waitgraph
