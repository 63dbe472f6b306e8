// SPDX-License-Identifier: Apache-2.0
#include "record/haste.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "record/machine.h"

namespace culprit::record {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr int kBehindOthers = 5;
constexpr int kBeforeOthers = -5;  // where real-time priority may not be had

// Before all others, but not by a high weight among them: where threads share CPUs by
// groups (sessions, cgroups), a heavy one draws the weight of its group to its own CPU,
// and its neighbours, perhaps those recorded, starve on the others.
bool Raise(pid_t tid) {
  const sched_param first = {.sched_priority = 1};
  if (sched_setscheduler(tid, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0) return true;
  return setpriority(PRIO_PROCESS, static_cast<id_t>(tid), kBeforeOthers) == 0;
}

void Lower(pid_t tid, int nice) {
  const sched_param usual = {.sched_priority = 0};
  sched_setscheduler(tid, SCHED_OTHER, &usual);
  setpriority(PRIO_PROCESS, static_cast<id_t>(tid), nice);
}

// Signals are for the thread that records.
std::thread WithoutSignals(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Haste::Haste(std::function<double()> ring_fill)
    : ring_fill_(std::move(ring_fill)),
      tid_(static_cast<pid_t>(syscall(SYS_gettid))),
      seen_ns_(MonotonicNs()) {
  // Who could not be raised again is not lowered.
  if (Raise(tid_)) watch_ = WithoutSignals([this] { Watch(); });
}

Haste::~Haste() {
  if (!watch_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  watch_.join();
  Lower(tid_, 0);
}

void Haste::Seen() { seen_ns_.store(MonotonicNs(), std::memory_order_relaxed); }

bool Haste::IsBehind() const {
  return ring_fill_() >= kBehindFill ||
         MonotonicNs() - seen_ns_.load(std::memory_order_relaxed) > kLateNs;
}

void Haste::Watch() {
  Raise(0);
  bool raised = true;
  int64_t behind_ns = MonotonicNs();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kLook, [this] { return end_; })) {
    const int64_t now_ns = MonotonicNs();
    if (IsBehind()) {
      behind_ns = now_ns;
      if (!raised) Raise(tid_);
      raised = true;
    } else if (raised && now_ns - behind_ns >= kCalmNs) {
      Lower(tid_, kBehindOthers);
      raised = false;
    }
  }
}

void UseUsualPriority() { Lower(0, 0); }

}  // namespace culprit::record
