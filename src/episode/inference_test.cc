// SPDX-License-Identifier: Apache-2.0
#include "episode/inference.h"

#include <gtest/gtest.h>

#include "episode/syscall_trace.h"
#include "trace/error_table.h"

namespace culprit::episode::TEST_FILE {
namespace {

struct Step {
  const char* name;
  const char* stack;
};

constexpr Step kRequest[] = {{"accept4", "app!main;app!Serve;app!Accept"},
                             {"read", "app!main;app!Serve;app!Handle;app!Receive"},
                             {"openat", "app!main;app!Serve;app!Handle;app!Load"},
                             {"fstat", "app!main;app!Serve;app!Handle;app!Load"},
                             {"close", "app!main;app!Serve;app!Handle;app!Load"},
                             {"write", "app!main;app!Serve;app!Handle;app!Reply"}};

// A server that handles requests, one a millisecond.
class Server {
 public:
  explicit Server(bool stacks) : stacks_(stacks) {}

  void Request() {
    for (const Step& step : kRequest) Call(step.name, step.stack);
    at_ += 1'000'000;
  }
  trace::Event& Call(const char* name, const char* stack, int64_t dur_ns = 1'000) {
    trace::Event& event = made.Call("app", name, at_, dur_ns, stacks_ ? stack : "");
    at_ += dur_ns + 1'000;
    return event;
  }
  void Requests(int count) {
    for (int i = 0; i < count; ++i) Request();
  }

