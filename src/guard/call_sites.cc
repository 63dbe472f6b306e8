// SPDX-License-Identifier: Apache-2.0
#include "guard/call_sites.h"

namespace culprit::guard {

void CallSites::UseProcess(uint32_t pid) {
  pid_ = pid;
  known_ = &of_process_[pid];
}

CallOrigin CallSites::Resolve(uint64_t return_address) {
  const CodeAddress place = code_->Resolve(pid_, return_address);
  if (place.module == kNoIndex || code_->modules()[place.module].build_id.empty()) return {};
  const auto [found, made] = numbers_.try_emplace(place, static_cast<uint32_t>(callers_.size()));
  if (made) callers_.push_back({place.module, place.offset});
  // What follows a call that does not return may be another function.
  const CodeAddress call = {place.module, place.offset > 0 ? place.offset - 1 : 0};
  return {found->second, code_->FunctionAt(call)};
}

}  // namespace culprit::guard
