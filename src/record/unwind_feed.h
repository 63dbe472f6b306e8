// SPDX-License-Identifier: Apache-2.0
//
// UnwindFeed: keeps the kernel's stack walker in unwind tables. A thread of its own
// answers the walker's requests: it looks at the process's code, compiles the
// modules it has not met before, and tells the kernel, at once what is there and the
// rest when it is compiled. Only processes whose stacks are wanted are looked at.
// What it costs is CPU time of this process, and so within the recorder's budget.
//
// See() and the rest are for one other thread. Around a fork of this process
// Pause() must be held: in the child there is no thread, and Walk() works on.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "record/life_events.h"
#include "record/unwind_lists.h"
#include "record/unwind_maps.h"
#include "record/unwind_modules.h"
#include "record/unwind_walk.h"

namespace culprit::record {

struct UnwindStats {
  uint64_t modules = 0;  // with a table
  uint64_t refused = 0;  // without, for want of room
  uint64_t rows = 0;
  uint64_t rules = 0;
  uint64_t table_bytes = 0;   // in use
  uint64_t kernel_bytes = 0;  // of the kernel's memory
  uint64_t processes = 0;
};

class UnwindFeed {
 public:
  static Result<std::unique_ptr<UnwindFeed>> Start(const UnwindMapFds& fds);
  ~UnwindFeed();

  // Processes about to be recorded.
  void Look(const std::vector<int64_t>& pids);
  // A child of this process that has not executed its program yet: what it has now,
  // this program's code, is not worth a table.
  void AwaitExec(int64_t pid) { starting_pid_ = pid; }
  // A file about to be executed. Before Look(), if Settle() is to wait for it.
  void LookAtProgram(const std::string& path);
  // Until all that was asked for is compiled, but not longer than this.
  void Settle(int64_t max_ns);
  void See(const std::vector<LifeEvent>& events);
  // How much of a CPU its thread may use from now on, beyond a first tenth of a second;
  // 0: as much as it needs. What it may not compile yet is walked by frame pointers.
  void Limit(double share) { share_ = share; }

  std::unique_lock<std::mutex> Pause() { return std::unique_lock(mutex_); }
  // The user stack of a thread that sleeps.
  WalkedStack Walk(int64_t pid, const UnwindRegisters& registers);
  UnwindStats Stats();

 private:
  struct Mapping {
    MapEntry map;
    UnwindModule* module = nullptr;
  };
  struct Process {
    std::vector<Mapping> code;
    int64_t pause_ns = 0;   // until the walker may ask again
    int64_t listed_ns = 0;  // when its ranges were last others
    int64_t looked_ns = 0;  // when `code` was read
  };

  explicit UnwindFeed(std::unique_ptr<UnwindMaps> maps) : maps_(std::move(maps)) {}
  void Run();
  void Warm();
  void Apply(const LifeEvent& event);
  bool IsAnswered(const UnwindRequest& request) const;
  void LookAt(int64_t pid);
  void Send(int64_t pid, Process& process);
  void SendTables();
  void SendModules();
  bool CompileOne();
  void CompileNow(UnwindModule& module);
  std::vector<Mapping> ReadCode(int64_t pid);
  std::vector<Mapping> CodeOf(int64_t pid);
  std::vector<UnwindRange> RangesOf(const Process& process) const;

  std::unique_ptr<UnwindMaps> maps_;

  std::mutex mutex_;  // of these
  UnwindModules modules_;
  UnwindImage image_;
  UnwindLists lists_;
  std::map<int64_t, Process> processes_;
  Process last_;                          // that was looked at
  std::deque<UnwindModule*> fresh_;       // to be compiled
  std::set<const UnwindModule*> unsent_;  // of which the kernel does not know yet
  std::vector<size_t> sent_words_;
  size_t sent_rules_ = 0;

  std::mutex inbox_mutex_;  // of these two; never held for long
  std::vector<LifeEvent> inbox_;
  std::set<int64_t> wanted_;

  std::atomic<uint64_t> looks_ = 0;       // calls of Look()
  std::atomic<uint64_t> looks_done_ = 0;  // of these, answered in full
  std::atomic<double> share_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> starting_pid_ = 0;
  std::thread thread_;
};

}  // namespace culprit::record
