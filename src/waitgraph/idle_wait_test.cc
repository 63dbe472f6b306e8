// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/idle_wait.h"

#include <gtest/gtest.h>

#include <string>

#include "trace/small_trace.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

// Activity written down by stack.
class Written {
 public:
  void Waits(const char* stack, uint64_t count, bool idle = true) {
    ActivityCounts counts;
    counts.waits = count;
    counts.recurring = count > 1 ? count : 0;
    (idle ? counts.idle : counts.work) = count;
    Add(stack, counts);
  }
  void Wakes(const char* stack, uint64_t count) {
    ActivityCounts counts;
    counts.wakes = count;
    Add(stack, counts);
  }
  void Runs(const char* stack, uint64_t count) {
    ActivityCounts counts;
    counts.runs = count;
    Add(stack, counts);
  }

  std::string LoopName(LoopSearch search = LoopSearch::kStrict) {
    const FunctionPaths paths(small_.trace.dictionary);
    return paths.Name(paths.function(FindLoop(paths, Tree(paths), search).path));
  }
  bool Certain() {
    const FunctionPaths paths(small_.trace.dictionary);
    return FindLoop(paths, Tree(paths), LoopSearch::kStrict).certain;
  }
  std::string IdleName() {
    const FunctionPaths paths(small_.trace.dictionary);
    const ActivityTree tree = Tree(paths);
    const Loop loop = FindLoop(paths, tree, LoopSearch::kStrict);
    return paths.Name(JudgeLoop(paths, tree, {loop.path}, false).idle);
  }

 private:
  void Add(const char* stack, const ActivityCounts& counts) {
    parts_.emplace_back(small_.Stack(stack), counts);
  }
  ActivityTree Tree(const FunctionPaths& paths) const {
    std::vector<Activity> each;
    for (const auto& [stack, counts] : parts_) each.push_back({{paths.Of(stack), counts}});
    std::vector<const Activity*> pointers;
    for (const Activity& activity : each) pointers.push_back(&activity);
    return ActivityTree(paths, Join(pointers));
  }

  trace::SmallTrace small_{0, 1};
  std::vector<std::pair<trace::StackId, ActivityCounts>> parts_;
};

TEST(IdleWait, TheLoopIsWhereRecurringWaitsPart) {
  Written w;
  w.Waits("a!main;a!run;a!loop;a!poll", 50);
  w.Waits("a!main;a!run;a!loop;a!work;a!lock", 50, false);
  w.Waits("a!main;a!init", 1, false);  // does not recur
  EXPECT_EQ(w.LoopName(), "a!loop");
  EXPECT_TRUE(w.Certain());
  EXPECT_EQ(w.IdleName(), "a!poll");
}

TEST(IdleWait, TheLoopIsNeverInsideTheWaitingCall) {
  Written w;
  w.Waits("a!main;a!take;libc.so.6!pthread_cond_wait;[kernel]!futex_wait", 50);
  w.Waits("a!main;a!take;libc.so.6!pthread_cond_wait;libc.so.6!__lll_lock_wait", 50);
  EXPECT_EQ(w.LoopName(), "a!take");
  EXPECT_FALSE(w.Certain());
}

TEST(IdleWait, WhereAllWaitsGoOneWayOtherActivityShowsTheLoop) {
  Written w;
  w.Waits("a!main;a!loop;a!next;libc.so.6!poll", 50);
  EXPECT_EQ(w.LoopName(), "a!next");
  w.Wakes("a!main;a!loop;a!handle", 50);
  EXPECT_EQ(w.LoopName(), "a!loop");
  EXPECT_TRUE(w.Certain());
}

TEST(IdleWait, SamplesWithoutTheirLeafsCallerDoNotHideTheLoop) {
  Written w;
  w.Waits("a!main;a!loop;a!next;libc.so.6!poll", 50);
  w.Runs("a!main;a!loop;a!handle", 80);
  w.Runs("a!main;a!spin", 20);
  EXPECT_EQ(w.LoopName(), "a!loop");
}

TEST(IdleWait, FivePercentWakeUpsAreIdleAndSixAreNot) {
  ActivityCounts counts;
  counts.waits = counts.idle = 100;
  counts.wakes = 5;
  EXPECT_EQ(JudgeBranch(counts), BranchVerdict::kIdle);
  counts.wakes = 6;
  EXPECT_EQ(JudgeBranch(counts), BranchVerdict::kWork);
  counts.wakes = 0;
  counts.work = 1;
  EXPECT_EQ(JudgeBranch(counts), BranchVerdict::kWork);
  counts.work = 0;
  counts.sync = 1;
  EXPECT_EQ(JudgeBranch(counts), BranchVerdict::kMaybeIdle);
  EXPECT_EQ(JudgeBranch({}), BranchVerdict::kNoWaits);
}

TEST(IdleWait, ALoopThatStartsUpIsFoundAtTheSecondTry) {
  Written w;
  w.Waits("a!main;a!loop;a!poll", 50);
  w.Waits("a!main;a!loop;a!work", 45, false);
  w.Waits("a!main;a!init", 5, false);
  EXPECT_EQ(w.LoopName(LoopSearch::kStrict), "a!main");
  EXPECT_EQ(w.LoopName(LoopSearch::kLax), "a!loop");
}

TEST(IdleWait, ABranchThatIsAllButIdleIsLookedInto) {
  Written w;
  w.Waits("a!main;a!x;a!y;a!poll", 95);
  w.Waits("a!main;a!x;a!z;a!lock", 3, false);
  w.Waits("a!main;a!work", 40, false);
  EXPECT_EQ(w.IdleName(), "a!y");
}

TEST(IdleWait, NoWaitsNoLoop) {
  Written w;
  w.Runs("a!main;a!spin", 100);
  EXPECT_EQ(w.LoopName(), "");
  EXPECT_EQ(w.IdleName(), "");
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
