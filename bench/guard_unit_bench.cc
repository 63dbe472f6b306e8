// SPDX-License-Identifier: Apache-2.0
// What a watched unit costs by itself, without its guards, in a loop that does
// nothing else:
//
//   guard_unit_bench
//
// The pieces first (the clocks, a reading of the thread's times), then the whole:
// an iteration as the detour of a wait call makes it, one that is cut at a
// handler, one that is cut at a handler and two commands. Nanoseconds; the best
// of many short runs, so a busy machine does little harm.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "guard/runtime/guard_hit.h"
#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/process.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_tracker.h"
#include "guard/runtime/vector_state.h"

namespace {

using namespace culprit::guard;
using namespace culprit::guard::runtime;

constexpr int kCalls = 2000, kRuns = 400;
constexpr SiteRule kSite = {.return_address = 1,
                            .call = 0,
                            .loop = 0,
                            .base_offset = 0,
                            .flags = 0,
                            .holder = 0,
                            .shared = false};
constexpr uint64_t kSp = 0x10000;

template <class Work>
double BestNanoseconds(const Work& work) {
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) work();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
  }
  return best;
}

template <class Work>
void Measure(const char* what, const Work& work) {
  std::printf("%-52s %8.1f ns\n", what, BestNanoseconds(work));
}

// A thread in a process whose files are plain memory, under a plan of one loop
// with a type of each kind that no unit here is slow for.
class Bench {
 public:
  Bench() {
    PrepareClock();
    FindVectorState();
    MakeProcessMemory();
    Process& process = ThisProcess();
    process.header = &header_;
    process.ring = &ring_;
    process.cells = cells_.data();
    process.slots = slots_.data();
    process.ring_area.Adopt(cells_.data(), SIZE_MAX);
    process.slots_area.Adopt(slots_.data(), SIZE_MAX);
    process.stage = Process::kMade;
    state_ = ThisThread();
    MakePlan();
  }

  void Run() {
    Measure("ticks", [] { asm volatile("" : : "r"(ReadTicks())); });
    Measure("clock", [] { asm volatile("" : : "r"(MonotonicNs())); });
    Measure("times of the thread", [this] { ReadThreadTimes(*state_, times_); });
    limits_.has_handlers = false;
    Measure("an iteration", [this] { Iterate(0, 0); });
    limits_.has_handlers = true;
    DropUnit(*state_);  // the thread looks at the loop's limits when it enters it
    Measure("an iteration with a tail alone", [this] { Iterate(0, 0); });
    Measure("an iteration of one handler", [this] { Iterate(1, 0); });
    Measure("an iteration of four handlers", [this] { Iterate(4, 0); });
    Measure("an iteration of one handler, two commands", [this] { Iterate(1, 2); });
  }

 private:
  void MakePlan() {
    wire::PlanHeader header = {};
    header.magic = wire::Magic("CGPLAN01");
    header.version = wire::kWireVersion;
    header.mode = static_cast<uint32_t>(wire::Mode::kGuard);
    header.max_reports_a_second = 10;
    header.bytes = sizeof(header);
    header.checksum = Fnv1a(nullptr, 0);
    bytes_.assign(sizeof(header) / 8, 0);
    std::memcpy(bytes_.data(), &header, sizeof(header));
    if (!plan_.view.Parse(reinterpret_cast<uint8_t*>(bytes_.data()), header.bytes)) {
      std::printf("no plan\n");
    }
    std::fill(std::begin(limits_.smallest_ticks), std::end(limits_.smallest_ticks),
              TicksOfNs(100'000'000));
    plan_.mode = wire::Mode::kGuard;
    plan_.generation = 1;
    plan_.loops = {&limits_, 1};
    plan_.excessive_hits = UINT64_MAX;
    handler_.rules = &rule_;
    command_.rules = &rule_;
    handler_.count = command_.count = 1;
    handler_.flags = wire::PlanFunction::kHandler;
    command_.flags = wire::PlanFunction::kCommand;
  }

  void Iterate(int handlers, int commands) {
    LeaveLoopWait(*state_, plan_, kSite, kSp, 1);
    for (int i = 0; i < handlers; ++i) {
      GuardHit(t_words.unit, kSp, 2, &handler_);
      for (int j = 0; j < commands; ++j) GuardHit(t_words.unit, kSp, 2, &command_);
    }
    EnterLoopWait(*state_, plan_, kSite, kSp, ReadTicks());
  }

  wire::SlotsHeader header_ = {};
  wire::RingHeader ring_ = {};
  std::vector<wire::Cell> cells_ = std::vector<wire::Cell>(wire::kRingCells);
  std::vector<wire::UnitSlot> slots_ = std::vector<wire::UnitSlot>(wire::kMaxThreads);
  ThreadState* state_ = nullptr;
  ThreadTimes times_;
  std::vector<uint64_t> bytes_;
  LoopLimits limits_ = {};
  LoadedPlan plan_ = {};
  ContextRule rule_ = {0, wire::PlanContext::kBoundary, 1, 0};
  GuardRecord handler_ = {};
  GuardRecord command_ = {};
};

}  // namespace

int main() {
  std::make_unique<Bench>()->Run();
  return 0;
}