  SyscallTrace made{INT64_C(100'000'000'000)};

 private:
  bool stacks_;
  int64_t at_ = 1'000;
};

Profile ServerProfile() {
  Server server(true);
  server.Requests(50);
  ProfileBuilder builder({});
  builder.Add(server.made.small.Reader());
  return builder.Finish();
}

class InferTest : public testing::Test {
 protected:
  Inference Run(const Server& buggy, const Server* normal, InferOptions options = {}) {
    const SyscallLog log = buggy.made.Log(profile_.symbols);
    std::vector<SyscallLog> usual;
    if (normal != nullptr) usual.push_back(normal->made.Log(profile_.symbols));
    return Infer(profile_, log, usual, nullptr, options);
  }

  Profile profile_ = ServerProfile();
};

Server Normal() {
  Server server(false);
  server.Requests(80);
  return server;
}

Server AcceptLoop() {
  Server server(false);
  server.Requests(40);
  for (int i = 0; i < 3'000; ++i) server.Call("accept4", "").arg1 = -11;
  return server;
}

TEST_F(InferTest, ALoopOfOneCallIsBlamedOnTheFunctionThatMakesIt) {
  const Server normal = Normal();
  const Inference inference = Run(AcceptLoop(), &normal);
  ASSERT_FALSE(inference.functions.empty());
  const InferredFunction& first = inference.functions[0];
  EXPECT_EQ(first.function, "app!Accept");
  EXPECT_EQ(first.score, 3000);
  EXPECT_EQ(first.own, 3000);
  EXPECT_EQ(first.order, 1u);
  EXPECT_TRUE(first.first_ns.has_value());
  ASSERT_EQ(inference.comparison.calls.size(), 1u);
  EXPECT_EQ(inference.comparison.calls[0].expected, 40'000);
  EXPECT_EQ(trace::ErrorName(inference.load.of(inference.comparison.calls[0].symbol).error),
            "EAGAIN");
  EXPECT_EQ(inference.null_rows, 0u);
  // Its callers own it too but do much else; siblings do not own it.
  for (const InferredFunction& function : inference.functions) {
    EXPECT_NE(function.function, "app!Load");
    if (&function != &first) {
      EXPECT_LT(function.score, first.score);
    }
  }
}

TEST_F(InferTest, WithoutANormalTraceTheProfileIsTheNormalSide) {
  const Inference inference = Run(AcceptLoop(), nullptr);
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Accept");
  EXPECT_FALSE(inference.against_trace);
}

TEST_F(InferTest, NormalAgainstNormalBlamesNobodyAndSaysWhatCannotBeSeen) {
  const Server normal = Normal();
  Server more(false);
  more.Requests(333);
  const Inference inference = Run(more, &normal);
  EXPECT_TRUE(inference.functions.empty());
  EXPECT_TRUE(inference.comparison.calls.empty());
  ASSERT_FALSE(inference.notes.empty());
  EXPECT_NE(inference.notes.back().find("CPU"), std::string::npos);
  EXPECT_TRUE(inference.warnings.empty());
}

TEST_F(InferTest, CallsThatNoProfiledFunctionMakesAreNotInTheProfile) {
  const Server normal = Normal();
  Server buggy(false);
  buggy.Requests(40);
  for (int i = 0; i < 200; ++i) {
    buggy.Call("kill", "");
    buggy.Call("getrandom", "");
  }
  const Inference inference = Run(buggy, &normal);
  ASSERT_EQ(inference.functions.size(), 1u);
  EXPECT_EQ(inference.functions[0].function, kNotInProfile);
  EXPECT_EQ(inference.functions[0].score, 400);
  EXPECT_EQ(inference.named, 0u);
  EXPECT_FALSE(inference.functions[0].episodes.empty());
}

TEST_F(InferTest, AnExcessOfSeveralCallsIsBlamedOnWhoMakesThemAll) {
  const Server normal = Normal();
  Server buggy(false);
  buggy.Requests(40);
  for (int i = 0; i < 500; ++i) {
    for (const char* name : {"openat", "fstat", "close"}) buggy.Call(name, "");
  }
  const Inference inference = Run(buggy, &normal);
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Load");
  EXPECT_EQ(inference.functions[0].symbols.size(), 3u);
  EXPECT_GT(inference.functions[0].matched, 0u);
}

TEST_F(InferTest, FunctionsThatCannotBeToldApartAreOneRow) {
  Server server(true);
  for (int i = 0; i < 50; ++i) {
    server.Call("fdatasync", "app!main;app!Commit;app!Flush;app!Sync");
    server.Call("read", "app!main;app!Read");
  }
  ProfileBuilder builder({});
  builder.Add(server.made.small.Reader());
  profile_ = builder.Finish();
  Server buggy(false);
  for (int i = 0; i < 50; ++i) buggy.Call("read", "");
  for (int i = 0; i < 500; ++i) buggy.Call("fdatasync", "");
  const Inference inference = Run(buggy, nullptr);
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Sync");
  EXPECT_EQ(inference.functions[0].co_owners,
            (std::vector<std::string>{"app!Commit", "app!Flush"}));
}

TEST_F(InferTest, TimeInCallsIsAListOfItsOwnWithoutWaitsForRequests) {
  Server normal(false);
  normal.Requests(80);
  Server buggy(false);
  for (int i = 0; i < 80; ++i) {
    buggy.Request();
    buggy.Call("accept4", "", 5'000'000);
  }
  buggy.Call("write", "", 900'000'000).flags = trace::kUnfinished;
  const Inference inference = Run(buggy, &normal);
  ASSERT_FALSE(inference.time.empty());
  EXPECT_EQ(inference.time[0].function, "app!Reply");
  EXPECT_GT(inference.time[0].score, 8e8);
  for (const InferredFunction& function : inference.time) {
    EXPECT_NE(function.function, "app!Accept");
  }
}

TEST_F(InferTest, IdleWorkersInALongerRecordingAreNoExcessOfTime) {
  Server normal(false);
  normal.Requests(80);
  normal.made.small.trace.metadata.end_ns = 1'000'000'000;
  normal.Call("futex", "", 900'000'000).flags = trace::kUnfinished;
  Server buggy(false);
  buggy.Requests(20);
  buggy.made.small.trace.metadata.end_ns = 4'000'000'000;
  buggy.Call("futex", "", 3'900'000'000).flags = trace::kUnfinished;
  EXPECT_TRUE(Run(buggy, &normal).time.empty());
  buggy.made.small.trace.metadata.end_ns = 1'000'000'000;  // now it is stuck for too long
  EXPECT_FALSE(Run(buggy, &normal).time.empty());
}

TEST_F(InferTest, AnEndlessLoopThatDoesNothingElseIsStillAnExcess) {
  const Server normal = Normal();
  Server buggy(false);
  for (int i = 0; i < 3'000; ++i) buggy.Call("accept4", "");
  const Inference inference = Run(buggy, &normal);
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Accept");
}

TEST_F(InferTest, TinyTracesAreCalledTiny) {
  const Server normal = Normal();
  Server buggy(false);
  buggy.Request();
  const Inference inference = Run(buggy, &normal);
  EXPECT_TRUE(inference.functions.empty());
  ASSERT_FALSE(inference.warnings.empty());
  EXPECT_NE(inference.warnings[0].find("only 6 system calls"), std::string::npos);
}

TEST_F(InferTest, AnotherMixOfWorkIsWarnedOf) {
  const Server normal = Normal();
  Server buggy(false);
  for (int i = 0; i < 100; ++i) {
    for (const char* name : {"accept4", "read", "close"}) buggy.Call(name, "");
  }
  const Inference inference = Run(buggy, &normal);
  EXPECT_GT(inference.comparison.mix_distance, 0.35);
  ASSERT_FALSE(inference.warnings.empty());
  EXPECT_NE(inference.warnings[0].find("mix of work"), std::string::npos);
}

TEST_F(InferTest, StacksOfTheTraceGiveTheirOwnVerdict) {
  Server buggy(true);
  buggy.Requests(40);
  for (int i = 0; i < 3'000; ++i) buggy.Call("accept4", "app!main;app!Restart");
  const SyscallLog log = buggy.made.Log(profile_.symbols);
  ProfileBuilder builder({.episodes = {.max_length = 1}});
  builder.StartWith(profile_.symbols);
  builder.Add(buggy.made.small.Reader());
  const Profile stacks = builder.Finish();
  const Inference inference = Infer(profile_, log, {}, &stacks, {});
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Accept");  // all that calls can tell
  ASSERT_FALSE(inference.stacks.empty());
  EXPECT_EQ(inference.stacks[0].function, "app!Restart");
}

TEST_F(InferTest, ThePapersMethodMatchesEpisodesOfUnusualUnits) {
  Server buggy(false);
  buggy.Requests(60);
  for (int i = 0; i < 400; ++i) {
    for (const char* name : {"openat", "fstat", "close"}) buggy.Call(name, "");
  }
  const Inference inference = Run(buggy, nullptr, {.method = Method::kPaper});
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, "app!Load");
  ASSERT_FALSE(inference.functions[0].episodes.empty());
  double largest = 0;
  for (const EpisodeMatch& match : inference.functions[0].episodes) {
    const auto before = static_cast<double>(match.profile_count);
    largest = std::max(largest, (static_cast<double>(match.count) - before) / before);
  }
  EXPECT_EQ(inference.functions[0].score, largest);
  EXPECT_GT(largest, 6);  // 400 turns of the loop against 50 in the profile
  EXPECT_GT(inference.anomalies.abnormal, 0u);
}

TEST_F(InferTest, IsTheSameForAnyNumberOfThreads) {
  for (const Method method : {Method::kExcess, Method::kPaper}) {
    const Inference one = Run(AcceptLoop(), nullptr, {.method = method, .jobs = 1});
    const Inference two = Run(AcceptLoop(), nullptr, {.method = method, .jobs = 2});
    ASSERT_EQ(one.functions.size(), two.functions.size());
    for (size_t i = 0; i < one.functions.size(); ++i) {
      EXPECT_EQ(one.functions[i].function, two.functions[i].function);
      EXPECT_EQ(one.functions[i].score, two.functions[i].score);
      EXPECT_EQ(one.functions[i].units, two.functions[i].units);
    }
  }
}

TEST(OtherBuilds, AreModulesOfAnotherBuildId) {
  trace::Dictionary dictionary;
  dictionary.InternModule({.name = dictionary.Intern("app"), .build_id = dictionary.Intern("bb")});
  dictionary.InternModule({.name = dictionary.Intern("lib"), .build_id = dictionary.Intern("cc")});
  Profile profile;
  profile.functions.push_back({.name = {"app", "aa", "f"}});
  profile.functions.push_back({.name = {"lib", "cc", "g"}});
  EXPECT_EQ(OtherBuilds(profile, dictionary), std::vector<std::string>{"app"});
}

// A server whose background thread alone syncs, as long as it is healthy.
SyscallTrace Journal(bool main_syncs) {
  SyscallTrace made{INT64_C(100'000'000'000)};
  for (int64_t i = 0; i < 400; ++i) {
    const int64_t at = 1'000 + i * 1'000'000;
    made.Call("app", "read", at, 1'000, "app!main;app!Receive");
    made.Call("app", "write", at + 2'000, 1'000, "app!main;app!Reply");
    if (main_syncs) made.Call("app", "fdatasync", at + 4'000, 500'000, "app!main;app!Flush");
    if (i % 10 == 0) made.Call("bio-3", "fdatasync", at + 7'000, 500'000, "app!Background");
  }
  return made;
}

TEST(Infer, CallsOfAThreadThatNeverMadeSuchAreNotThoseOfTheFunctionsThatDid) {
  const SyscallTrace normal = Journal(false);
  const SyscallTrace slow = Journal(true);
  ProfileBuilder builder({});
  builder.Add(normal.small.Reader());
  Profile profile = builder.Finish();
  ASSERT_EQ(profile.roles.size(), 2u);
  EXPECT_EQ(profile.roles[1].name, "bio-#");
  const SyscallLog log = slow.Log(profile.symbols);
  const std::vector<SyscallLog> usual = {normal.Log(profile.symbols)};
  const Inference inference = Infer(profile, log, usual, nullptr, {});
  ASSERT_FALSE(inference.functions.empty());
  EXPECT_EQ(inference.functions[0].function, kNotInProfile);
  EXPECT_EQ(inference.named, 0u);
  // Without names of threads it is the only function that the profile knows to sync.
  profile.roles.clear();
  EXPECT_EQ(Infer(profile, log, usual, nullptr, {}).functions[0].function, "app!Background");
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
