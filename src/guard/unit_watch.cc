// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_watch.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "guard/proc_file.h"

namespace culprit::guard {
namespace {

// The runtime's record of a unit comes through the ring within a round or two; a
// look that nobody asked for by then was at a unit that kept its threshold.
constexpr uint64_t kKeepLooksNs = 10'000'000'000;
// The slot's begin and the record's differ by rounding and by what the runtime
// takes off for itself.
constexpr uint64_t kRoundingNs = 100'000;
// Of a thread, those of units that ended included.
constexpr size_t kMaxKeptLooks = 4 * UnitWatch::kMaxLooks;

bool IsWaitForEvents(int64_t system_call) {
  static constexpr int64_t kCalls[] = {
#ifdef SYS_epoll_wait
      SYS_epoll_wait,   SYS_poll,  SYS_select,
#endif
#ifdef SYS_epoll_pwait2
      SYS_epoll_pwait2,
#endif
      SYS_epoll_pwait,  SYS_ppoll, SYS_pselect6, SYS_accept, SYS_accept4};
  return std::find(std::begin(kCalls), std::end(kCalls), system_call) != std::end(kCalls);
}

// A call that a look, or a signal, interrupted goes on as restart_syscall: it is that of the look
// before.
bool IsInWaitForEvents(const std::vector<UnitLook>& looks) {
  const auto look = std::find_if(looks.rbegin(), looks.rend(), [](const UnitLook& one) {
    return one.stack.running || one.stack.system_call != SYS_restart_syscall;
  });
  return look != looks.rend() && !look->stack.running && IsWaitForEvents(look->stack.system_call);
}

bool WaitsForEvents(const OpenUnit& unit, const std::vector<UnitLook>& looks) {
  const bool in_handler =
      unit.kind == wire::UnitKind::kHandler || unit.kind == wire::UnitKind::kCommand;
  return !in_handler && IsInWaitForEvents(looks) &&
         std::all_of(std::begin(unit.contexts), std::end(unit.contexts),
                     [](uint64_t word) { return word == 0; });
}

}  // namespace

ThreadLife ReadThreadLife(int64_t pid, int64_t tid) {
  const auto text = ReadProcFile(ProcPath(pid, "task/" + std::to_string(tid) + "/schedstat"));
  if (!text.ok()) return {};
  char* rest = nullptr;
  ThreadLife life;
  life.cpu_ns = std::strtoull(text.value().c_str(), &rest, 10);
  life.run_delay_ns = std::strtoull(rest, nullptr, 10);
  return life;
}

uint64_t BytesReadByThread(int64_t pid, int64_t tid) {
  constexpr std::string_view kKey = "rchar: ";
  const auto text = ReadProcFile(ProcPath(pid, "task/" + std::to_string(tid) + "/io"));
  if (!text.ok() || !text.value().starts_with(kKey)) return 0;
  return std::strtoull(text.value().c_str() + kKey.size(), nullptr, 10);
}

void UnitWatch::Look(const GuardedProcess& process, const ProcessImage& image, const OpenUnit& unit,
                     uint64_t now_ns, Watched& watched) {
  if (watched.begin_ns != unit.begin_ns) {
    watched.begin_ns = unit.begin_ns;
    watched.rounds = 0;
    watched.next_round = 1;
    watched.looks_of_unit = 0;
    std::erase_if(watched.looks,
                  [&](const UnitLook& look) { return look.time_ns + kKeepLooksNs < now_ns; });
  }
  ++watched.rounds;
  if (watched.rounds < watched.next_round || watched.looks_of_unit >= kMaxLooks) return;
  watched.next_round *= 2;
  auto stack = stacks_.Take(process.pid(), unit.tid, image);
  if (!stack.ok()) return;
  // One that has ended meanwhile has no part in what its thread does now. All units of
  // a trickle are one output's.
  const bool is_trickle = unit.begin_ns == unit.trickle_ns;
  if (!is_trickle && !process.IsOpen(unit)) return;
  ++watched.looks_of_unit;
  if (watched.looks.size() >= kMaxKeptLooks) watched.looks.erase(watched.looks.begin());
  watched.looks.push_back(
      {.time_ns = now_ns, .kind = unit.kind, .stack = std::move(stack).value()});
}

// Whichever of its units is open: all of them are one output's.
void UnitWatch::LookAtTrickle(const GuardedProcess& process, const ProcessImage& image,
                              const OpenUnit& unit, uint64_t now_ns) {
  OpenUnit trickle = unit;
  trickle.begin_ns = unit.trickle_ns;
  trickle.kind = wire::UnitKind::kIteration;
  Look(process, image, trickle, now_ns, watched_[{process.pid(), unit.tid}]);
}

std::vector<HungUnit> UnitWatch::Round(const GuardedProcess& process, const ProcessImage& image,
                                       uint64_t now_ns) {
  std::vector<HungUnit> hanging;
  for (OpenUnit& unit : process.OpenUnits(now_ns)) {
    if (unit.allowed_ns == 0 || unit.elapsed_ns < unit.allowed_ns) {
      if (unit.trickle_ns != 0) LookAtTrickle(process, image, unit, now_ns);
      continue;
    }
    const uint64_t delay_ns = ReadThreadLife(process.pid(), unit.tid).run_delay_ns;
    const bool known = unit.run_delay_ns != 0 && delay_ns > unit.run_delay_ns;
    unit.run_delay_ns = known ? std::min(delay_ns - unit.run_delay_ns, unit.elapsed_ns) : 0;
    // A thread that had no CPU is not slow, and to stop it would make it so.
    if (unit.elapsed_ns - unit.run_delay_ns < unit.allowed_ns) continue;
    Watched& watched = watched_[{process.pid(), unit.tid}];
    Look(process, image, unit, now_ns, watched);
    const bool hangs =
        unit.elapsed_ns - unit.run_delay_ns >= options_.hang_ns && watched.rounds > 2;
    if (!hangs || watched.hung_begin_ns == unit.begin_ns) continue;
    HungUnit hung;
    hung.unit = unit;
    std::copy_if(watched.looks.begin(), watched.looks.end(), std::back_inserter(hung.looks),
                 [&](const UnitLook& look) { return look.time_ns >= unit.begin_ns; });
    if (WaitsForEvents(unit, hung.looks)) continue;
    watched.hung_begin_ns = unit.begin_ns;
    watched.hung_kind = unit.kind;
    hanging.push_back(std::move(hung));
  }
  return hanging;
}

UnitWatch::Seen UnitWatch::Take(int64_t pid, int64_t tid, wire::UnitKind kind, uint64_t begin_ns,
                                uint64_t end_ns) {
  Seen seen;
  const auto found = watched_.find({pid, tid});
  if (found == watched_.end()) return seen;
  Watched& watched = found->second;
  const auto within = [&](uint64_t time_ns, wire::UnitKind of) {
    return (kind == wire::UnitKind::kIteration || of == kind) &&
           time_ns + kRoundingNs >= begin_ns && time_ns <= end_ns + kRoundingNs;
  };
  std::vector<UnitLook> others;
  for (UnitLook& look : std::exchange(watched.looks, {})) {
    if (!within(look.time_ns, look.kind)) {
      others.push_back(std::move(look));
      continue;
    }
    seen.held_ns += look.stack.held_ns;
    seen.looks.push_back(std::move(look));
  }
  watched.looks = std::move(others);
  seen.hung = watched.hung_begin_ns != 0 && within(watched.hung_begin_ns, watched.hung_kind);
  return seen;
}

void UnitWatch::Forget(int64_t pid) {
  std::erase_if(watched_, [&](const auto& entry) { return entry.first.first == pid; });
}

}  // namespace culprit::guard
