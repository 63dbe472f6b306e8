// SPDX-License-Identifier: Apache-2.0
//
// ReportNamer: gives the stacks of reports their names, in a thread of its own. The first
// stack in a module takes what it takes to read its symbols, tens of milliseconds, and
// whoever looks at slow units must not miss the next one for that.
//
// The thread begins with the first report. Add and Take from one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "guard/process_image.h"
#include "guard/unit_report.h"
#include "symbol/symbolizer.h"

namespace culprit::guard {

struct UnnamedStack {
  SeenStack::By by = SeenStack::By::kEnd;
  bool running = true;
  int64_t system_call = -1;
  std::vector<uint64_t> addresses;
  bool first_is_place = false;  // else it is a return address, as all others are
};

struct UnnamedReport {
  UnitReport report;  // without stacks
  std::vector<UnnamedStack> stacks;
  std::shared_ptr<const ProcessImage> image;
};

class ReportNamer {
 public:
  ReportNamer() = default;
  // Reports that were not taken are lost.
  ~ReportNamer();
  ReportNamer(const ReportNamer&) = delete;
  ReportNamer& operator=(const ReportNamer&) = delete;

  void Add(UnnamedReport report);
  // Those that have their names, in the order in which they were added.
  std::vector<UnitReport> Take();
  // The same of all, for which it waits.
  std::vector<UnitReport> TakeAll();
  // What naming took so far.
  uint64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

 private:
  void Work();
  UnitReport Name(UnnamedReport unnamed);

  symbol::Symbolizer symbolizer_;  // the thread's
  std::atomic<uint64_t> cpu_ns_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UnnamedReport> waiting_;
  bool naming_ = false;  // one that is not waiting any more
  bool ends_ = false;
  std::vector<UnitReport> named_;
  std::thread thread_;
};

}  // namespace culprit::guard
