// SPDX-License-Identifier: Apache-2.0
//
// RandomForest: distinct stacks of random frames, in an order that is not canonical,
// for tests. Frames are `first_name` and those behind it, so that forests of one range
// have stacks in common.
#pragma once

#include <deque>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "corpus/call_forest.h"

namespace culprit::corpus {

class RandomForest {
 public:
  RandomForest(std::mt19937_64& random, size_t names, size_t stacks, size_t first_name = 0) {
    for (size_t i = 0; i < names; ++i) {
      texts_.push_back("module!function " + std::to_string(first_name + i));
      forest_.names.push_back(texts_.back());
      forest_.hashes.push_back(HashOfName(texts_.back()));
    }
    std::map<std::pair<uint32_t, uint32_t>, bool> known;
    for (size_t i = 0; i < stacks; ++i) {
      const size_t caller = random() % (forest_.size() + 1);
      const uint32_t parent = caller == forest_.size() ? kNoCall : static_cast<uint32_t>(caller);
      const auto symbol = static_cast<uint32_t>(random() % names);
      if (!known.emplace(std::pair(parent, symbol), true).second) continue;
      forest_.parents.push_back(parent);
      forest_.symbols.push_back(symbol);
    }
  }

  const CallForest& get() const { return forest_; }
  // Its bytes in canonical order, and other names.
  std::string Canonical(const std::vector<std::string_view>& other_names = {}) const {
    ByteWriter out;
    WriteForest(forest_, CanonicalOrder(forest_), other_names, out);
    return out.Take();
  }

 private:
  std::deque<std::string> texts_;
  CallForest forest_;
};

}  // namespace culprit::corpus
