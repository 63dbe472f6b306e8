// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/detours.h"

#include <dlfcn.h>

#include "guard/runtime/entry_hooks.h"
#include "guard/runtime/mapped_array.h"

namespace culprit::guard::runtime {
namespace {

struct FoundCall {
  DetouredCall call;
  uint64_t entry;
  bool in_force;
};

constexpr size_t kMaxCalls = 96;
FoundCall g_calls[kMaxCalls];
size_t g_call_count = 0;

// Two names may be one function (pselect and __pselect): it is detoured once.
bool IsKnown(uint64_t entry) {
  for (size_t i = 0; i < g_call_count; ++i) {
    if (g_calls[i].entry == entry) return true;
  }
  return false;
}

void Find(void* library, std::span<const DetouredCall> calls) {
  for (const DetouredCall& call : calls) {
    const auto entry = reinterpret_cast<uint64_t>(dlsym(library, call.name));
    if (entry == 0 || IsKnown(entry) || g_call_count == kMaxCalls) continue;
    g_calls[g_call_count++] = {call, entry, false};
  }
}

bool IsWanted(const LoadedPlan& plan, uint32_t use) {
  if (use == DetouredCall::kAlways || plan.mode == wire::Mode::kTrain) return true;
  // Between plans: at a wait the next one is noticed.
  if (plan.mode == wire::Mode::kOff) return use != DetouredCall::kTrainingOnly;
  return use != DetouredCall::kTrainingOnly && (plan.calls >> use & 1) != 0;
}

}  // namespace

bool FindDetouredCalls() {
  if (g_call_count != 0) return true;
  void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  Find(library, WaitCalls());
  Find(library, WakeCalls());
  Find(library, ProcessCalls());
  dlclose(library);
  // Where the program has it.
  if (void* aio = dlopen("libaio.so.1", RTLD_LAZY | RTLD_NOLOAD); aio != nullptr) {
    Find(aio, WaitCalls());
    dlclose(aio);
  }
  return g_call_count != 0;
}

uint32_t SetDetours(const LoadedPlan& plan) {
  MappedArray<DetourRequest> requests;
  MappedArray<uint64_t> unwanted;
  uint32_t in_force = 0;
  for (size_t i = 0; i < g_call_count; ++i) {
    FoundCall& found = g_calls[i];
    const bool wanted = IsWanted(plan, found.call.use);
    if (wanted && found.in_force) {
      ++in_force;
    } else if (wanted) {
      requests.Append({found.entry, found.call.replacement, found.call.original, false});
    } else if (found.in_force) {
      unwanted.Append(found.entry);
      found.in_force = false;
    }
  }
  in_force += InstallDetours(requests.span());
  for (const DetourRequest& request : requests) {
    for (size_t i = 0; i < g_call_count; ++i) {
      if (g_calls[i].entry == request.entry) g_calls[i].in_force = request.done;
    }
  }
  RemoveDetours(unwanted.span());
  return in_force;
}

void ForgetDetours() {
  for (size_t i = 0; i < g_call_count; ++i) g_calls[i].in_force = false;
}

}  // namespace culprit::guard::runtime
