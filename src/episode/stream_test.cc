// SPDX-License-Identifier: Apache-2.0
#include "episode/stream.h"

#include <gtest/gtest.h>

#include "episode/inference.h"
#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

std::vector<Load> Usual(const Profile& profile) { return {LoadOf(profile)}; }

constexpr int64_t kSecond = 1'000'000'000;

TEST(LoadWindow, HoldsWhatLiesInTheWindowAndNothingElse) {
  LoadWindow window(3 * kSecond);
  for (int64_t i = 0; i < 10; ++i) {
    window.Add(i * kSecond, (i + 1) * kSecond, kSecond / 2,
               {{.symbol = 0, .calls = static_cast<uint64_t>(i), .dur_ns = i},
                {.symbol = 1, .error = 11, .calls = 2, .dur_ns = 5}});
  }
  EXPECT_EQ(window.begin_ns(), 7 * kSecond);
  EXPECT_EQ(window.end_ns(), 10 * kSecond);
  EXPECT_EQ(window.slices(), 3U);
  const Load load = window.Sum();
  EXPECT_EQ(load.of(0).calls, 7U + 8 + 9);
  EXPECT_EQ(load.of(0).dur_ns, 7 + 8 + 9);
  EXPECT_EQ(load.of(0).failed, 0U);
  EXPECT_EQ(load.of(1).calls, 6U);
  EXPECT_EQ(load.of(1).failed, 6U);
  EXPECT_EQ(load.of(1).error, 11);
  EXPECT_EQ(load.calls, 30U);
  EXPECT_EQ(load.wall_ns, 3 * kSecond / 2);
}

TEST(LoadWindow, CallsThatGoOnAddTheirTimeUpToTheWindow) {
  LoadWindow window(3 * kSecond);
  window.Add(0, kSecond, kSecond, {{.symbol = 0, .calls = 1, .dur_ns = 5}});
  const Load load = window.Sum({{.symbol = 2, .calls = 1, .dur_ns = kSecond / 2},
                                {.symbol = 0, .calls = 1, .dur_ns = 60 * kSecond}});
  EXPECT_EQ(load.of(2).dur_ns, kSecond / 2);
  EXPECT_EQ(load.of(2).calls, 0U);
  EXPECT_EQ(load.of(0).dur_ns, 5 + kSecond);
}

TEST(LoadWindow, IsEmptyAtFirst) {
  const LoadWindow window(kSecond);
  EXPECT_EQ(window.Sum().calls, 0U);
  EXPECT_EQ(window.Sum().wall_ns, 0);
}

// A server: Serve reads and writes, Log syncs; `syncs` a round.
SyscallTrace Server(size_t rounds, size_t syncs) {
  SyscallTrace trace(100 * kSecond);
  int64_t now_ns = 0;
  for (size_t i = 0; i < rounds; ++i) {
    trace.Call("server", "read", now_ns += 1000, 100, "app!main;app!Serve");
    trace.Call("server", "write", now_ns += 1000, 100, "app!main;app!Serve");
    trace.Call("server", "sendto", now_ns += 1000, 100, "app!main;app!Serve");
    for (size_t k = 0; k < syncs; ++k) {
      trace.Call("server", "fdatasync", now_ns += 1000, 100, "app!main;app!Log");
    }
  }
  return trace;
}

std::vector<CountedCall> Counted(const SyscallLog& log) {
  std::vector<CountedCall> counted;
  for (const ThreadLog& thread : log.threads) {
    for (const Syscall& call : thread.calls) {
      counted.push_back(
          {.symbol = call.symbol, .error = call.error, .calls = 1, .dur_ns = call.dur_ns});
    }
  }
  return counted;
}

TEST(RankStream, NamesWhomTheTraceOfTheSameCallsNames) {
  ProfileBuilder builder({});
  builder.Add(Server(500, 1).small.Reader());
  Profile profile = builder.Finish();
  for (const size_t syncs : {1, 2, 4, 30}) {
    const SyscallLog log = Server(200, syncs).Log(profile.symbols);
    LoadWindow window(200 * kSecond);
    window.Add(log.begin_ns, log.end_ns, log.end_ns - log.begin_ns, Counted(log));
    const StreamRanking stream = RankStream(profile, window.Sum(), Usual(profile));
    const Inference whole = Infer(profile, log, {}, nullptr, {});
    ASSERT_EQ(stream.functions.size(), whole.functions.size()) << syncs;
    for (size_t i = 0; i < stream.functions.size(); ++i) {
      EXPECT_EQ(stream.functions[i].function, whole.functions[i].function);
      EXPECT_EQ(stream.functions[i].score, whole.functions[i].score);
      EXPECT_EQ(stream.functions[i].own, whole.functions[i].own);
    }
    EXPECT_EQ(stream.functions.empty(), syncs == 1) << syncs;
    if (syncs == 30) {
      EXPECT_EQ(stream.functions[0].function, "app!Log");
    }
  }
}

TEST(RankStream, SaysWhenThereIsTooLittleToCompare) {
  ProfileBuilder builder({});
  builder.Add(Server(500, 1).small.Reader());
  Profile profile = builder.Finish();
  const SyscallLog log = Server(2, 3).Log(profile.symbols);
  LoadWindow window(200 * kSecond);
  window.Add(log.begin_ns, log.end_ns, log.end_ns - log.begin_ns, Counted(log));
  const StreamRanking stream = RankStream(profile, window.Sum(), Usual(profile));
  EXPECT_TRUE(stream.functions.empty());
  ASSERT_EQ(stream.warnings.size(), 1U);
  EXPECT_NE(stream.warnings[0].find("too few"), std::string::npos);
}

TEST(RankStream, SaysWhenWorkHasStopped) {
  ProfileBuilder builder({});
  builder.Add(Server(500, 1).small.Reader());
  Profile profile = builder.Finish();
  LoadWindow window(200 * kSecond);
  window.Add(0, kSecond, kSecond,
             {{.symbol = *profile.symbols.Find("fdatasync"), .calls = 5000, .dur_ns = 5000}});
  const StreamRanking stream = RankStream(profile, window.Sum(), Usual(profile));
  ASSERT_FALSE(stream.functions.empty());
  EXPECT_EQ(stream.functions[0].function, "app!Log");
  ASSERT_FALSE(stream.warnings.empty());
  EXPECT_NE(stream.warnings[0].find("work has stopped"), std::string::npos);
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
