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
//
// Then the same as a server has it, whose other work uses the near caches between two hits: single
// calls, each after 64 KiB of code and 512 KiB of data that have nothing to do with it; medians.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
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

// This frame is the loop that depths are counted from. A single call is one of a loop before it.
uint64_t g_loop_sp;
APART long Loop(Function function, long x, int calls) {
  if (calls > 1) {
    g_loop_sp = reinterpret_cast<uint64_t>(__builtin_frame_address(0)) & ~uint64_t{15};
    if (t_words.unit != nullptr) t_words.unit->base_sp = g_loop_sp;
  }
  for (int i = 0; i < calls; ++i) x = function(x);
  return x;
}

double BestNanoseconds(Function function) {
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const long x = Loop(function, run, kCalls);
    asm volatile("" : : "r"(x));
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
  }
  return best;
}

// Code and data of others, so much that what was in the near caches is there no more.
class OtherWork {
 public:
  OtherWork() : data_(512 * 1024 / sizeof(uint64_t)) {
    void* memory =
        mmap(nullptr, kCodeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    auto* bytes = static_cast<uint8_t*>(memory);
    // Every line jumps to the next one, the last returns.
    for (size_t at = 0; at < kCodeBytes; at += kLine) {
      const bool last = at + kLine == kCodeBytes;
#if defined(__aarch64__)
      const uint32_t word = last ? 0xd65f03c0 : 0x14000000 | kLine / 4;
      std::memcpy(bytes + at, &word, sizeof(word));
#else
      bytes[at] = last ? 0xc3 : 0xeb;
      bytes[at + 1] = kLine - 2;
#endif
    }
    __builtin___clear_cache(reinterpret_cast<char*>(bytes),
                            reinterpret_cast<char*>(bytes + kCodeBytes));
    if (mprotect(memory, kCodeBytes, PROT_READ | PROT_EXEC) == 0)
      std::memcpy(&code_, &memory, sizeof(code_));
  }
  void Do() {
    if (code_ != nullptr) code_();
    uint64_t sum = 0;
    for (size_t i = 0; i < data_.size(); i += kLine / sizeof(uint64_t)) sum += data_[i]++;
    asm volatile("" : : "r"(sum));
  }

 private:
  static constexpr size_t kCodeBytes = 64 * 1024, kLine = 64;
  std::vector<uint64_t> data_;
  void (*code_)() = nullptr;
};

inline uint64_t OrderedTicks() {
#if defined(__aarch64__)
  asm volatile("isb" : : : "memory");
#else
  asm volatile("lfence" : : : "memory");
#endif
  const uint64_t ticks = ReadTicks();
#if defined(__aarch64__)
  asm volatile("isb" : : : "memory");
#else
  asm volatile("lfence" : : : "memory");
#endif
  return ticks;
}

// One call that finds its caches used by others, and is the first of its unit.
double ColdNanoseconds(Function function) {
  static OtherWork other;
  constexpr int kColdCalls = 4000;
  std::vector<uint64_t> ticks;
  ticks.reserve(kColdCalls);
  long x = 1;
  for (int i = 0; i < kColdCalls; ++i) {
    if (i == 0) x = Loop(function, x, 2);
    if (t_words.unit != nullptr) t_words.unit->contexts[0] = 0;
    other.Do();
    const uint64_t begin = OrderedTicks();
    x = Loop(function, x, 1);
    ticks.push_back(OrderedTicks() - begin);
  }
  asm volatile("" : : "r"(x));
  std::nth_element(ticks.begin(), ticks.begin() + kColdCalls / 2, ticks.end());
  return static_cast<double>(NsOfTicks(ticks[kColdCalls / 2] * 1000)) / 1000;
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
    plain_ = {BestNanoseconds(BenchEntry), ColdNanoseconds(BenchEntry)};
    std::printf("%-44s %8s %8s %16s\n", "", "ns", "more", "first in a unit");
    std::printf("%-44s %8.2f %8s %8.1f\n", "the call itself", plain_.hot, "", plain_.cold);
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

  struct Times {
    double hot = 0, cold = 0;
  };
  static Times TimesOf(Function function) {
    const double hot = BestNanoseconds(function);
    return {hot, ColdNanoseconds(function)};
  }

  void Report(const char* what, Times times) const {
    std::printf("%-44s %8.2f %+8.2f %8.1f %+8.1f\n", what, times.hot, times.hot - plain_.hot,
                times.cold, times.cold - plain_.cold);
  }

  void Measure(const char* what, const Hook& hook) {
    if (!Install(hook)) return;
    Report(what, TimesOf(BenchEntry));
    patcher_.RemoveAll();
  }

  void MeasureTraining() {
    std::vector<uint64_t> log(size_t{kCalls} * (kRuns + 2));
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

  Times plain_;
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
template <class Work>
__attribute__((noinline)) void Deeper(int depth, const Work& work) {
  depth == 0 ? work() : Deeper(depth - 1, work);
  asm volatile("");
}
void Bench::MeasureBacktraces() const {
  Report("libunwind's unw_backtrace", TimesOf(BacktraceEntry));
  Deeper(20,
         [this] { Report("libunwind's unw_backtrace, 20 calls deeper", TimesOf(BacktraceEntry)); });
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
