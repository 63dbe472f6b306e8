// SPDX-License-Identifier: Apache-2.0
//
// ThreadTable: who is alive. A tid names a live thread until that ends; the
// next mention is a new thread with a row of its own, because the kernel reuses
// tids. Also the processes they belong to, and the pseudo-threads of devices
// ("[disk]", "[timer]"), which have no tid and never end.
//
// References to live threads stay valid until that thread ends. Memory is the
// live threads, beside the dictionary's rows. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "trace/dictionary.h"

namespace culprit::assemble {

enum class Phase : uint8_t { kUnseen, kRunning, kWaiting, kReady };

// A wake-up as it will stand in the trace.
struct WakeUp {
  int64_t time_ns = 0;
  trace::ThreadId waker;  // none: not known
  trace::StackId stack;
  uint16_t cpu = trace::Event::kNoCpu;
};

struct OpenSyscall {
  int64_t time_ns = 0;
  int64_t number = 0;
  trace::StackId stack;
  uint16_t cpu = trace::Event::kNoCpu;
};

struct OpenSlice {
  int64_t time_ns = 0;
  StringId name;
};

struct HeldStack {
  int64_t time_ns = 0;
  trace::StackId stack;
};

struct LiveThread {
  int64_t tid = -1;
  trace::ThreadId id;
  bool active = false;  // some event or tile refers to it

  // The open tile: everything before since_ns is written. While running,
  // since_ns is the last cut.
  Phase phase = Phase::kUnseen;
  uint8_t flags = 0;
  uint16_t cpu = trace::Event::kNoCpu;  // where it runs, or ran last
  int64_t since_ns = 0;
  int64_t evidence_ns = 0;  // running: last seen to do so
  trace::StackId stack;     // at its last switch-out
  trace::ThreadId holder;   // ready: who held its CPU
  std::optional<trace::StackId> sample;
  int64_t sample_ns = 0;
  std::optional<WakeUp> early;  // came while it still ran

  // Of the fused kind only:
  std::vector<HeldStack> held;  // samples since the last record
  int64_t displaced_ns = 0;     // another thread got its CPU while it was believed to run

  bool exiting = false;
  int64_t exit_ns = 0;
  std::optional<OpenSyscall> syscall;
  std::vector<OpenSlice> slices;
  uint32_t skipped_slices = 0;  // open ones beyond the depth that is kept
};

class ThreadTable {
 public:
  explicit ThreadTable(trace::Dictionary& dictionary) : dictionary_(dictionary) {}

  LiveThread& Get(int64_t tid) {
    LiveThread* const* thread = live_.Find(tid);
    return thread != nullptr ? **thread : Begin(tid);
  }
  LiveThread* Find(int64_t tid) {
    LiveThread* const* thread = live_.Find(tid);
    return thread != nullptr ? *thread : nullptr;
  }
  // "[disk]" for "disk".
  trace::ThreadId Device(std::string_view name);
  // Forgets a thread that ended; its row stays.
  void End(LiveThread& thread, int64_t time_ns);
  // All live ones in order of their rows.
  std::vector<LiveThread*> Sorted();

  void Name(int64_t pid, int64_t tid, std::string_view name);
  void ProcessName(int64_t pid, std::string_view name, std::string_view command_line);
  void Cgroup(int64_t pid, std::string_view cgroup);
  void Started(LiveThread& thread, int64_t time_ns, int64_t pid, int64_t parent_tid);
  // Threads without a process become one of their own.
  void CompleteProcesses();

 private:
  struct LiveProcess {
    trace::ProcessId id;
    bool named = false;  // by ProcessName, which a thread's name does not change
  };

  LiveThread& Begin(int64_t tid);
  LiveProcess& ProcessOf(int64_t pid);

  trace::Dictionary& dictionary_;
  std::deque<LiveThread> threads_;  // live ones, and those of free_
  std::vector<LiveThread*> free_;
  FlatMap<int64_t, LiveThread*> live_;
  std::unordered_map<int64_t, LiveProcess> processes_;
  std::map<std::string, trace::ThreadId, std::less<>> devices_;
};

}  // namespace culprit::assemble
