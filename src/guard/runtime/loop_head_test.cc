// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/loop_head.h"

#include <gtest/gtest.h>

#include <memory>

#include "guard/runtime/frame_rules.h"
#include "guard/runtime/known_modules.h"
#include "guard/runtime/wait_frame.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr uint64_t kReturn = 0x40;

// The stack pointers at entry of the functions below, and places in them.
struct Stack {
  uint64_t wait = 0;
  uint64_t serve = 0;
  uint64_t start = 0;
  uint64_t in_serve = 0;
  uint64_t in_start = 0;
  uint64_t outermost = 0;
  uint64_t in_outermost = 0;
};

__attribute__((always_inline)) inline uint64_t CallersPlace() {
  return reinterpret_cast<uint64_t>(__builtin_return_address(0)) - 1;
}

class LoopHead : public testing::Test {
 public:
  // As a detoured wait call would; `take`: its loop begins a unit.
  __attribute__((noinline)) const SiteRule* Wait(bool take = false) {
    stack_.wait = CULPRIT_ENTRY_SP();
    stack_.in_serve = CallersPlace();
    const SiteRule* site = FindSite(plan_, kReturn);
    if (asks_parking_) parks_ = IsParking(*state_, plan_, kReturn, stack_.wait);
    if (asks_parking_ || site == nullptr) return nullptr;
    const SiteRule* head = FindHead(*state_, plan_, *site, stack_.wait);
    if (take && head != nullptr) {
      state_->plan = &plan_;
      state_->head = head;
      slot_.base_sp = BaseOf(*head, stack_.wait);
    }
    return head;
  }

 protected:
  LoopHead() {
    RefreshModules();
    state_->slot = &slot_;
    plan_.generation = 1;
    plan_.sites = rules_;
  }

  // At an even place of a table of eight, and those of the same address behind it.
  void AddRule(const SiteRule& rule) {
    size_t at = (kReturn >> 2) & 7;
    while (rules_[at].return_address != 0) at = (at + 1) & 7;
    rules_[at] = rule;
    rules_[at].return_address = kReturn;
  }
  static uint64_t FunctionOf(uint64_t pc) {
    const KnownModule* module = ModuleAt(pc);
    FrameRules rules;
    return module != nullptr && FindFrameRules(module->loaded, pc, rules) ? rules.function : 0;
  }
  static int32_t Between(uint64_t outer_sp, uint64_t inner_sp) {
    return static_cast<int32_t>((outer_sp & ~uint64_t{15}) - (inner_sp & ~uint64_t{15}));
  }
  void Forget() {
    for (HeadMemo& memo : state_->heads) memo = {};
  }

  SiteRule rules_[8] = {};
  LoadedPlan plan_ = {};
  wire::UnitSlot slot_ = {};
  std::unique_ptr<ThreadState> state_ = std::make_unique<ThreadState>();
  Stack stack_;
  bool asks_parking_ = false;  // instead of for a head
  bool parks_ = false;

  // Two functions that lead to the wait, one through the other; volatile keeps the
  // compiler from calling in its own way.
  __attribute__((noinline)) const SiteRule* Serve(bool take = false) {
    stack_.serve = CULPRIT_ENTRY_SP();
    stack_.in_start = CallersPlace();
    const SiteRule* volatile head = Wait(take);
    return head;
  }
  __attribute__((noinline)) const SiteRule* Start(bool take = false) {
    stack_.start = CULPRIT_ENTRY_SP();
    stack_.in_outermost = CallersPlace();
    const SiteRule* volatile head = Serve(take);
    return head;
  }
  __attribute__((noinline)) const SiteRule* Outermost() {
    stack_.outermost = CULPRIT_ENTRY_SP();
    const SiteRule* volatile head = Start();
    return head;
  }
  // Offsets are known after a first way through.
  void Learn() {
    Start();
    from_serve_ = Between(stack_.serve, stack_.wait);
    from_start_ = Between(stack_.start, stack_.wait);
    serve_ = FunctionOf(stack_.in_serve);
    start_ = FunctionOf(stack_.in_start);
    ASSERT_NE(serve_, 0u);
    ASSERT_NE(start_, 0u);
  }
  int32_t from_serve_ = 0;
  int32_t from_start_ = 0;
  uint64_t serve_ = 0;
  uint64_t start_ = 0;
};

