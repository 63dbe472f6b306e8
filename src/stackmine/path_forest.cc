// SPDX-License-Identifier: Apache-2.0
#include "stackmine/path_forest.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace culprit::stackmine {
namespace {

uint64_t HashNode(const PathNode& node) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t hash = ((uint64_t{node.parent} << 32) | node.stack) * kOdd;
  hash ^= hash >> 29;
  hash += (uint64_t{static_cast<uint8_t>(node.kind)} << 8) | static_cast<uint8_t>(node.wait_class);
  hash *= kOdd;
  return hash ^ (hash >> 32);
}

}  // namespace

// Where a node is, or would be put.
size_t PathForest::Slot(const PathNode& node) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashNode(node) & mask;
  while (slots_[slot] != kNoNode && !(nodes_[slots_[slot]] == node)) slot = (slot + 1) & mask;
  return slot;
}

void PathForest::Grow() {
  slots_.assign(std::max<size_t>(64, std::bit_ceil((nodes_.size() + 1) * 2)), kNoNode);
  for (NodeIndex n = 0; n < nodes_.size(); ++n) slots_[Slot(nodes_[n])] = n;
}

NodeIndex PathForest::Intern(const PathNode& node) {
  CULPRIT_CHECK(node.parent == kNoNode || node.parent < nodes_.size());
  if ((nodes_.size() + 1) * 2 > slots_.size()) Grow();
  NodeIndex& index = slots_[Slot(node)];
  if (index == kNoNode) {
    index = static_cast<NodeIndex>(nodes_.size());
    nodes_.push_back(node);
  }
  return index;
}

// Where they are found is worked out again when the next one comes.
void PathForest::RenumberStacks(const std::vector<StackIndex>& numbers) {
  for (PathNode& node : nodes_) {
    if (node.stack != kNoStack) node.stack = numbers[node.stack];
  }
  slots_.clear();
}

}  // namespace culprit::stackmine
