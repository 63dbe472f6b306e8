// SPDX-License-Identifier: Apache-2.0
#include "guard/call_walk.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "guard/simulated_training.h"

namespace culprit::guard::TEST_FILE {
namespace {

class CallWalkTest : public testing::Test {
 protected:
  CallWalkTest() { thread_.LogTimes(); }

  // A system call of the running function.
  void SystemCall() {
    moments_.push_back(static_cast<int64_t>(thread_.Now()));
    thread_.Now();
  }
  // The same through a wrapper of the C library that is logged, or detoured.
  void LoggedCall() {
    thread_.Call("write", 16, [&] { SystemCall(); });
  }
  void DetouredCall() {
    thread_.Place();
    SystemCall();
  }

  WalkedLog Walk() {
    process_.Write(folder_);
    thread_.Write(folder_);
    const auto logs = ListLogs(folder_.path(), diagnostics_);
    EXPECT_EQ(logs.value().size(), 1u);
    code_.AddProcess(folder_.path(), process_.pid(), diagnostics_);
    auto walked = CallWalk(code_, logs.value()[0], moments_, paths_).Run(diagnostics_);
    EXPECT_TRUE(walked.ok());
    return std::move(walked).value();
  }

  std::string PathText(uint32_t path) const {
    std::string text;
    const std::vector<std::string> names = process_.Names();
    for (uint32_t at = path; at != kNoIndex; at = paths_.nodes()[at].caller) {
      text.insert(0, names[paths_.nodes()[at].function] + (text.empty() ? "" : ";"));
    }
    return text;
  }

  // By moment, the innermost call around it: the deepest one.
  std::vector<std::string> InnermostOf(const WalkedLog& walked) const {
    std::vector<std::string> innermost(moments_.size());
    for (size_t i = 0; i < moments_.size(); ++i) {
      for (const WalkedCall& call : walked.calls) {
        if (call.begin_ns > moments_[i] || call.end_ns <= moments_[i]) continue;
        const std::string text = PathText(call.path);
        if (text.size() > innermost[i].size()) innermost[i] = text;
      }
    }
    return innermost;
  }

  TestFolder folder_;
  SimulatedProcess process_{7};
  SimulatedThread thread_{process_, 7};
  std::vector<int64_t> moments_;
  Diagnostics diagnostics_;
  SessionCode code_;
  CallPaths paths_;
};

TEST_F(CallWalkTest, AMomentLiesInTheFunctionsThatWereEnteredAround) {
  thread_.Call("main", 64, [&] {
    thread_.Call("Quiet", 32, [&] { thread_.Call("Quieter"); });
    thread_.Call("Loud", 32, [&] { LoggedCall(); });
    LoggedCall();
  });
  const WalkedLog walked = Walk();
  EXPECT_EQ(InnermostOf(walked), (std::vector<std::string>{"main;Loud;write", "main;write"}));
  std::set<std::string> kept;
  for (const WalkedCall& call : walked.calls) kept.insert(PathText(call.path));
  EXPECT_FALSE(kept.contains("main;Quiet"));
  EXPECT_EQ(walked.entries, 6u);
}

TEST_F(CallWalkTest, ADetouredCallBelongsToItsCallerNotToWhatReturnedBefore) {
  thread_.Call("main", 64, [&] {
    thread_.Call("Returned", 32, [] {});
    DetouredCall();
    thread_.Call("Inner", 32, [&] { DetouredCall(); });
    DetouredCall();
  });
  EXPECT_EQ(InnermostOf(Walk()), (std::vector<std::string>{"main", "main;Inner", "main"}));
}

TEST_F(CallWalkTest, WhatReturnedIsKnownByTheReturnAddressWhereTheStackGrew) {
  thread_.Call("main", 64, [&] {
    thread_.Call("Returned", 32, [] {});
    thread_.Grow(256);
    LoggedCall();
    thread_.Grow(static_cast<uint64_t>(-256));
  });
  EXPECT_EQ(InnermostOf(Walk()), std::vector<std::string>{"main;write"});
}

TEST_F(CallWalkTest, ACallerWhoseEntryWasNotSeenIsKnownByTheReturnAddress) {
  thread_.Call("main", 64, [&] {
    thread_.Raw(static_cast<uint64_t>(wire::LogKind::kLost) << 60 | 16);
    LoggedCall();
    LoggedCall();
  });
  EXPECT_EQ(InnermostOf(Walk()), (std::vector<std::string>{"main;write", "main;write"}));
}

TEST_F(CallWalkTest, ATailCallTakesItsCallersPlace) {
  thread_.Call("main", 64, [&] {
    thread_.Call("First", 32, [&] {
      thread_.TailCall("Second");
      SystemCall();
    });
  });
  EXPECT_EQ(InnermostOf(Walk()), std::vector<std::string>{"main;Second"});
}

TEST_F(CallWalkTest, WhatGoesOnAtTheEndHoldsTheLastMoments) {
  thread_.Call("main", 64, [&] { thread_.Call("Loop", 32, [&] { DetouredCall(); }); });
  moments_.push_back(moments_.back() + 1'000'000);
  EXPECT_EQ(InnermostOf(Walk()), (std::vector<std::string>{"main;Loop", "main;Loop"}));
}

TEST_F(CallWalkTest, TheRuntimesOwnWorkIsTold) {
  thread_.Call("main", 64, [&] { thread_.OwnWork(500); });
  const WalkedLog walked = Walk();
  ASSERT_EQ(walked.own_work.size(), 1u);
  EXPECT_EQ(walked.own_work[0].end_ns - walked.own_work[0].begin_ns, 500);
  EXPECT_TRUE(walked.calls.empty());
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
