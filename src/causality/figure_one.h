// SPDX-License-Identifier: Apache-2.0
//
// 003 figure 1 as traces, for tests: six threads, two locks, one disk. The delay of
// the disk and of the decryption travels from the system worker through the
// configuration manager, the anti-virus and two browser workers to the user
// interface. Times in microseconds as nanoseconds.
#pragma once

#include <string>

#include "trace/small_trace.h"

namespace culprit::causality {

class FigureOne {
 public:
  // The instance is [0, 800) of the thread "UI".
  static trace::Trace Slow() {
    trace::SmallTrace t(0, 800);
    Devices(t);
    Tile(t, "CM", 0, 10, "CM!Worker");
    Wait(t, "CM", 10, 700, kCm + ";kernel!WaitForObject", "System",
         "kernel!Worker;kernel!CompleteRequest");
    Tile(t, "System", 10, 12, "kernel!Worker");
    Wait(t, "System", 12, 600, kRead + ";kernel!WaitForDisk", "[disk]", "");
    t.Add(trace::EventKind::kHardware, "[disk]", 12, 600, kRead).peer = t.Thread("System");
    for (int64_t at = 600; at < 700; at += 10) Tile(t, "System", at, at + 10, kRead);
    Chain(t, "CM", 700, "AV", 20, kAv + ";kernel!RequireResource", kCm + ";kernel!ReleaseResource");
    Chain(t, "AV", 710, "W1", 30, kW1 + ";kernel!RequireResource", kAv + ";kernel!ReleaseResource");
    Chain(t, "W1", 720, "W0", 40, kW0 + ";kernel!AcquireLock", kW0 + ";kernel!ReleaseLock");
    Chain(t, "W0", 730, "UI", 50, kUi + ";kernel!AcquireLock", kW0 + ";kernel!ReleaseLock");
    Tile(t, "UI", 740, 800, "Browser!TabCreate");
    return Finish(t, 800);
  }

  // Nobody but W0 is in the way, and not for long.
  static trace::Trace Fast() {
    trace::SmallTrace t(0, 100);
    Devices(t);
    Tile(t, "W0", 0, 50, "Browser!Worker");
    Chain(t, "W0", 50, "UI", 45, kUi + ";kernel!AcquireLock", kW0 + ";kernel!ReleaseLock");
    Tile(t, "UI", 60, 100, "Browser!TabCreate");
    return Finish(t, 100);
  }

 private:
  static inline const std::string kUi = "Browser!TabCreate;kernel!OpenFile;fv.sys!QueryFileTable";
  static inline const std::string kW0 = "Browser!Worker;kernel!CreateFile;fv.sys!QueryFileTable";
  static inline const std::string kW1 = kW0 + ";fs.sys!AcquireMDU";
  static inline const std::string kAv = "AV!Worker;kernel!OpenFile;fs.sys!AcquireMDU";
  static inline const std::string kCm = "CM!Worker;kernel!OpenFile;fs.sys!AcquireMDU";
  static inline const std::string kRead = "kernel!Worker;fs.sys!Read;se.sys!ReadDecrypt";

  static void Devices(trace::SmallTrace& t) { t.Thread("[disk]", trace::ThreadKind::kDevice); }
  static void Tile(trace::SmallTrace& t, const std::string& thread, int64_t begin, int64_t end,
                   const std::string& stack) {
    t.Add(trace::EventKind::kRunning, thread, begin, end, stack);
  }
  static void Wait(trace::SmallTrace& t, const std::string& thread, int64_t begin, int64_t end,
                   const std::string& stack, const std::string& waker, const std::string& unwait) {
    t.Add(trace::EventKind::kWait, thread, begin, end, stack).peer = t.Thread(waker);
    const trace::ThreadId woken = t.Thread(thread);
    t.Add(trace::EventKind::kUnwait, waker, end, end, unwait).peer = woken;
  }
  // `holder` runs for 10 from `at` and then lets `waiter` go on, who waits since `since`.
  static void Chain(trace::SmallTrace& t, const std::string& holder, int64_t at,
                    const std::string& waiter, int64_t since, const std::string& wait,
                    const std::string& unwait) {
    Tile(t, holder, at, at + 10, "Browser!Work");
    Tile(t, waiter, 0, since, "Browser!Work");
    Wait(t, waiter, since, at + 10, wait, holder, unwait);
  }
  static trace::Trace Finish(trace::SmallTrace& t, int64_t end) {
    t.AddInstance("BrowserTabCreate", "UI", 0, end);
    trace::SortByTime(t.trace.events);
    return std::move(t.trace);
  }
};

}  // namespace culprit::causality
