// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/session.h"

#include <cerrno>

#include "guard/runtime/detours.h"
#include "guard/runtime/entry_hooks.h"
#include "guard/runtime/known_modules.h"
#include "guard/runtime/module_changes.h"
#include "guard/runtime/process.h"
#include "guard/runtime/sample_batch.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_tracker.h"
#include "guard/runtime/vector_state.h"
#include "guard/runtime/violation_report.h"

namespace culprit::guard::runtime {

namespace {

const wire::Control* g_control = nullptr;
std::atomic<uint32_t> g_answered;  // the number that was last wanted
std::atomic<bool> g_work;
std::atomic<bool> g_busy;
uint32_t g_generation = 0;
bool g_started = false;

// Nobody waits for it: who finds it taken leaves the work to its holder.
class SessionLock {
 public:
  SessionLock() : held_(!g_busy.exchange(true, std::memory_order_acquire)), errno_(errno) {}
  ~SessionLock() {
    if (!held_) return;
    errno = errno_;
    g_busy.store(false, std::memory_order_release);
  }
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;
  bool held() const { return held_; }

 private:
  bool held_;
  int errno_;
};

void Tell(wire::RecordKind kind) {
  Process& process = ThisProcess();
  if (process.stage.load(std::memory_order_acquire) != Process::kMade) return;
  WriteToRing([kind](wire::Cell& cell) {
    cell.kind = static_cast<uint32_t>(kind);
    cell.count = 0;
  });
}

void TellOfPlan() {
  PublishCounters();
  Tell(wire::RecordKind::kPlanLoaded);
}

// What learning needs to understand the log. Who only guards leaves nothing behind, not
// even for every connection a file.
void WriteCode(const LoadedPlan& plan) {
  if (plan.mode != wire::Mode::kTrain) return;
  WriteModules();
  WriteFunctions();
}

void Count(const LoadedPlan& plan, const HookCounts& counts) {
  PatchCounters& counters = Counters();
  counters.plan.store(plan.number);
  counters.patched.store(counts.patched);
  counters.refused.store(counts.refused);
  counters.foreign_modules.store(plan.foreign_modules);
  FillIslands(counters.islands);
}

// The entries of the training lead to a log that nobody writes from here on.
bool PutTrainingInForce(const LoadedPlan& plan) {
  StartTraining(plan.view.header().log_bytes, plan.view.header().log_times != 0);
  g_near.plan.store(&plan);
  const HookCounts counts = InstallTraining(plan);
  Count(plan, counts);
  return counts.writable;
}

bool PutGuardsInForce(const LoadedPlan& plan) {
  if (IsTraining() || HasTrainingEnded()) {
    EndAllLogs();
    StopTraining();
  }
  g_near.plan.store(&plan);
  HookCounts counts;
  if (plan.mode == wire::Mode::kOff) {
    EndEntryHooks();
  } else {
    counts = InstallGuards(plan);
  }
  Count(plan, counts);
  return counts.writable;
}

bool PutInForce(const LoadedPlan& plan) {
  const uint32_t detours = SetDetours(plan);
  const bool patched =
      plan.mode == wire::Mode::kTrain ? PutTrainingInForce(plan) : PutGuardsInForce(plan);
  return patched && detours > 0;
}

// What threads have not told yet is told, and that it was the last.
void TellTheEnd() {
  ForEachThread([](ThreadState& state) {
    PublishUnits(state);
    FlushSamples(state);
  });
  Process& process = ThisProcess();
  if (process.stage.load(std::memory_order_acquire) == Process::kMade) {
    process.header->ended.store(1);
  }
}

// From here on what is still patched leads to nothing.
void EndPlan() {
  if (IsTraining()) EndAllLogs();
  StopTraining();
  g_near.plan.store(nullptr);
}

void RemoveAll() {
  EndPlan();
  RefreshModules();
  RemoveEverything();
  ForgetDetours();
  ForEachThread([](ThreadState& state) {
    if (state.slot != nullptr) state.slot->begin_ticks = 0;
  });
  TellTheEnd();
}

// The session that is in force is over, and no thread has come by to see it.
bool HasEnded() {
  return g_near.plan.load() != nullptr && g_control->wanted.load() == wire::kRemove;
}

void RemoveEnded() {
  ThreadState* state = ThisThread();
  if (state == nullptr || state->odd.in_runtime) return;
  const UnloggedWork work(*state);
  g_answered.store(wire::kRemove);
  RemoveAll();
}

void ChangePlan(uint32_t wanted) {
  if (wanted == wire::kRemove) return RemoveAll();
  RefreshModules();
  const LoadedPlan* plan = LoadPlan(wanted, ++g_generation);
  // A plan that cannot be used leaves the old one as it is.
  if (plan == nullptr || !plan->concerns_us) return;
  PutInForce(*plan);
  WriteCode(*plan);
  TellOfPlan();
}

// Guards that cost more than their share.
void RemoveExcessive(const LoadedPlan& plan) {
  for (const GuardRecord& guard : plan.guards) {
    if (!guard.excessive.load() || guard.removed.exchange(true)) continue;
    RemoveGuards({&guard.entry, 1});
    Counters().removed.fetch_add(1);
    Counters().patched.fetch_sub(1);
  }
  PublishCounters();
}

// Modules came or went: the plan's places are found anew.
void FollowModules(const LoadedPlan& plan) {
  if (!RefreshModules()) return;
  if (plan.mode == wire::Mode::kTrain) WriteModules();
  Tell(wire::RecordKind::kModules);
  if (plan.mode == wire::Mode::kTrain && HasTrainingEnded()) return;
  const LoadedPlan* fresh = LoadPlan(plan.number, ++g_generation);
  if (fresh == nullptr || !fresh->concerns_us) return;
  PutInForce(*fresh);
  PublishCounters();
  WriteCode(*fresh);
}

}  // namespace

void AskForWork() { g_work.store(true, std::memory_order_relaxed); }

bool HasWork(uint64_t now) {
  return g_control->wanted.load(std::memory_order_relaxed) !=
             g_answered.load(std::memory_order_relaxed) ||
         g_work.load(std::memory_order_relaxed) || MayModulesHaveChanged(now);
}

void DoWork() {
  if (AreSystemCallsSealed()) return;
  const SessionLock lock;
  if (!lock.held()) return;
  ThreadState* state = ThisThread();
  if (state == nullptr || state->odd.in_runtime) return;
  const UnloggedWork work(*state);
  g_work.store(false);
  const uint32_t wanted = g_control->wanted.load();
  if (wanted != g_answered.load()) {
    g_answered.store(wanted);
    ChangePlan(wanted);
  }
  const LoadedPlan* plan = g_near.plan.load();
  if (plan != nullptr && HaveModulesChanged()) FollowModules(*plan);
  plan = g_near.plan.load();
  if (plan != nullptr && plan->mode != wire::Mode::kTrain) RemoveExcessive(*plan);
  if (plan != nullptr && plan->mode == wire::Mode::kTrain && HasTrainingEnded()) EndEntryHooks();
}

void LookBeforeProcessesOrThreads() {
  if (CurrentPlan() != nullptr) DoWork();
}

SessionFailure StartSession(const char* folder) {
  const SessionLock lock;
  if (!lock.held()) return SessionFailure::kAlready;
  if (HasEnded()) RemoveEnded();
  if (g_near.plan.load() != nullptr) return SessionFailure::kAlready;
  if (!OpenSessionFolder(folder)) return SessionFailure::kNoFolder;
  const auto* control =
      static_cast<const wire::Control*>(MapForReading("control", sizeof(wire::Control)));
  if (control == nullptr || control->magic != wire::Magic("CGCTRL01") ||
      control->version != wire::kWireVersion) {
    return SessionFailure::kNoControl;
  }
  const uint32_t wanted = control->wanted.load();
  if (wanted == 0 || wanted == wire::kRemove) return SessionFailure::kNoPlan;
  if (!g_started) PrepareClock();
  FindThreadWords();
  FindVectorState();
  if (!MakeProcessMemory()) return SessionFailure::kNoMemory;
  RefreshModules();
  const LoadedPlan* plan = LoadPlan(wanted, ++g_generation);
  if (plan == nullptr || !plan->concerns_us) return SessionFailure::kNoPlan;
  // A second session in this process: its files are new ones.
  if (g_started) ForgetProcessFiles();
  if (!FindDetouredCalls()) return SessionFailure::kNotPatched;
  if (!g_started) MakePatcher();
  g_started = true;
  g_control = control;
  ListenTo(control);
  g_answered.store(wanted);
  WatchThreadEnds();
  HaveModulesChanged();
  if (!EnsureProcess()) return SessionFailure::kNoMemory;
  if (!PutInForce(*plan)) {
    RemoveAll();
    return SessionFailure::kNotPatched;
  }
  WriteCode(*plan);
  TellOfPlan();
  return SessionFailure::kNone;
}

void StopSession() {
  if (!g_started || g_near.plan.load() == nullptr || AreSystemCallsSealed()) return;
  const SessionLock lock;
  if (lock.held()) RemoveAll();
}

// A forked child's code is a copy that goes with it: to restore it would cost
// every connection of some servers half a millisecond.
void EndSessionAtExit() {
  if (!g_started || g_near.plan.load() == nullptr || AreSystemCallsSealed()) return;
  const SessionLock lock;
  if (!lock.held()) return;
  if (ParentPid() == 0) return RemoveAll();
  EndPlan();
  // Its guards may still be hit, by what else runs at exit.
  if (ThreadState* state = KnownThread(); state != nullptr) DropUnit(*state);
  TellTheEnd();
}

void SealSession() {
  if (g_started && !AreSystemCallsSealed()) {
    ReserveFiles();
    if (IsTraining()) EndAllLogs();
    StopTraining();
  }
  SealSystemCalls();
}

}  // namespace culprit::guard::runtime
