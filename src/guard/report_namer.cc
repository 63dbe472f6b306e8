// SPDX-License-Identifier: Apache-2.0
#include "guard/report_namer.h"

#include <signal.h>
#include <sys/resource.h>

#include <utility>

#include "guard/cpu_meter.h"

namespace culprit::guard {

ReportNamer::~ReportNamer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReportNamer::Add(UnnamedReport report) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(report));
  }
  changed_.notify_all();
  if (thread_.joinable()) return;
  // Signals are the first thread's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::vector<UnitReport> ReportNamer::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(named_, {});
}

std::vector<UnitReport> ReportNamer::TakeAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !naming_; });
  return std::exchange(named_, {});
}

void ReportNamer::Work() {
  // What is urgent is to look; this is not.
  if (getpriority(PRIO_PROCESS, 0) < 0) setpriority(PRIO_PROCESS, 0, 0);
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    UnnamedReport unnamed = std::move(waiting_.front());
    waiting_.pop_front();
    naming_ = true;
    lock.unlock();
    UnitReport report = Name(std::move(unnamed));
    cpu_ns_.store(ThreadCpuNs(), std::memory_order_relaxed);
    lock.lock();
    naming_ = false;
    named_.push_back(std::move(report));
    changed_.notify_all();
  }
}

UnitReport ReportNamer::Name(UnnamedReport unnamed) {
  UnitReport report = std::move(unnamed.report);
  for (const UnnamedStack& stack : unnamed.stacks) {
    SeenStack seen;
    seen.by = stack.by;
    seen.running = stack.running;
    seen.system_call = stack.system_call;
    seen.frames = NameFrames(stack.addresses, stack.first_is_place, *unnamed.image, symbolizer_);
    report.stacks.push_back(std::move(seen));
  }
  SortStacks(report.stacks);
  return report;
}

}  // namespace culprit::guard
