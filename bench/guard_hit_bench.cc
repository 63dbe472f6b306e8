// SPDX-License-Identifier: Apache-2.0
// What a hook at a function's entry costs, in a loop that does nothing else:
//
//   guard_hit_bench
//
// A function that calls another is timed as it is, then with each hook: the way
// through the trampoline alone, training, a guard whose thread is in no unit, the
// inline guard of one context, the called guard, and the one that is mostly inline. The peer is
// what tells contexts apart without guards: a backtrace at the entry, by libunwind, of the stack as
// it is there (a few frames) and 20 calls deeper. Nanoseconds per call on top of
// the plain call; the best of many short runs, so a busy machine does little harm.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "guard/runtime/guard_hit.h"
#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/patcher.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/training_entry.h"
#include "guard/runtime/unit_clock.h"
#ifdef CULPRIT_HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

namespace {

using namespace culprit::guard;
using namespace culprit::guard::runtime;

constexpr int kCalls = 20000, kRuns = 400;

#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))  // a caller knows nothing of the registers it leaves alone
#endif
extern "C" APART long BenchLeaf(long x) {
  asm volatile("");
  return x * 3 + 1;
}
// With a prologue, as most functions that are worth guarding.
extern "C" APART long BenchEntry(long x) {
#if defined(__x86_64__)
  asm volatile("nop; nop; nop; nop; nop");  // five bytes are displaced: not the call
#endif
  const long y = BenchLeaf(x);
  asm volatile("");
  return y + x;
}
using Function = long (*)(long);

// This frame is the loop that depths are counted from.
uint64_t g_loop_sp;
__attribute__((noinline)) double BestNanoseconds(Function function) {
  g_loop_sp = reinterpret_cast<uint64_t>(__builtin_frame_address(0)) & ~uint64_t{15};
  if (t_words.unit != nullptr) t_words.unit->base_sp = g_loop_sp;
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    long x = run;
    for (int i = 0; i < kCalls; ++i) x = function(x);
    asm volatile("" : : "r"(x));
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
  }
  return best;
}

uint64_t g_seen_sp;
#if defined(__clang__)
extern "C" __attribute__((noinline)) void SeeStack(uint64_t, uint64_t sp) { g_seen_sp = sp; }
#else
extern "C" __attribute__((noinline, target("general-regs-only"))) void SeeStack(uint64_t,
                                                                                uint64_t sp) {
  g_seen_sp = sp;
}
#endif

template <class T>
uint64_t AddressOf(T* function) {
  return reinterpret_cast<uint64_t>(reinterpret_cast<void*>(function));
}

class Bench {
 public:
  Bench() : patcher_(Options()) {}

  void Run() {
    const double plain = BestNanoseconds(BenchEntry);
    std::printf("%-44s %8.2f ns\n", "the call itself", plain);
    plain_ = plain;
    Measure("trampoline alone", {});
    MeasureTraining();
    LearnDepth();
    MeasureGuards();
    MeasureBacktraces();
  }

 private:
  static PatcherOptions Options() {
    PatcherOptions options;
    options.layout = {reinterpret_cast<int64_t>(&t_words.unit) -
                          reinterpret_cast<int64_t>(__builtin_thread_pointer()),
                      offsetof(wire::UnitSlot, base_sp), offsetof(wire::UnitSlot, contexts),
                      offsetof(wire::UnitSlot, hits)};
    return options;
  }

  bool Install(const Hook& hook) {
    PatchRequest request{{AddressOf(BenchEntry), 0, 0}, hook};
    if (patcher_.Install({&request, 1}, true) == 1) return true;
    std::printf("not patched: %s\n", Name(request.outcome));
    return false;
  }

  void Report(const char* what, double time) const {
    std::printf("%-44s %8.2f ns  %+8.2f\n", what, time, time - plain_);
  }

  void Measure(const char* what, const Hook& hook) {
    if (!Install(hook)) return;
    Report(what, BestNanoseconds(BenchEntry));
    patcher_.RemoveAll();
  }

  void MeasureTraining() {
    std::vector<uint64_t> log(size_t{kCalls} * (kRuns + 1));
    t_log.next = log.data();
    t_log.end = log.data() + log.size();
    Hook hook;
    hook.kind = HookKind::kTraining;
    hook.function = AddressOf(TrainingEntry);
    hook.argument = uint64_t{1} << 60 | uint64_t{77} << 40;
    Measure("training: a word in the log", hook);
    t_log.next = t_log.end = nullptr;
  }

  void LearnDepth() {
    Hook hook;
    hook.kind = HookKind::kTraining;
    hook.function = AddressOf(SeeStack);
    if (Install(hook)) BestNanoseconds(BenchEntry);
    patcher_.RemoveAll();
    depth_ = static_cast<int32_t>(g_loop_sp - (g_seen_sp & ~uint64_t{15}));
    slot_.deadline_ticks = ~uint64_t{0} >> 1;
  }

  void MeasureGuards() {
    const ContextRule rules[] = {{depth_ + 16, 0, 1, 0}, {depth_, 0, 2, 0}};
    GuardRecord record = {};
    record.rules = rules;
    record.count = 2;
    Hook called;
    called.kind = HookKind::kGuard;
    called.function = AddressOf(GuardHit);
    called.argument = reinterpret_cast<uint64_t>(&record);
    Hook one;
    one.kind = HookKind::kOneContext;
    one.depth = depth_;
    one.bit = 2;
    Measure("guard, called, outside units", called);
    t_words.unit = &slot_;
    Measure("guard, one context inline", one);
    const bool inline_hit = slot_.contexts[0] == 4;
    one.depth = depth_ + 16;
    Measure("guard, one context inline, another depth", one);
    slot_.contexts[0] = 0;
    Measure("guard, called, the clock at some hits", called);
    const InlineContext contexts[] = {{depth_ + 16, 1, 0}, {depth_, 2, 0}};
    called.contexts = contexts;
    called.context_count = 2;
    Measure("guard as plans have it, mostly inline", called);
    if (!inline_hit || slot_.contexts[0] != 4) std::printf("a guard did not see its context\n");
    t_words.unit = nullptr;
  }

  void MeasureBacktraces() const;

  double plain_ = 0;
  int32_t depth_ = 0;
  Patcher patcher_;
  wire::UnitSlot slot_{};
};

#ifdef CULPRIT_HAVE_LIBUNWIND
extern "C" __attribute__((noinline, noclone)) long BacktraceEntry(long x) {
  void* frames[64];
  const int depth = unw_backtrace(frames, 64);
  return BenchEntry(x) + (depth < 0 ? 1 : 0);
}
__attribute__((noinline)) double Deeper(int depth, Function function) {
  const double time = depth == 0 ? BestNanoseconds(function) : Deeper(depth - 1, function);
  asm volatile("");
  return time;
}
void Bench::MeasureBacktraces() const {
  Report("libunwind's unw_backtrace", BestNanoseconds(BacktraceEntry));
  Report("libunwind's unw_backtrace, 20 calls deeper", Deeper(20, BacktraceEntry));
}
#else
void Bench::MeasureBacktraces() const {
  std::printf("libunwind was not found when this was built: no peer\n");
}
#endif

}  // namespace

int main() {
  PrepareClock();
  Bench().Run();
  return 0;
}
