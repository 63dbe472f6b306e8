// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/patcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "guard/runtime/code_address.h"
#include "guard/runtime/test_entries.h"
#include "guard/runtime/wire.h"

extern "C" void plain_return();

namespace culprit::guard::runtime::TEST_FILE {
namespace {

// A hook must not be compiled with floating point or SIMD; see hook.h.
#if defined(__clang__)
#define HOOK_FUNCTION extern "C" __attribute__((noinline))
#else
#define HOOK_FUNCTION extern "C" __attribute__((noinline, target("general-regs-only")))
#endif

thread_local wire::UnitSlot* t_slot __attribute__((tls_model("initial-exec"))) = nullptr;

uint64_t g_hits;
uint64_t g_argument, g_sp, g_return_address;
const void* g_slot;

// Leaves nothing as it was of what a hook may change. Macros, because functions
// of other code generation options are not inlined here.
#if defined(__aarch64__)
#define CLOBBER_ALL()                                                                  \
  asm volatile(                                                                        \
      "mov x0, #-1\n mov x1, x0\n mov x2, x0\n mov x3, x0\n mov x4, x0\n mov x5, x0\n" \
      "mov x6, x0\n mov x7, x0\n mov x16, x0\n mov x17, x0\n adds x0, x0, #1"          \
      :                                                                                \
      :                                                                                \
      : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x16", "x17", "cc")
#else
#define CLOBBER_ALL()                                                             \
  asm volatile(                                                                   \
      "mov $-1, %%rax\n mov %%rax, %%rcx\n mov %%rax, %%rdx\n mov %%rax, %%rsi\n" \
      "mov %%rax, %%rdi\n mov %%rax, %%r8\n mov %%rax, %%r9\n mov %%rax, %%r10\n" \
      "mov %%rax, %%r11\n movabs $0x7fffffffffffffff, %%rax\n add $1, %%rax"      \
      :                                                                           \
      :                                                                           \
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc")
#endif

HOOK_FUNCTION void CountEntry(uint64_t id, uint64_t sp, uint64_t return_address) {
  __atomic_fetch_add(&g_hits, 1, __ATOMIC_RELAXED);
  g_argument = id;
  g_sp = sp;
  g_return_address = return_address;
  CLOBBER_ALL();
}
HOOK_FUNCTION void CountGuard(void* slot, uint64_t sp, uint64_t return_address,
                              const void* record) {
  __atomic_fetch_add(&g_hits, 1, __ATOMIC_RELAXED);
  g_slot = slot;
  g_sp = sp;
  g_return_address = return_address;
  g_argument = reinterpret_cast<uint64_t>(record);
  CLOBBER_ALL();
}

uint64_t g_cut;
const void* g_thread;
HOOK_FUNCTION void CountCut(void* slot, uint64_t sp, uint64_t return_address, const void* record,
                            uint64_t cut, void* thread) {
  __atomic_fetch_add(&g_hits, 1, __ATOMIC_RELAXED);
  g_slot = slot;
  g_sp = sp;
  g_return_address = return_address;
  g_argument = reinterpret_cast<uint64_t>(record);
  g_cut = cut;
  g_thread = thread;
  CLOBBER_ALL();
}

int64_t SlotOffset() {
  return reinterpret_cast<int64_t>(&t_slot) - reinterpret_cast<int64_t>(__builtin_thread_pointer());
}

PatcherOptions Options(WritePath path = WritePath::kBest) {
  PatcherOptions options;
  options.layout = {SlotOffset(), offsetof(wire::UnitSlot, base_sp),
                    offsetof(wire::UnitSlot, contexts), offsetof(wire::UnitSlot, hits),
                    SlotOffset()};
  options.write_path = path;
  return options;
}

// One for all: it learns a process's modules once.
Patcher& ThePatcher() {
  static Patcher patcher(Options());
  return patcher;
}

Hook TrainingHook(uint64_t id) {
  Hook hook;
  hook.kind = HookKind::kTraining;
  hook.function = reinterpret_cast<uint64_t>(&CountEntry);
  hook.argument = id;
  return hook;
}

Hook GuardHook(uint64_t record) {
  Hook hook = TrainingHook(record);
  hook.kind = HookKind::kGuard;
  hook.function = reinterpret_cast<uint64_t>(&CountGuard);
  return hook;
}

Hook CuttingHook(uint64_t record) {
  Hook hook = GuardHook(record);
  hook.cut = reinterpret_cast<uint64_t>(&CountCut);
  return hook;
}

RegisterState RandomState(std::mt19937_64& random) {
  RegisterState state;
  for (uint64_t& value : state.general) {
    // Small values and zeros make conditions go both ways.
    const uint64_t kind = random() % 4;
    value = kind == 0 ? 0 : kind == 1 ? random() % 16 : random();
  }
  for (auto& vector : state.vector) {
    for (uint8_t& byte : vector) byte = static_cast<uint8_t>(random());
  }
#if defined(__aarch64__)
  state.general[31] &= 0xf0000000;
  state.general[20] = reinterpret_cast<uint64_t>(&plain_return);
#else
  state.general[16] = (state.general[16] & 0x8d5) | 0x202;        // CF PF AF ZF SF OF
  state.general[14] = reinterpret_cast<uint64_t>(&plain_return);  // r15
#endif
  return state;
}

// The first register that differs; empty: none.
std::string Difference(const RegisterState& a, const RegisterState& b) {
  for (uint32_t i = 0; i < 32; ++i) {
    if (IsComparable(i) && a.general[i] != b.general[i]) return "register " + std::to_string(i);
    if (std::memcmp(a.vector[i], b.vector[i], 16) != 0) return "vector " + std::to_string(i);
  }
  return "";
}

std::string CodeOf(const TestEntry& entry) {
  return {reinterpret_cast<const char*>(BytesAt(entry.begin)), entry.end - entry.begin};
}

std::vector<PatchRequest> RequestsForAll(const Hook& hook) {
  std::vector<PatchRequest> requests;
  for (const TestEntry& entry : TestEntries()) {
    if (entry.refused == 0) requests.push_back({StartOf(entry), hook});
  }
  return requests;
}

void ExpectAllPatched(Patcher& patcher, std::span<PatchRequest> requests) {
  EXPECT_EQ(patcher.Install(requests, true), requests.size());
  for (const PatchRequest& request : requests) {
    for (const TestEntry& entry : TestEntries()) {
      if (entry.begin != request.function.entry) continue;
      EXPECT_EQ(request.outcome, PatchOutcome::kPatched)
          << entry.name << ": " << Name(request.outcome);
    }
  }
}

const TestEntry& EntryNamed(const std::string& name) {
  for (const TestEntry& entry : TestEntries()) {
    if (entry.name == name) return entry;
  }
  ADD_FAILURE() << "no entry " << name;
  return TestEntries()[0];
}

// What "stack_in" found on its stack (arm64: what the caller laid there).
uint64_t CallerOf(const RegisterState& state) {
#if defined(__aarch64__)
  return state.general[1];
#else
  return state.general[3];
#endif
}

// Of the calls of ExpectSameRegisters, by its slot.
constexpr int32_t kDepthOfCalls = 640;

// All entries, unpatched and with the hook, from the same registers.
void ExpectSameRegisters(const Hook& hook, bool with_slot, WritePath path) {
  wire::UnitSlot slot{};
  std::mt19937_64 random(7);
  constexpr int kRounds = 60;
  std::vector<RegisterState> before, after;
  for (const TestEntry& entry : TestEntries()) {
    for (int i = 0; i < kRounds && entry.refused == 0; ++i) {
      RegisterState state = RandomState(random);
      before.push_back(state);
      CallWithRegisters(entry.begin, &state);
      after.push_back(state);
    }
  }
  std::vector<std::string> code;
  for (const TestEntry& entry : TestEntries()) code.push_back(CodeOf(entry));

  static Patcher by_protection(Options(WritePath::kMprotect));
  Patcher& patcher = path == WritePath::kMprotect ? by_protection : ThePatcher();
  std::vector<PatchRequest> requests = RequestsForAll(hook);
  ExpectAllPatched(patcher, requests);
  RegisterState stack{};
  CallWithRegisters(EntryNamed("stack_in").begin, &stack);
  slot.base_sp = (stack.general[0] & ~uint64_t{15}) + kDepthOfCalls;
  t_slot = with_slot ? &slot : nullptr;
  size_t call = 0;
  for (const TestEntry& entry : TestEntries()) {
    for (int i = 0; i < kRounds && entry.refused == 0; ++i, ++call) {
      RegisterState state = before[call];
      CallWithRegisters(entry.begin, &state);
      ASSERT_EQ(Difference(state, after[call]), "") << entry.name << " round " << i;
    }
  }
  t_slot = nullptr;
  EXPECT_EQ(patcher.RemoveAll(), requests.size());
  for (size_t i = 0; i < code.size(); ++i) EXPECT_EQ(CodeOf(TestEntries()[i]), code[i]);
}

TEST(Patcher, EveryWayToBeginAFunctionWorksUnderEveryHook) {
  for (const WritePath path : {WritePath::kBest, WritePath::kMprotect}) {
    g_hits = 0;
    ExpectSameRegisters({}, false, path);
    EXPECT_EQ(g_hits, 0u);
    ExpectSameRegisters(TrainingHook(1), false, path);
    EXPECT_GT(g_hits, 60u * (TestEntries().size() - 12));
    g_hits = 0;
    ExpectSameRegisters(GuardHook(1), false, path);
    EXPECT_EQ(g_hits, 0u);
    ExpectSameRegisters(GuardHook(1), true, path);
    EXPECT_GT(g_hits, 60u * (TestEntries().size() - 12));
    InlineContext contexts[] = {{96, 70, 0}, {32, 3, 1}, {-16, 511, 0}, {48, 5, 0, 7}};
    Hook with_contexts = CuttingHook(1);
    with_contexts.contexts = contexts;
    for (const uint32_t count : {1u, 4u}) {
      with_contexts.context_count = count;
      for (InlineContext& context : contexts) {
        const int32_t depth = std::exchange(context.depth, kDepthOfCalls);
        ExpectSameRegisters(with_contexts, true, path);
        context.depth = depth;
      }
    }
    Hook hook;
    hook.kind = HookKind::kOneContext;
    hook.depth = 96;
    hook.bit = 70;
    ExpectSameRegisters(hook, false, path);
    ExpectSameRegisters(hook, true, path);
  }
}

TEST(Patcher, AGuardThatIsWantedOutsideOfUnitsIsCalledThereAsWell) {
  const InlineContext contexts[] = {{96, 70, 0}, {32, 3, 1}, {-16, 511, 0}, {48, 5, 0, 7}};
  for (const uint32_t count : {0u, 1u, 4u}) {
    Hook hook = CuttingHook(0xfeed);
    hook.contexts = contexts;
    hook.context_count = count;
    hook.outside = true;
    g_hits = 0;
    g_slot = &hook;
    g_argument = 0;
    ExpectSameRegisters(hook, false, WritePath::kBest);
    EXPECT_GT(g_hits, 60u * (TestEntries().size() - 12));
    EXPECT_EQ(g_slot, nullptr);
    EXPECT_EQ(g_argument, 0xfeedu);
    ExpectSameRegisters(hook, true, WritePath::kBest);
    EXPECT_NE(g_slot, nullptr);
  }
}

TEST(Patcher, WhatCannotBePatchedIsRefusedAndUntouched) {
  Patcher& patcher = ThePatcher();
  size_t refused = 0;
  for (const TestEntry& entry : TestEntries()) {
    if (entry.refused == 0) continue;
    ++refused;
    const std::string code = CodeOf(entry);
    PatchRequest request{StartOf(entry), TrainingHook(1)};
    EXPECT_EQ(patcher.Install({&request, 1}, true), 0u) << entry.name;
    EXPECT_NE(request.outcome, PatchOutcome::kPatched) << entry.name;
    EXPECT_EQ(CodeOf(entry), code);
  }
  EXPECT_GE(refused, 5u);
  EXPECT_EQ(patcher.patched(), 0u);
}

TEST(Patcher, HooksAreToldStackPointerReturnAddressAndArgument) {
  Patcher& patcher = ThePatcher();
  wire::UnitSlot slot{};
  t_slot = &slot;
  const TestEntry& entry = EntryNamed("stack_in");
  RegisterState state{};
  PatchRequest request{StartOf(entry), TrainingHook(0x12345)};
  ASSERT_EQ(patcher.Install({&request, 1}, true), 1u);
  CallWithRegisters(entry.begin, &state);
  EXPECT_EQ(g_argument, 0x12345u);
  EXPECT_EQ(g_sp, state.general[0]);

  request.hook = GuardHook(0xfedcba9876543210);
  ASSERT_EQ(patcher.Install({&request, 1}, true), 1u);
  EXPECT_EQ(patcher.patched(), 1u);
  g_sp = 0;
  CallWithRegisters(entry.begin, &state);
  EXPECT_EQ(g_argument, 0xfedcba9876543210u);
  EXPECT_EQ(g_sp, state.general[0]);
  EXPECT_EQ(g_slot, &slot);
  EXPECT_EQ(g_return_address, CallerOf(state));
  t_slot = nullptr;
  const uint64_t address = entry.begin;
  EXPECT_EQ(patcher.Remove({&address, 1}), 1u);
  EXPECT_EQ(patcher.Remove({&address, 1}), 0u);
  g_hits = 0;
  CallWithRegisters(entry.begin, &state);
  EXPECT_EQ(g_hits, 0u);
}

class PatcherReturnAddress : public testing::TestWithParam<HookKind> {};

TEST_P(PatcherReturnAddress, IsPlainBehindASigningEntry) {
#if defined(__aarch64__)
  const char* name = "paciasp";
#else
  const char* name = "endbr64_frame";
#endif
  Patcher& patcher = ThePatcher();
  wire::UnitSlot slot{};
  t_slot = &slot;
  RegisterState state{};
  const auto hook = [&](uint64_t id) {
    return GetParam() == HookKind::kGuard ? GuardHook(id) : TrainingHook(id);
  };
  PatchRequest requests[] = {{StartOf(EntryNamed(name)), hook(1)},
                             {StartOf(EntryNamed("stack_in")), hook(2)}};
  ASSERT_EQ(patcher.Install(requests, true), 2u);
  CallWithRegisters(EntryNamed("stack_in").begin, &state);
  const uint64_t plain = g_return_address, sp = g_sp;
  EXPECT_EQ(plain, CallerOf(state));
  CallWithRegisters(EntryNamed(name).begin, &state);
  EXPECT_EQ(g_return_address, plain);
  EXPECT_EQ(g_sp, sp);
  t_slot = nullptr;
  patcher.RemoveAll();
}

INSTANTIATE_TEST_SUITE_P(Hooks, PatcherReturnAddress,
                         testing::Values(HookKind::kGuard, HookKind::kTraining),
                         [](const auto& kind) {
                           return kind.param == HookKind::kGuard ? "Guard" : "Training";
                         });

// As the runtime's: counts the hit.
HOOK_FUNCTION void CountHit(void* slot, uint64_t, uint64_t, const void*) {
  ++static_cast<wire::UnitSlot*>(slot)->hits;
  __atomic_fetch_add(&g_hits, 1, __ATOMIC_RELAXED);
  CLOBBER_ALL();
}

// Far contexts with callers take most room; where they begin in a line differs each time.
TEST(Patcher, TheLongestTrampolineFits) {
  Patcher& patcher = ThePatcher();
  constexpr uint64_t kFar = 0x1234'5678'9abc'def0;
  InlineContext contexts[kMaxInlineContexts];
  for (uint32_t i = 0; i < kMaxInlineContexts; ++i) {
    contexts[i] = {static_cast<int32_t>(70000 + i * 100000), i, kFar, i % 2 == 0 ? 0 : kFar};
  }
  for (int i = 0; i < 16; ++i) {
    std::vector<PatchRequest> requests = RequestsForAll(CuttingHook(kFar));
    for (PatchRequest& request : requests) {
      request.hook.contexts = contexts;
      request.hook.context_count = kMaxInlineContexts;
    }
    ExpectAllPatched(patcher, requests);
    patcher.RemoveAll();
  }
}

// What is looked for by the trampoline itself, in steps, against a plain search.
TEST(Patcher, OfSeveralContextsTheFirstThatFitsIsTaken) {
  Patcher& patcher = ThePatcher();
  const TestEntry& entry = EntryNamed("stack_in");
  RegisterState state{};
  CallWithRegisters(entry.begin, &state);
  const uint64_t sp = state.general[0] & ~uint64_t{15};
  const uint64_t caller = CallerOf(state);
  std::mt19937 random(5);
  uint32_t marked = 0, cut = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    InlineContext contexts[kMaxInlineContexts];
    PatchRequest request{StartOf(entry), CuttingHook(0xfeed)};
    request.hook.contexts = contexts;
    request.hook.context_count = 1 + random() % kMaxInlineContexts;
    for (uint32_t i = 0; i < request.hook.context_count; ++i) {
      const int32_t depths[] = {-16, 0, 16, 4096, 70000, 1 << 23};
      const uint64_t callers[] = {0, caller, caller + 4};
      contexts[i] = {depths[random() % 6], static_cast<uint32_t>(random() % 512),
                     callers[random() % 3], random() % 3 == 0 ? 1 + random() % 100000 : 0};
    }
    ASSERT_EQ(patcher.Install({&request, 1}, true), 1u);
    wire::UnitSlot slot{};
    const int32_t depth = contexts[random() % request.hook.context_count].depth;
    slot.base_sp = sp + static_cast<uint64_t>(int64_t{depth});
    const InlineContext* expected =
        std::find_if(contexts, contexts + request.hook.context_count, [&](const InlineContext& c) {
          return c.depth == depth && (c.return_address == 0 || c.return_address == caller);
        });
    const bool fits = expected != contexts + request.hook.context_count;
    g_hits = 0;
    t_slot = &slot;
    CallWithRegisters(entry.begin, &state);
    t_slot = nullptr;
    wire::UnitSlot as_expected{};
    if (fits && expected->cut == 0) {
      ++marked;
      as_expected.contexts[expected->bit / 64] = uint64_t{1} << expected->bit % 64;
    }
    EXPECT_TRUE(
        std::equal(slot.contexts, slot.contexts + wire::kContextWords, as_expected.contexts));
    EXPECT_EQ(slot.hits, fits ? 0u : 1u);
    ASSERT_EQ(g_hits, fits && expected->cut != 0 ? 1u : 0u) << "round " << round;
    if (g_hits == 1) {
      ++cut;
      EXPECT_EQ(g_cut, expected->cut);
      EXPECT_EQ(g_slot, &slot);
      EXPECT_EQ(g_thread, &slot) << "the word that the layout names";
      EXPECT_EQ(g_argument, 0xfeedu);
      EXPECT_EQ(g_sp, state.general[0]);
      EXPECT_EQ(g_return_address, caller);
    }
    if (!fits) ++missed;
    patcher.RemoveAll();
  }
  EXPECT_GT(marked, 300u);
  EXPECT_GT(cut, 300u);
  EXPECT_GT(missed, 300u);
}

TEST(Patcher, TheFirstHitOfAnInlineContextIsOnlyMarkedAndOfTheOthersOneInSoManyCalls) {
  Patcher& patcher = ThePatcher();
  const TestEntry& entry = EntryNamed("stack_in");
  RegisterState state{};
  CallWithRegisters(entry.begin, &state);
  const uint64_t sp = state.general[0] & ~uint64_t{15};
  const uint64_t caller = CallerOf(state);
  const InlineContext contexts[] = {
      {4096, 3, 0}, {70000, 64, 0}, {32, 511, caller + 4}, {32, 7, caller}};
  PatchRequest request{StartOf(entry), GuardHook(1)};
  request.hook.function = reinterpret_cast<uint64_t>(&CountHit);
  request.hook.contexts = contexts;
  request.hook.context_count = 4;
  ASSERT_EQ(patcher.Install({&request, 1}, true), 1u);
  g_hits = 0;
  constexpr uint32_t kCalls = 2 * kHitsToACall;
  for (const auto& [depth, bit] : {std::pair{4096, 3}, {70000, 64}, {32, 7}, {48, -1}}) {
    wire::UnitSlot slot{};
    t_slot = &slot;
    slot.base_sp = sp + static_cast<uint64_t>(depth);
    for (uint32_t i = 0; i < kCalls; ++i) CallWithRegisters(entry.begin, &state);
    EXPECT_EQ(slot.hits, bit >= 0 ? kCalls - 1 : kCalls);
    for (int word = 0; word < static_cast<int>(wire::kContextWords); ++word) {
      const uint64_t expected = bit >= 0 && bit / 64 == word ? uint64_t{1} << bit % 64 : 0;
      EXPECT_EQ(slot.contexts[word], expected) << "depth " << depth << " word " << word;
    }
  }
  EXPECT_EQ(g_hits, 3u * 1 + 2) << "one in so many that are counted is the function's";
  t_slot = nullptr;
  patcher.RemoveAll();
}

TEST(Patcher, OneContextSetsItsBitAtItsDepthOnly) {
  Patcher& patcher = ThePatcher();
  const TestEntry& entry = EntryNamed("stack_in");
  RegisterState state{};
  CallWithRegisters(entry.begin, &state);
  const uint64_t sp = state.general[0] & ~uint64_t{15};
  for (const int32_t depth : {0, 16, 4080, 4096, 70000, 1 << 23}) {
    for (const uint32_t bit : {0u, 1u, 7u, 8u, 63u, 64u, 200u, 511u}) {
      wire::UnitSlot slot{};
      t_slot = &slot;
      PatchRequest request{StartOf(entry), {}};
      request.hook.kind = HookKind::kOneContext;
      request.hook.depth = depth;
      request.hook.bit = bit;
      ASSERT_EQ(patcher.Install({&request, 1}, true), 1u);
      slot.base_sp = sp + static_cast<uint64_t>(depth) + 16;
      CallWithRegisters(entry.begin, &state);
      EXPECT_TRUE(std::all_of(slot.contexts, slot.contexts + wire::kContextWords,
                              [](uint64_t word) { return word == 0; }));
      slot.base_sp = sp + static_cast<uint64_t>(depth);
      slot.contexts[bit / 64] = uint64_t{1} << (bit + 1) % 64;
      const uint64_t expected = slot.contexts[bit / 64] | uint64_t{1} << bit % 64;
      CallWithRegisters(entry.begin, &state);
      EXPECT_EQ(slot.contexts[bit / 64], expected) << "depth " << depth << " bit " << bit;
      t_slot = nullptr;
    }
  }
  patcher.RemoveAll();
}

extern "C" __attribute__((noinline)) long AddForTest(long a, long b) {
  asm volatile("");
  return a * 3 + b;
}
uint64_t g_original_add;
extern "C" long AddDetoured(long a, long b) {
  long (*original)(long, long) = nullptr;
  std::memcpy(&original, &g_original_add, sizeof(original));
  return original(a, b) + 1000;
}

TEST(Patcher, ADetourRunsInsteadAndCanCallTheOriginal) {
  Patcher& patcher = ThePatcher();
  long (*volatile add)(long, long) = AddForTest;
  PatchRequest request{{reinterpret_cast<uint64_t>(add), 0, 0}, {}};
  request.hook.kind = HookKind::kDetour;
  request.hook.function = reinterpret_cast<uint64_t>(&AddDetoured);
  request.hook.original = &g_original_add;
  ASSERT_EQ(patcher.Install({&request, 1}, true), 1u);
  EXPECT_EQ(add(5, 7), 1022);
  PatchRequest again{request.function, TrainingHook(1)};
  EXPECT_EQ(patcher.Install({&again, 1}, true), 0u);
  EXPECT_EQ(again.outcome, PatchOutcome::kDetoured);
  EXPECT_EQ(patcher.RemoveAll(), 1u);
  EXPECT_EQ(add(5, 7), 22);
}

TEST(Patcher, DetouredEntriesOfEveryKindCallTheirOriginal) {
  std::mt19937_64 random(11);
  for (const TestEntry& entry : TestEntries()) {
    if (entry.refused != 0) continue;
    RegisterState before = RandomState(random), plain = before;
    CallWithRegisters(entry.begin, &plain);
    Patcher& patcher = ThePatcher();
    uint64_t original = 0;
    PatchRequest request{StartOf(entry), {}};
    request.hook.kind = HookKind::kDetour;
    request.hook.function = reinterpret_cast<uint64_t>(&plain_return);
    request.hook.original = &original;
    ASSERT_EQ(patcher.Install({&request, 1}, true), 1u) << entry.name;
    RegisterState untouched = before;
    CallWithRegisters(entry.begin, &untouched);
    EXPECT_EQ(Difference(untouched, before), "") << entry.name;
    if (std::string(entry.name) != "recursive") {  // which calls its detoured self
      RegisterState through = before;
      CallWithRegisters(original, &through);
      EXPECT_EQ(Difference(through, plain), "") << entry.name;
    }
    patcher.RemoveAll();
  }
}

TEST(Patcher, AnEntryGivenTwiceInABatchIsPatchedOnce) {
  Patcher& patcher = ThePatcher();
  const TestEntry& entry = EntryNamed("frame");
  const std::string code = CodeOf(entry);
  PatchRequest requests[] = {{StartOf(entry), TrainingHook(1)}, {StartOf(entry), TrainingHook(2)}};
  EXPECT_EQ(patcher.Install(requests, true), 1u);
  EXPECT_EQ(patcher.patched(), 1u);
  RegisterState state{};
  CallWithRegisters(entry.begin, &state);
  EXPECT_EQ(g_argument, 1u);
  EXPECT_EQ(patcher.RemoveAll(), 1u);
  EXPECT_EQ(CodeOf(entry), code);
}

TEST(Patcher, PlacesThatAreNoCodeAreRefused) {
  Patcher& patcher = ThePatcher();
  static uint64_t data[16];
  const MappedArray<LoadedModule> modules = LoadedModules();
  std::vector<PatchRequest> requests;
  requests.push_back({{reinterpret_cast<uint64_t>(data), 64, 0}, TrainingHook(1)});
  requests.push_back({{16, 64, 0}, TrainingHook(1)});
  FunctionStart cold = StartOf(EntryNamed("frame"));
  cold.flags = FunctionStart::kColdPart;
  requests.push_back({cold, TrainingHook(1)});
  for (const LoadedModule& module : modules) {
    if (module.role != ModuleRole::kLoader && module.role != ModuleRole::kVdso) continue;
    for (uint32_t i = 0; i < module.segment_count; ++i) {
      if (!module.segments[i].executable) continue;
      requests.push_back({{module.segments[i].range.begin + 2048, 64, 0}, TrainingHook(1)});
    }
  }
  EXPECT_EQ(patcher.Install(requests, true), 0u);
  EXPECT_EQ(requests[0].outcome, PatchOutcome::kNotExecutable);
  EXPECT_EQ(requests[1].outcome, PatchOutcome::kNotExecutable);
  EXPECT_EQ(requests[2].outcome, PatchOutcome::kSpecial);
  for (size_t i = 3; i < requests.size(); ++i) {
    // An emulator does not list its vDSO among the mappings.
    EXPECT_TRUE(requests[i].outcome == PatchOutcome::kReserved ||
                requests[i].outcome == PatchOutcome::kNotExecutable);
  }
}

TEST(Patcher, NoPageIsWritableAndExecutableAfterwards) {
  static Patcher patcher(Options(WritePath::kMprotect));
  std::vector<PatchRequest> requests = RequestsForAll(TrainingHook(1));
  ExpectAllPatched(patcher, requests);
  MappedArray<Mapping> mappings;
  ASSERT_TRUE(ReadMappings(mappings));
  for (const Mapping& mapping : mappings) EXPECT_FALSE(mapping.writable && mapping.executable);
  patcher.RemoveAll();
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
