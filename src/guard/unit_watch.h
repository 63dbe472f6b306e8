// SPDX-License-Identifier: Apache-2.0
//
// UnitWatch: looks at units that run longer than they may, while they run. The
// runtime speaks up when a guarded function is entered or the unit ends; a thread
// that hangs does neither, and at the end nothing shows any more what was slow. So
// at every round the stacks of threads past their deadline are taken from outside,
// ever more seldom (after 1, 2, 4, ... rounds), and kept until the runtime's record
// comes, or the unit counts as hanging.
//
// A look at a sleeping thread does not touch it; one at a running thread stops it
// for some 50 µs, kMaxLooks times a unit at most. A thread that has entered nothing
// guarded and sleeps in a wait for events does not hang: the loop it waits in was
// not seen in training. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "guard/guarded_process.h"
#include "guard/process_image.h"
#include "guard/remote_thread_stack.h"

namespace culprit::guard {

struct UnitLook {
  uint64_t time_ns = 0;
  wire::UnitKind kind = wire::UnitKind::kIteration;  // of the unit that was looked at
  ThreadStack stack;
};

// Of a thread's whole life, by /proc; zero if it ended.
struct ThreadLife {
  uint64_t cpu_ns = 0;
  uint64_t run_delay_ns = 0;  // ready to run, but not running
};
ThreadLife ReadThreadLife(int64_t pid, int64_t tid);
// In its whole life, by read() and its kind; 0 where the kernel does not count.
uint64_t BytesReadByThread(int64_t pid, int64_t tid);

struct HungUnit {
  OpenUnit unit;
  std::vector<UnitLook> looks;
};

struct WatchOptions {
  uint64_t hang_ns = 1'000'000'000;  // past its deadline and this old: it hangs
};

class UnitWatch {
 public:
  static constexpr size_t kMaxLooks = 12;

  explicit UnitWatch(const WatchOptions& options) : options_(options) {}

  // One round over a process. Returns the units that hang, each once.
  std::vector<HungUnit> Round(const GuardedProcess& process, const ProcessImage& image,
                              uint64_t now_ns);
  // The looks at the thread within the time of a unit, oldest first; and whether
  // the unit was returned as hanging. Handlers run within the time of a tail, and
  // looks at them are not the tail's; kIteration: all are wanted.
  struct Seen {
    std::vector<UnitLook> looks;
    uint64_t held_ns = 0;  // by these
    bool hung = false;
  };
  Seen Take(int64_t pid, int64_t tid, wire::UnitKind kind, uint64_t begin_ns, uint64_t end_ns);
  // The stack of a thread now, whatever it does.
  Result<ThreadStack> StackOf(int64_t pid, int64_t tid, const ProcessImage& image) {
    return stacks_.Take(pid, tid, image);
  }
  void Forget(int64_t pid);

 private:
  struct Watched {
    uint64_t begin_ns = 0;  // of the unit that is being looked at
    uint64_t rounds = 0;
    uint64_t next_round = 1;
    size_t looks_of_unit = 0;
    uint64_t hung_begin_ns = 0;  // of the last unit returned as hanging
    wire::UnitKind hung_kind = wire::UnitKind::kIteration;
    std::vector<UnitLook> looks;  // also of units that ended, until they are old
  };
  void Look(const GuardedProcess& process, const ProcessImage& image, const OpenUnit& unit,
            uint64_t now_ns, Watched& watched);
  void LookAtTrickle(const GuardedProcess& process, const ProcessImage& image, const OpenUnit& unit,
                     uint64_t now_ns);
  using ThreadKey = std::pair<int64_t, int64_t>;  // pid, tid

  WatchOptions options_;
  RemoteThreadStack stacks_;
  std::map<ThreadKey, Watched> watched_;
};

}  // namespace culprit::guard
