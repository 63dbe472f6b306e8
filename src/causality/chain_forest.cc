// SPDX-License-Identifier: Apache-2.0
#include "causality/chain_forest.h"

#include "base/check.h"

namespace culprit::causality {
namespace {

uint64_t HashChain(const ChainNode& node) {
  uint64_t hash = (uint64_t{node.parent} << 32 | node.first) * 0x9E3779B97F4A7C15U;
  hash ^= hash >> 29;
  hash = (hash ^ (uint64_t{node.second} << 8 | static_cast<uint64_t>(node.kind))) *
         0xFF51AFD7ED558CCDU;
  return hash ^ hash >> 32;
}

}  // namespace

std::string_view Name(ChainKind kind) {
  switch (kind) {
    case ChainKind::kWait:
      return "wait";
    case ChainKind::kDeviceWait:
      return "device wait";
    case ChainKind::kRunning:
      return "running";
    case ChainKind::kHardware:
      return "hardware";
    case ChainKind::kUnexplained:
      return "unexplained";
  }
  return "";
}

ChainIndex ChainForest::Intern(const ChainNode& node) {
  if (nodes_.size() * 2 >= slots_.size()) Grow();
  const size_t mask = slots_.size() - 1;
  for (size_t slot = HashChain(node) & mask;; slot = (slot + 1) & mask) {
    const ChainIndex index = slots_[slot];
    if (index == kNoChain) {
      slots_[slot] = static_cast<ChainIndex>(nodes_.size());
      nodes_.push_back(node);
      return slots_[slot];
    }
    if (nodes_[index] == node) return index;
  }
}

void ChainForest::Grow() {
  CULPRIT_CHECK(nodes_.size() < kNoChain / 4);
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, kNoChain);
  const size_t mask = slots_.size() - 1;
  for (ChainIndex i = 0; i < nodes_.size(); ++i) {
    size_t slot = HashChain(nodes_[i]) & mask;
    while (slots_[slot] != kNoChain) slot = (slot + 1) & mask;
    slots_[slot] = i;
  }
}

}  // namespace culprit::causality
