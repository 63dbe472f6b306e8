// SPDX-License-Identifier: Apache-2.0
#include "stackmine/path_forest.h"

#include "base/check.h"

namespace culprit::stackmine {

uint64_t PathForest::Hash::operator()(const PathNode& node) const {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = ((uint64_t{node.parent} << 32) | node.stack) * kOdd;
  hash ^= hash >> 29;
  hash += (uint64_t{static_cast<uint8_t>(node.kind)} << 8) | static_cast<uint8_t>(node.wait_class);
  hash *= kOdd;
  return hash ^ (hash >> 32);
}

NodeIndex PathForest::Intern(const PathNode& node) {
  CULPRIT_CHECK(node.parent == kNoNode || node.parent < nodes_.size());
  const auto [index, added] = index_.Insert(node);
  if (added) {
    *index = static_cast<NodeIndex>(nodes_.size());
    nodes_.push_back(node);
  }
  return *index;
}

}  // namespace culprit::stackmine