TEST_F(LoopHead, IsTheWaitWhoseHolderIsOnTheStackAtItsBase) {
  Learn();
  AddRule({.base_offset = from_serve_, .holder = serve_});
  EXPECT_EQ(Start(), FindSite(plan_, kReturn));
  EXPECT_EQ(Start(), FindSite(plan_, kReturn));  // as remembered
}

TEST_F(LoopHead, IsNoneWhereAnotherFunctionHasTheBase) {
  Learn();
  AddRule({.base_offset = from_serve_, .holder = start_});
  EXPECT_EQ(Start(), nullptr);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Start(), nullptr);
}

TEST_F(LoopHead, IsNoneWhereTheStackEndsBeforeTheBase) {
  Learn();
  AddRule({.base_offset = 1 << 24, .holder = serve_});
  EXPECT_EQ(Start(), nullptr);
}

TEST_F(LoopHead, OfSeveralRulesTheOneWhoseHolderIsThereCounts) {
  Learn();
  AddRule({.loop = 0, .base_offset = from_serve_ + 16, .holder = serve_, .shared = true});
  AddRule({.loop = 1, .base_offset = from_serve_, .holder = serve_, .shared = true});
  AddRule({.loop = 2, .base_offset = from_start_, .holder = serve_, .shared = true});
  const SiteRule* head = Start();
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->loop, 1u);
}

TEST_F(LoopHead, TheOutermostOfSeveralHoldersWins) {
  Learn();
  AddRule({.loop = 0, .base_offset = from_serve_, .holder = serve_, .shared = true});
  AddRule({.loop = 1, .base_offset = from_start_, .holder = start_, .shared = true});
  const SiteRule* head = Start();
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->loop, 1u);
}

TEST_F(LoopHead, InsideTheLoopOfTheThreadItIsAnOrdinaryWait) {
  Learn();
  SiteRule outer = {.base_offset = from_start_, .holder = start_};
  AddRule({.base_offset = from_serve_, .holder = serve_});
  state_->plan = &plan_;
  state_->head = &outer;
  slot_.base_sp = (stack_.start & ~uint64_t{15});
  // Called from the same place as the way that was learned, at the same depth.
  const auto again = [&] { return Start(); };
  const SiteRule* head = again();
  const uint64_t base_sp = stack_.start & ~uint64_t{15};
  slot_.base_sp = base_sp;
  Forget();
  head = again();
  EXPECT_EQ(head, nullptr);
  // The loop was left: its holder is no longer on the stack.
  outer.holder = start_ + 4;
  Forget();
  EXPECT_EQ(again(), FindSite(plan_, kReturn));
}

TEST_F(LoopHead, WithoutAHolderTheBaseAloneCounts) {
  Learn();
  AddRule({.base_offset = 64});
  EXPECT_EQ(Start(true), FindSite(plan_, kReturn));
  slot_.base_sp += 1 << 20;
  EXPECT_EQ(Start(), nullptr);
}

TEST_F(LoopHead, ItsHolderParksByAWaitOfItsOwnOrOfWhatItCalls) {
  Learn();
  state_->plan = &plan_;
  SiteRule head = {.flags = wire::PlanSite::kParks};
  state_->head = &head;
  // By a function whose own caller is the third.
  const auto parks = [&](uint64_t Stack::*base, uint64_t holder) {
    head.holder = holder;
    asks_parking_ = true;
    for (int i = 0; i < 2; ++i) {
      slot_.base_sp = stack_.*base & ~uint64_t{15};
      Forget();
      Outermost();
    }
    return parks_;
  };
  EXPECT_TRUE(parks(&Stack::serve, serve_));
  EXPECT_TRUE(parks(&Stack::start, start_));
  EXPECT_FALSE(parks(&Stack::start, serve_)) << "another function has that base";
  EXPECT_FALSE(parks(&Stack::outermost, FunctionOf(stack_.in_outermost)));
}

TEST_F(LoopHead, AWaitThatDoesNotParkIsAskedAboutEverMoreSeldom) {
  Learn();
  state_->plan = &plan_;
  SiteRule head = {.flags = wire::PlanSite::kParks, .holder = start_ + 4};
  state_->head = &head;
  asks_parking_ = true;
  int asked = 0;
  for (int i = 0; i < 64; ++i) {
    // Where it is asked it is found.
    head.holder = start_ + 4;
    slot_.base_sp = stack_.start & ~uint64_t{15};
    Outermost();
    EXPECT_FALSE(parks_ && i == 0);
    head.holder = start_;
    Outermost();
    asked += parks_ ? 1 : 0;
  }
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 10);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
