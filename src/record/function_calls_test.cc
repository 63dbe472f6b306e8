// SPDX-License-Identifier: Apache-2.0
#include "record/function_calls.h"

#include <gtest/gtest.h>

#include <set>

namespace culprit::record::TEST_FILE {
namespace {

using trace::Event;

class EventList final : public assemble::EventTarget {
 public:
  Status Add(const Event& event) override {
    trace.events.push_back(event);
    return {};
  }
  void AddInstance(const trace::Instance&) override {}
  trace::Dictionary& dictionary() override { return trace.dictionary; }
  trace::Metadata& metadata() override { return trace.metadata; }

  trace::Trace trace;
};

class FunctionCallsTest : public testing::Test {
 protected:
  void Enter(int64_t time_ns, const std::string& function, int64_t tid = 7) {
    EXPECT_TRUE(calls_.Take({time_ns, tid, tid, true, function}).ok());
  }
  void Leave(int64_t time_ns, const std::string& function, int64_t tid = 7) {
    EXPECT_TRUE(calls_.Take({time_ns, tid, tid, false, function}).ok());
  }
  // "main;load [110,150)", a line a call, in the order of their ends.
  std::string Text(int64_t end_ns = 1000) {
    EXPECT_TRUE(calls_.Finish(end_ns).ok());
    EXPECT_TRUE(assembler_.Finish(end_ns).ok());
    std::string text;
    for (const Event& event : list_.trace.events) {
      if (event.kind != trace::EventKind::kCall) continue;
      std::string stack = list_.trace.dictionary.StackText(event.stack);
      for (size_t at = stack.find("[jit]!"); at != std::string::npos; at = stack.find("[jit]!")) {
        stack.erase(at, 6);
      }
      text += stack + " [" + std::to_string(event.time_ns) + "," + std::to_string(event.end_ns()) +
              ")" + ((event.flags & trace::kUnfinished) != 0 ? " open" : "") +
              ((event.flags & trace::kInferred) != 0 ? " since the begin" : "") + "\n";
    }
    return text;
  }

  EventList list_;
  assemble::FusedAssembler assembler_{list_, 100};
  Diagnostics diagnostics_;
  std::set<int64_t> recorded_ = {7, 8};
  FunctionCalls calls_{assembler_, list_.dictionary(), 100,
                       [this](int64_t tid) { return recorded_.contains(tid); }, diagnostics_};
};

TEST_F(FunctionCallsTest, CallsHaveTheirCallers) {
  Enter(110, "main");
  Enter(120, "load");
  Enter(130, "load");
  Leave(140, "load");
  Leave(150, "load");
  Enter(160, "save");
  Leave(170, "save");
  Leave(180, "main");
  EXPECT_EQ(Text(),
            "main;load;load [130,140)\nmain;load [120,150)\nmain;save [160,170)\nmain [110,180)\n");
  EXPECT_TRUE(diagnostics_.empty());
}

TEST_F(FunctionCallsTest, WhatWasEnteredBeforeTheBeginRanSinceThen) {
  Leave(120, "inner");
  Enter(130, "other");
  Leave(140, "other");
  Leave(150, "outer");
  EXPECT_EQ(Text(),
            "inner [100,120) since the begin\nother [130,140)\n"
            "outer [100,150) since the begin\n");
}

TEST_F(FunctionCallsTest, AnExitClosesWhatWasNeverLeft) {
  Enter(110, "main");
  Enter(120, "lost");
  Leave(140, "main");
  Enter(150, "main");
  Leave(160, "never entered");
  EXPECT_EQ(Text(200), "main;lost [120,140)\nmain [110,140)\nmain [150,200) open\n");
  EXPECT_EQ(diagnostics_.rows().size(), 2u);
}

TEST_F(FunctionCallsTest, ThreadsAreApartAndOthersLeftOut) {
  Enter(110, "a", 7);
  Enter(115, "b", 8);
  Enter(116, "c", 9);
  Leave(120, "a", 7);
  Leave(125, "b", 8);
  Leave(126, "c", 9);
  EXPECT_EQ(Text(), "a [110,120)\nb [115,125)\n");
}

TEST_F(FunctionCallsTest, HitsBeforeTheBeginAreNone) {
  Enter(50, "early");
  Enter(110, "main");
  Leave(120, "main");
  EXPECT_EQ(Text(), "main [110,120)\n");
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
