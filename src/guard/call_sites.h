// SPDX-License-Identifier: Apache-2.0
//
// CallSites: the places that functions were called from, as the training logs
// say by return addresses, numbered in the order of their first appearance
// whatever process they are seen in. Places of modules without a build-id, or of
// none, have no number.
//
// The code must outlive it. One thread; a hash lookup an address.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/flat_map.h"
#include "guard/profile.h"
#include "guard/session_code.h"

namespace culprit::guard {

struct CallOrigin {
  uint32_t caller = kNoIndex;    // number of the place
  uint32_t function = kNoIndex;  // that it lies in
};

class CallSites {
 public:
  explicit CallSites(const SessionCode& code) : code_(&code) {}

  // Addresses are the process's from here on.
  void UseProcess(uint32_t pid);
  // kNoIndex: not known. Not before UseProcess.
  CallOrigin OriginOf(uint64_t return_address) {
    const auto [origin, made] = known_->Insert(return_address);
    if (made) *origin = Resolve(return_address);
    return *origin;
  }
  const std::vector<ProfileCaller>& callers() const { return callers_; }

 private:
  CallOrigin Resolve(uint64_t return_address);

  const SessionCode* code_;
  uint32_t pid_ = 0;
  FlatMap<uint64_t, CallOrigin>* known_ = nullptr;
  std::map<uint32_t, FlatMap<uint64_t, CallOrigin>> of_process_;
  std::map<CodeAddress, uint32_t> numbers_;
  std::vector<ProfileCaller> callers_;
};

}  // namespace culprit::guard
