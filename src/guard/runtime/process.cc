// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/process.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "guard/runtime/entry_hooks.h"
#include "guard/runtime/known_modules.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

constexpr size_t kProcessBytes = 4096;
constexpr size_t kSlotsBytes = wire::kSlotsOffset + wire::kMaxThreads * sizeof(wire::UnitSlot);
constexpr size_t kRingBytes = wire::kRingOffset + size_t{wire::kRingCells} * wire::kCellBytes;
// What a process of few threads needs that is not long there.
constexpr size_t kFrontOfSlots = 16 << 10;
constexpr size_t kFrontOfRing = 32 << 10;
static_assert(sizeof(Process) <= kProcessBytes);

uint8_t* g_memory = nullptr;
uint32_t g_last_pid = 0;  // not wiped: a child finds its parent's
PatchCounters g_counters;

bool MakeFiles(Process& process) {
  const auto pid = static_cast<uint32_t>(RawGetPid());
  if (!process.slots_area.Create("slots.", pid, kSlotsBytes, kFrontOfSlots)) return false;
  if (!process.ring_area.Create("ring.", pid, kRingBytes, kFrontOfRing)) {
    process.slots_area.Unmap();
    return false;
  }
  uint8_t* const slots = process.slots_area.memory();
  uint8_t* const ring = process.ring_area.memory();
  process.ring = reinterpret_cast<wire::RingHeader*>(ring);
  process.cells = reinterpret_cast<wire::Cell*>(ring + wire::kRingOffset);
  process.ring->version = wire::kWireVersion;
  process.ring->cells = wire::kRingCells;
  __atomic_store_n(&process.ring->magic, wire::Magic("CGRING01"), __ATOMIC_RELEASE);

  process.header = reinterpret_cast<wire::SlotsHeader*>(slots);
  process.slots = reinterpret_cast<wire::UnitSlot*>(slots + wire::kSlotsOffset);
  process.parent_pid = ParentPid();
  process.pid = pid;
  process.header->version = wire::kWireVersion;
  process.header->pid = pid;
  process.header->parent_pid = process.parent_pid;
  process.header->base_ticks = g_tick_scale.base_ticks;
  process.header->base_ns = g_tick_scale.base_ns;
  process.header->ticks_mult = g_tick_scale.ticks_mult;
  __atomic_store_n(&process.header->magic, wire::Magic("CGSLOT01"), __ATOMIC_RELEASE);
  return true;
}

}  // namespace

bool MakeProcessMemory() {
  if (g_memory != nullptr) return true;
  const size_t bytes = kProcessBytes + wire::kMaxThreads * sizeof(ThreadState);
  void* memory = MapMemory(bytes);
  if (memory == nullptr) return false;
  if (RawSyscall(SYS_madvise, Word(memory), static_cast<long>(bytes), MADV_WIPEONFORK) != 0) {
    RawUnmap(memory, bytes);
    return false;
  }
  g_memory = static_cast<uint8_t*>(memory);
  g_last_pid = static_cast<uint32_t>(RawGetPid());
  return true;
}

Process& ThisProcess() { return *reinterpret_cast<Process*>(g_memory); }

ThreadState* ThreadStates() { return reinterpret_cast<ThreadState*>(g_memory + kProcessBytes); }

uint32_t ParentPid() {
  const Process& process = ThisProcess();
  if (process.pid != 0) return process.parent_pid;
  return g_last_pid == static_cast<uint32_t>(RawGetPid()) ? 0 : g_last_pid;
}

bool EnsureProcess() {
  Process& process = ThisProcess();
  uint32_t stage = process.stage.load(std::memory_order_acquire);
  if (stage != Process::kNothing) return stage == Process::kMade;
  if (!process.stage.compare_exchange_strong(stage, Process::kBeingMade)) return false;
  const bool made = MakeFiles(process) && (!IsTraining() || WriteModules());
  process.stage.store(made ? Process::kMade : Process::kFailed, std::memory_order_release);
  if (made) {
    if (IsTraining()) WriteFunctions();
    PublishCounters();
    g_last_pid = process.pid;
  }
  return made;
}

void ReserveFiles() {
  Process& process = ThisProcess();
  if (process.stage.load(std::memory_order_acquire) != Process::kMade) return;
  process.slots_area.ReachAll();
  process.ring_area.ReachAll();
}

void ForgetProcessFiles() {
  ForEachThread([](ThreadState& state) {
    state.slot = nullptr;
    state.plan = nullptr;
    state.log_file.Close();
    state.lost_bytes = 0;
    state.sample_count = 0;
    // The next log has none of these.
    std::fill(std::begin(state.seen_stacks), std::end(state.seen_stacks), 0);
    state.stacks = 0;
  });
  Process& process = ThisProcess();
  process.log_bytes.store(0);
  process.pid = 0;
  process.stage.store(Process::kNothing);
}

void RemoveFilesOfLauncher() {
  Process& process = ThisProcess();
  if (process.stage.load() != Process::kMade || process.pid != static_cast<uint32_t>(RawGetPid())) {
    return;
  }
  bool waited = false;
  ForEachThread([&](const ThreadState& state) { waited = waited || state.saw_wait; });
  if (waited) return;
  for (const char* kind : {"slots.", "ring.", "modules.", "functions."}) {
    RemoveSessionFile(FileName(kind).Add(process.pid).text());
  }
  ForgetProcessFiles();
}

void WipeAfterFork() {
  Process& process = ThisProcess();
  if (process.pid == 0 && process.states_used.load() == 0) return;
  const uint32_t used = process.states_used.load();
  memset(static_cast<void*>(ThreadStates()), 0, used * sizeof(ThreadState));
  memset(static_cast<void*>(&process), 0, sizeof(process));
}

bool EnsureSlot(ThreadState& state) {
  if (state.slot != nullptr) return true;
  if (!EnsureProcess()) return false;
  Process& process = ThisProcess();
  const size_t end = wire::kSlotsOffset + (state.index + size_t{1}) * sizeof(wire::UnitSlot);
  if (!process.slots_area.Reach(end)) return false;
  wire::UnitSlot* slot = process.slots + state.index;
  std::atomic<uint32_t>& used = process.header->slots;
  for (uint32_t seen = used.load(); seen <= state.index;) {
    if (used.compare_exchange_weak(seen, state.index + 1)) break;
  }
  slot->tid.store(state.tid.load(std::memory_order_relaxed), std::memory_order_release);
  state.slot = slot;
  state.published_units = slot->units;  // of the thread that had it before
  return true;
}

PatchCounters& Counters() { return g_counters; }

void PublishUnits(ThreadState& state) {
  if (state.slot == nullptr || state.slot->units == state.published_units) return;
  const uint64_t units = state.slot->units;
  ThisProcess().header->units.fetch_add(units - state.published_units, std::memory_order_relaxed);
  state.published_units = units;
}

void PublishCounters() {
  const Process& process = ThisProcess();
  if (process.stage.load(std::memory_order_acquire) != Process::kMade) return;
  wire::SlotsHeader& header = *process.header;
  header.plan = g_counters.plan.load();
  header.patched = g_counters.patched.load();
  header.refused = g_counters.refused.load();
  header.removed = g_counters.removed.load();
  header.foreign_modules = g_counters.foreign_modules.load();
  for (uint32_t i = 0; i < wire::kIslands; ++i) header.islands[i] = g_counters.islands[i].load();
}

}  // namespace culprit::guard::runtime
