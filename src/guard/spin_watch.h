// SPDX-License-Identifier: Apache-2.0
//
// SpinWatch: event loops that turn without getting anywhere. Where every read fails at
// once, or a descriptor is ready for ever that nobody serves, no unit is slow and nothing
// is answered: the thread goes through very short units as fast as it can. A thread spins
// when, for kSpinNs,
//   - it never sleeps: CPU time and run delay fill kBusyPpm of the time;
//   - it reads less than a byte a unit, as far as the kernel counts (read, not recv);
//   - of its sampled units at most kUsualPpm are as long as the loop's work: as 1/kShorter
//     of that length which, in training, nine tenths of the loop's time was spent in
//     longer units than. (Lengths are by the ready event.)
// Each spin is told once, and a thread's next not before kQuietNs. Without calibrated types, or
// without samples, none is.
//
// Pure state without a clock: the caller looks every half second or so. One thread at a
// time. Memory: some hundred bytes a thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "guard/guarded_process.h"
#include "guard/profile.h"
#include "guard/runtime/wire.h"
#include "guard/unit_watch.h"

namespace culprit::guard {

struct Spin {
  int64_t tid = 0;
  uint32_t loop = 0;
  uint64_t begin_ns = 0;
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t run_delay_ns = 0;
  uint64_t units = 0;     // in that time
  uint64_t usual_ns = 0;  // what units of the loop take at least, most of its time
};

class SpinWatch {
 public:
  static constexpr uint64_t kSpinNs = 2'000'000'000;
  static constexpr uint64_t kBusyPpm = 900'000;
  static constexpr uint64_t kLeastCpuPpm = 250'000;
  static constexpr uint64_t kShorter = 3;
  static constexpr uint64_t kUsualPpm = 200'000;
  static constexpr uint64_t kFewestUnits = 1'000;  // a second
  static constexpr uint64_t kFewestSamples = 20;
  static constexpr uint64_t kQuietNs = 60'000'000'000;  // between two of a thread

  // What is usual, by the profile's calibrated types. Forgets every thread.
  void Use(const Profile& profile);
  // A unit of the process that was not slow.
  void Add(int64_t pid, const wire::Sample& sample);
  // The thread has made that many units so far. True: its life is of interest now.
  bool IsFast(int64_t pid, const ThreadUnits& thread, uint64_t now_ns);
  // Its samples look like a spin that was not told: its stack is worth a look.
  bool IsSuspect(int64_t pid, int64_t tid, uint64_t now_ns) const;
  // After IsFast, with the thread's life at that time, and what it has read so far (0: not
  // known).
  std::optional<Spin> Look(int64_t pid, const ThreadUnits& thread, const ThreadLife& life,
                           uint64_t read_bytes, uint64_t now_ns);
  void Forget(int64_t pid);
  // Forgets its threads that are not among these.
  void KeepOnly(int64_t pid, const std::set<int64_t>& threads);

 private:
  struct Moment {
    uint64_t time_ns = 0;
    uint64_t units = 0;
    ThreadLife life;
    bool has_life = false;
    uint64_t read_bytes = 0;
  };
  struct Watched {
    Moment last;
    std::optional<Moment> since;  // when it may have begun to spin
    uint32_t loop = 0;
    uint64_t samples = 0;  // since then
    uint64_t usual = 0;    // of these
    bool told = false;
    uint64_t quiet_until_ns = 0;
  };
  using Key = std::pair<int64_t, int64_t>;
  static bool GetsNowhere(const Watched& watched);
  static bool NeverSleeps(const Moment& from, const Moment& to);

  std::vector<uint64_t> usual_ns_;  // by loop; 0: not known
  std::map<Key, Watched> watched_;
};

}  // namespace culprit::guard
