// SPDX-License-Identifier: Apache-2.0
#include "causality/tuple.h"

#include <algorithm>

namespace culprit::causality {
namespace {

enum Role : uint32_t { kWaitRole = 0, kUnwaitRole = 1, kRunningRole = 2 };
constexpr uint32_t kRoles = 4;

}  // namespace

TupleId TupleTable::With(TupleId tuple, const ChainNode& node) {
  const auto add = [&](SignatureId signature, Role role) {
    if (signature != kNoSignature) tuple = sets_.With(tuple, signature * kRoles + role);
  };
  switch (node.kind) {
    case ChainKind::kWait:
      add(node.first, kWaitRole);
      add(node.second, kUnwaitRole);
      break;
    case ChainKind::kDeviceWait:
    case ChainKind::kRunning:
    case ChainKind::kHardware:
      add(node.first, kRunningRole);
      break;
    case ChainKind::kUnexplained:
      break;
  }
  return tuple;
}

SignatureTuple TupleTable::Names(TupleId tuple, const Evidence& evidence) const {
  SignatureTuple names;
  for (const uint32_t item : sets_.Items(tuple)) {
    std::vector<std::string>* set = &names.running;
    if (item % kRoles == kWaitRole) set = &names.wait;
    if (item % kRoles == kUnwaitRole) set = &names.unwait;
    set->emplace_back(evidence.Signature(item / kRoles));
  }
  for (auto* set : {&names.wait, &names.unwait, &names.running}) {
    std::sort(set->begin(), set->end());
  }
  return names;
}

}  // namespace culprit::causality
