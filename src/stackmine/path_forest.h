// SPDX-License-Identifier: Apache-2.0
//
// PathForest: the critical paths of many instances, laid over each other. A node
// is a stack that waited, ran or was ready, below the waits it explains; two
// instances that were slow along the same chain of stacks share its nodes. What
// an instance spent at a node is kept outside, as rows (evidence.h). A parent
// has a smaller number than its children. 12 bytes a node plus its index entry.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_memory.h"
#include "stackmine/stack_table.h"
#include "waitgraph/wait_class.h"

namespace culprit::stackmine {

enum class PathKind : uint8_t {
  kWait,
  kRunning,
  kNotSampled,  // ran without a sample: known by thread alone
  kReady,       // woken, not yet running; the stack is that of the wait before
  kPreempted,   // ready without having waited
  kHardware,    // a device, timer or interrupt; the stack is its name
};

using NodeIndex = uint32_t;
inline constexpr NodeIndex kNoNode = UINT32_MAX;

struct PathNode {
  NodeIndex parent = kNoNode;
  StackIndex stack = kNoStack;
  PathKind kind = PathKind::kWait;
  waitgraph::WaitClass wait_class = waitgraph::WaitClass::kOther;  // of a wait

  bool operator==(const PathNode&) const = default;
};

class PathForest {
 public:
  NodeIndex Intern(const PathNode& node);
  // Stacks have other numbers now; by old number, the new one. No two may become equal.
  void RenumberStacks(const std::vector<StackIndex>& numbers);
  const LargeVector<PathNode>& nodes() const { return nodes_; }

 private:
  size_t Slot(const PathNode& node) const;
  void Grow();

  LargeVector<PathNode> nodes_;
  LargeVector<NodeIndex> slots_;  // where nodes_ are found by their hash, or kNoNode
};

}  // namespace culprit::stackmine
