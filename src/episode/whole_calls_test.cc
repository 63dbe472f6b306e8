// SPDX-License-Identifier: Apache-2.0
#include "episode/whole_calls.h"

#include <gtest/gtest.h>

#include "episode/inference.h"
#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

constexpr int64_t kUs = 1000;

// A worker that locks and unlocks, and reads now and then.
SyscallTrace Worker(bool operations, size_t rounds, size_t wakes) {
  SyscallTrace trace;
  int64_t now_ns = 0;
  const auto call = [&](const std::string& name, std::string_view stack) {
    trace.Call("worker", operations ? name : std::string(CallOf(name)), now_ns += 10 * kUs, kUs,
               stack);
  };
  for (size_t i = 0; i < rounds; ++i) {
    call("read", "app!main;app!Serve");
    call("futex(WAIT)", "app!main;app!Lock");
    for (size_t k = 0; k < wakes; ++k) call("futex(WAKE)", "app!main;app!Unlock");
  }
  return trace;
}

Profile ProfileOf(const SyscallTrace& trace) {
  ProfileBuilder builder({});
  builder.Add(trace.small.Reader());
  return builder.Finish();
}

uint64_t CallsOf(const Profile& profile, std::string_view symbol) {
  const std::optional<Symbol> id = profile.symbols.Find(symbol);
  for (const SymbolTotal& total : profile.totals) {
    if (id && total.symbol == *id) return total.count;
  }
  return 0;
}

TEST(WholeCalls, OperationsAreSymbolsWhereAllSidesHaveThem) {
  Profile profile = ProfileOf(Worker(true, 50, 1));
  const SyscallLog log = Worker(true, 50, 20).Log(profile.symbols);
  const SyscallLog* const logs[] = {&log, nullptr};
  EXPECT_TRUE(CallsToTakeWhole(profile, logs).empty());
  EXPECT_EQ(CallsOf(profile, "futex(WAIT)"), 50U);
  EXPECT_EQ(CallsOf(profile, "futex(WAKE)"), 50U);
  // Who wakes too often is told from who waits.
  const Inference inference = Infer(profile, log, {}, nullptr, {});
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Unlock");
  for (const InferredFunction& function : inference.functions) {
    EXPECT_NE(function.function, "app!Lock");
  }
}

TEST(WholeCalls, ACallWithoutItsOperationOnOneSideIsWholeOnAll) {
  for (const bool profile_knows : {false, true}) {
    Profile profile = ProfileOf(Worker(profile_knows, 50, 1));
    SyscallLog log = Worker(!profile_knows, 50, 3).Log(profile.symbols);
    const SyscallLog* const logs[] = {&log};
    const CallNames calls = CallsToTakeWhole(profile, logs);
    EXPECT_EQ(calls, (CallNames{"futex"}));
    TakeWhole(calls, profile);
    TakeWhole(calls, profile.symbols, log);
    EXPECT_EQ(CallsOf(profile, "futex"), 100U);
    EXPECT_EQ(CallsOf(profile, "futex(WAIT)"), 0U);
    uint64_t futexes = 0;
    for (const Syscall& call : log.threads[0].calls) {
      EXPECT_EQ(CallOf(profile.symbols.Name(call.symbol)), profile.symbols.Name(call.symbol));
      if (profile.symbols.Name(call.symbol) == "futex") ++futexes;
    }
    EXPECT_EQ(futexes, 200U);
    const Load load = LoadOf(log);
    EXPECT_EQ(load.of(*profile.symbols.Find("futex")).calls, 200U);
  }
}

TEST(WholeCalls, TakenWholeAProfileIsThatOfCallsWithoutOperations) {
  Profile with = ProfileOf(Worker(true, 30, 2));
  const Profile without = ProfileOf(Worker(false, 30, 2));
  TakeWhole({"futex"}, with);
  ASSERT_EQ(with.functions.size(), without.functions.size());
  const auto named = [](const Profile& profile, const std::vector<SymbolCount>& counts) {
    std::map<std::string, uint64_t> result;
    for (const SymbolCount& row : counts)
      result[std::string(profile.symbols.Name(row.symbol))] += row.count;
    return result;
  };
  for (size_t i = 0; i < with.functions.size(); ++i) {
    EXPECT_EQ(with.functions[i].name, without.functions[i].name);
    EXPECT_EQ(named(with, with.functions[i].innermost),
              named(without, without.functions[i].innermost));
    EXPECT_EQ(named(with, with.functions[i].inclusive),
              named(without, without.functions[i].inclusive));
  }
}

TEST(WholeCalls, AFewCallsWithoutTheirBeginDoNotCount) {
  Profile profile = ProfileOf(Worker(true, 50, 1));
  SyscallTrace trace = Worker(true, 50, 1);
  trace.Call("worker", "futex", 900'000 * kUs, kUs);
  const SyscallLog log = trace.Log(profile.symbols);
  const SyscallLog* const logs[] = {&log};
  EXPECT_TRUE(CallsToTakeWhole(profile, logs).empty());
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
