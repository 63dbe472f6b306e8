// SPDX-License-Identifier: Apache-2.0
//
// ChainForest: places on chains of waits, by signature (003 §4.1, the nodes of an
// aggregated wait graph without their costs). A node is its parent, its kind and
// its signatures, and each distinct one is there once, so two chains with a common
// prefix of signatures share its nodes. Parents have smaller numbers than their
// children.
//
//   kind         signatures               what
//   wait         first: wait, second: unwait   a wait that a thread ended
//   device wait  first: wait, second: device   a wait that a device ended: the code
//                                         that used the device, as if it ran there
//   running      first: running           code
//   hardware     first: device            what the device did meanwhile: "DiskService"
//   unexplained  -                        of a wait that nothing in the trace explains
//
// A node whose code is not of the component has no signature. One thread at a
// time; interning is one hash probe, 20 bytes a node.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/large_memory.h"
#include "causality/component.h"

namespace culprit::causality {

enum class ChainKind : uint8_t { kWait, kDeviceWait, kRunning, kHardware, kUnexplained };
std::string_view Name(ChainKind kind);

using ChainIndex = uint32_t;
inline constexpr ChainIndex kNoChain = UINT32_MAX;

struct ChainNode {
  ChainIndex parent = kNoChain;  // kNoChain: a root
  SignatureId first = kNoSignature;
  SignatureId second = kNoSignature;
  ChainKind kind = ChainKind::kRunning;

  bool operator==(const ChainNode&) const = default;
};

class ChainForest {
 public:
  ChainIndex Intern(const ChainNode& node);
  const LargeVector<ChainNode>& nodes() const { return nodes_; }

 private:
  void Grow();

  LargeVector<ChainNode> nodes_;
  LargeVector<ChainIndex> slots_;
};

}  // namespace culprit::causality
