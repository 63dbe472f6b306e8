// SPDX-License-Identifier: Apache-2.0
#include "guard/sub_units.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace culprit::guard::TEST_FILE {
namespace {

constexpr uint32_t kDispatch = 1;
constexpr uint32_t kHandlerA = 2;
constexpr uint32_t kHandlerB = 3;
constexpr uint32_t kParse = 4;
constexpr uint32_t kRun = 5;
constexpr uint32_t kWork = 6;
constexpr uint32_t kWord = 7;
constexpr uint32_t kAfter = 8;

using Contexts = std::vector<Context>;

class SubUnits : public testing::Test {
 protected:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  SampledIteration& Begin(uint64_t ready) {
    iterations_.push_back({.ready = ready, .events = {}});
    return iterations_.back();
  }
  void Enter(uint32_t function, int32_t depth) {
    iterations_.back().events.push_back({function, depth});
  }
  void Input(int32_t bytes) {
    iterations_.back().events.push_back({IterationEvent::kInput, bytes});
  }
  SubUnitLevels Find() const { return FindSubUnitLevels(iterations_); }

  std::mt19937_64 random_{5};
  std::vector<SampledIteration> iterations_;
};

TEST_F(SubUnits, HandlersAreGatheredOverFunctionsOfOneDepth) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t ready = 1 + Below(4);
    Begin(ready);
    Enter(kDispatch, 64);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(Below(3) == 0 ? kHandlerA : kHandlerB, 128);
      Enter(kWork, 192);
    }
    Enter(kAfter, 64);
  }
  const SubUnitLevels levels = Find();
  EXPECT_EQ(levels.handlers, (Contexts{{kHandlerA, 128}, {kHandlerB, 128}}));
  EXPECT_EQ(levels.tails, (Contexts{{kAfter, 64}}));
  EXPECT_TRUE(levels.commands.empty());
}

TEST_F(SubUnits, TheShallowestDepthThatFitsWins) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t ready = 1 + Below(4);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerA, 128);
      Enter(kParse, 192);
    }
  }
  EXPECT_EQ(Find().handlers, (Contexts{{kHandlerA, 128}}));
}

TEST_F(SubUnits, OfFunctionsEnteredEquallyOftenTheFirstOfARoundIsTheHandler) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t ready = 1 + Below(4);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerB, 128);
      Enter(kHandlerA, 128);  // a lower number, but later
    }
  }
  EXPECT_EQ(Find().handlers, (Contexts{{kHandlerB, 128}}));
}

TEST_F(SubUnits, MarkingEventsAsReadyIsNotHandlingThem) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t ready = 1 + Below(4);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kDispatch, 128);
      Enter(kWord, 160);
    }
    Enter(kAfter, 64);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerA, 192);
      Enter(kHandlerB, 192);  // called by its dispatcher, or by A as a tail call
      for (int k = 0; k < 10; ++k) Enter(kWork, 256);
    }
  }
  EXPECT_EQ(Find().handlers, (Contexts{{kHandlerA, 192}}));
}

// libevent's loop has frames of such sizes on x86-64.
TEST_F(SubUnits, NorIfItIsDoneAtTheHandlersDepth) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t ready = 1 + Below(4);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kDispatch, 96);
      Enter(kWord, 128);
      Enter(kParse, 128);
    }
    Enter(kAfter, 64);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerB, 128);  // takes it from the queue
      Enter(kHandlerA, 128);
      for (int k = 0; k < 10; ++k) Enter(kWork, 256 + 16 * k);
    }
  }
  EXPECT_EQ(Find().handlers, (Contexts{{kHandlerB, 128}}));
}

// What is done for each event may not be seen (one call handles them all): then
// units are iterations, not the marking of events and one long tail.
TEST_F(SubUnits, ALevelWithHardlyAnyWorkIsNone) {
  for (int i = 0; i < 100; ++i) {
    const uint64_t ready = 1 + Below(4);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) Enter(kDispatch, 128);
    Enter(kAfter, 64);
    for (int k = 0; k < 40; ++k) Enter(kWork, 96);
  }
  EXPECT_TRUE(Find().handlers.empty());
}

