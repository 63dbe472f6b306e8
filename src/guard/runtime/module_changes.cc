// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/module_changes.h"

#include <link.h>
#include <sys/single_threaded.h>

#include <atomic>

#include "guard/runtime/process.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kLookNs = 50'000'000;

std::atomic<uint64_t> g_next_look_ticks;
uint64_t g_changes = 0;

int TakeCounters(dl_phdr_info* info, size_t, void* sum) {
  *static_cast<uint64_t*>(sum) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

// True in the process that the session began in, and in its children as long as
// nobody made threads.
bool IsLoaderUsable() { return ParentPid() == 0 || __libc_single_threaded != 0; }

}  // namespace

bool MayModulesHaveChanged(uint64_t now) {
  return now >= g_next_look_ticks.load(std::memory_order_relaxed);
}

bool HaveModulesChanged() {
  g_next_look_ticks.store(ReadTicks() + TicksOfNs(kLookNs), std::memory_order_relaxed);
  if (!IsLoaderUsable()) return false;
  uint64_t changes = 0;
  dl_iterate_phdr(TakeCounters, &changes);
  const bool changed = g_changes != 0 && changes != g_changes;
  g_changes = changes;
  return changed;
}

}  // namespace culprit::guard::runtime
