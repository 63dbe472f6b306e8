// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_time.h"

#include <algorithm>

#include "guard/runtime/thread_times.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

uint64_t Gained(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

}  // namespace

UnitTime TimeSince(ThreadState& state, const ThreadTimes& begin, uint64_t wall_ns) {
  ThreadTimes now;
  ReadThreadTimes(state, now);
  state.at_end = now;
  UnitTime time;
  time.wall_ns = wall_ns;
  time.run_delay_ns = std::min(wall_ns, Gained(now.run_delay_ns, begin.run_delay_ns));
  time.cpu_ns = std::min(wall_ns, Gained(now.cpu_ns, begin.cpu_ns));
  return time;
}

UnitTime Joined(const UnitTime& a, const UnitTime& b) {
  return {.wall_ns = a.wall_ns + b.wall_ns,
          .run_delay_ns = a.run_delay_ns + b.run_delay_ns,
          .cpu_ns = a.cpu_ns + b.cpu_ns};
}

void MeasureTailPart(ThreadState& state, uint64_t wall_ns) {
  state.tail_time = Joined(state.tail_time, TimeSince(state, state.at_begin, wall_ns));
}

UnitTime TimeOfTail(ThreadState& state, const UnitTime& measured, uint64_t wall_ns) {
  const uint64_t rest_ns = Gained(wall_ns, measured.wall_ns);
  const UnitTime iteration = TimeSince(state, state.at_iteration_begin, UINT64_MAX);
  const UnitTime rest = {
      .wall_ns = rest_ns,
      .run_delay_ns = std::min(rest_ns, Gained(iteration.run_delay_ns, measured.run_delay_ns)),
      .cpu_ns = std::min(rest_ns, Gained(iteration.cpu_ns, measured.cpu_ns))};
  return Joined(measured, rest);
}

uint64_t NsAt(const ThreadTimes& near, uint64_t ticks) {
  return ticks >= near.read_ticks ? near.read_ns + NsOfTicks(ticks - near.read_ticks)
                                  : near.read_ns - NsOfTicks(near.read_ticks - ticks);
}

}  // namespace culprit::guard::runtime