TEST_F(SubUnits, WithoutBatchesThereIsNoHandlerLevel) {
  for (int i = 0; i < 100; ++i) {
    Begin(1);
    Enter(kHandlerA, 128);
  }
  EXPECT_TRUE(Find().handlers.empty());
}

TEST_F(SubUnits, CountsThatDoNotMatchReadyEventsAreNoHandlers) {
  for (int i = 0; i < 100; ++i) {
    Begin(1 + Below(4));
    for (uint64_t n = Below(6); n > 0; --n) Enter(kHandlerA, 128);
  }
  EXPECT_TRUE(Find().handlers.empty());
}

TEST_F(SubUnits, CommandsFollowTheInput) {
  for (int i = 0; i < 200; ++i) {
    const uint64_t ready = 1 + Below(3);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerA, 128);
      const uint64_t commands = 1 + Below(5);
      Input(static_cast<int32_t>(commands * 40 + Below(10)));
      Enter(kParse, 160);
      for (uint64_t k = 0; k < commands; ++k) {
        for (uint64_t word = 0; word < 2 + Below(3); ++word) Enter(kWord, 224);
        Enter(kRun, 192);
        for (uint64_t work = 0; work < 10 + Below(5); ++work) Enter(kWork, 256);
      }
    }
  }
  const SubUnitLevels levels = Find();
  EXPECT_EQ(levels.handlers, (Contexts{{kHandlerA, 128}}));
  EXPECT_EQ(levels.commands, (Contexts{{kRun, 192}}));
}

TEST_F(SubUnits, ALoopOverTheWordsOfOneCommandIsNoSplit) {
  for (int i = 0; i < 200; ++i) {
    const uint64_t ready = 1 + Below(3);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerA, 128);
      const uint64_t words = 2 + Below(5);
      Input(static_cast<int32_t>(words * 10));
      Enter(kParse, 160);
      for (uint64_t k = 0; k < words; ++k) Enter(kWord, 192);
      Enter(kRun, 160);
      for (int k = 0; k < 30; ++k) Enter(kWork, 192);
    }
  }
  EXPECT_TRUE(Find().commands.empty());
}

TEST_F(SubUnits, RepeatsThatInputDoesNotDriveAreNeverSplit) {
  for (int i = 0; i < 200; ++i) {
    const uint64_t ready = 1 + Below(3);
    Begin(ready);
    for (uint64_t n = 0; n < ready; ++n) {
      Enter(kHandlerA, 128);
      Input(static_cast<int32_t>(40 + Below(10)));
      Enter(kRun, 160);
      // A scan of as much data as there happens to be.
      for (uint64_t k = 1 + Below(50); k > 0; --k) {
        Enter(kWork, 192);
        Enter(kWord, 224);
      }
    }
  }
  EXPECT_TRUE(Find().commands.empty());
}

TEST_F(SubUnits, ASampleKeepsEveryNthIterationWhenThereAreTooMany) {
  IterationSample sample(1000);
  for (uint32_t i = 0; i < 4096; ++i) {
    sample.Begin(1);
    for (uint32_t k = 0; k < 4; ++k) sample.Add({i, 0});
    sample.End(i % 5 != 4);
  }
  const auto& kept = sample.iterations();
  ASSERT_GT(kept.size(), 64U);
  size_t events = 0;
  for (const SampledIteration& iteration : kept) events += iteration.events.size();
  EXPECT_LE(events, 1000U);
  for (size_t i = 1; i < kept.size(); ++i) {
    EXPECT_LT(kept[i - 1].events[0].function, kept[i].events[0].function);
  }
  EXPECT_GT(kept.back().events[0].function, 3800U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
