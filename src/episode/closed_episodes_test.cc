// SPDX-License-Identifier: Apache-2.0
#include "episode/closed_episodes.h"

#include <gtest/gtest.h>

#include <random>

#include "episode/naive_episodes.h"

namespace culprit::episode::TEST_FILE {
namespace {

std::map<std::vector<Symbol>, uint64_t> AsMap(const ClosedEpisodes& mined) {
  std::map<std::vector<Symbol>, uint64_t> map;
  for (const EpisodeCount& row : mined.episodes) {
    map[{row.episode.span().begin(), row.episode.span().end()}] = row.count;
  }
  EXPECT_EQ(map.size(), mined.episodes.size()) << "an episode was given twice";
  return map;
}

std::vector<Symbol> WordOf(uint64_t code, size_t length, Symbol alphabet) {
  std::vector<Symbol> word;
  for (size_t i = 0; i < length; ++i, code /= alphabet) {
    word.push_back(static_cast<Symbol>(code % alphabet));
  }
  return word;
}

TEST(ClosedEpisodes, EqualTheOracleOnAllShortSequences) {
  const struct {
    Symbol alphabet;
    size_t longest;
  } cases[] = {{1, 12}, {2, 11}, {3, 7}, {4, 5}};
  size_t tried = 0;
  for (const auto& [alphabet, longest] : cases) {
    for (size_t length = 0; length <= longest; ++length) {
      uint64_t words = 1;
      for (size_t i = 0; i < length; ++i) words *= alphabet;
      for (uint64_t code = 0; code < words; ++code) {
        const std::vector<WeightedSequence> sequences = {{WordOf(code, length, alphabet)}};
        for (const uint64_t support : {1, 2}) {
          const auto mined = MineClosedEpisodes(sequences, {.support = support, .max_length = 3});
          ASSERT_EQ(AsMap(mined), NaiveClosedEpisodes(sequences, alphabet, support, 3))
              << "word " << code << " of length " << length << " over " << alphabet;
          ++tried;
        }
      }
    }
  }
  EXPECT_GT(tried, 15'000u);
}

TEST(ClosedEpisodes, EqualTheOracleOnRandomSetsOfSequences) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    const auto alphabet = static_cast<Symbol>(1 + random() % 5);
    std::vector<WeightedSequence> sequences(1 + random() % 5);
    for (WeightedSequence& sequence : sequences) {
      sequence.weight = 1 + random() % 3;
      const size_t length = random() % 60;
      for (size_t i = 0; i < length; ++i) {
        // Skewed, so that some symbols are rare.
        sequence.symbols.push_back(
            static_cast<Symbol>(std::min(random() % alphabet, random() % alphabet)));
      }
    }
    const uint64_t support = 1 + random() % 6;
    const size_t longest = 1 + random() % 4;
    const auto mined = MineClosedEpisodes(sequences, {.support = support, .max_length = longest});
    ASSERT_EQ(AsMap(mined), NaiveClosedEpisodes(sequences, alphabet, support, longest))
        << "round " << round;
    EXPECT_EQ(mined.bound, longest);
    EXPECT_FALSE(mined.capped);
  }
}

TEST(ClosedEpisodes, EqualTheOracleOnLongSequences) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 6; ++round) {
    std::vector<WeightedSequence> sequences(3);
    for (WeightedSequence& sequence : sequences) {
      for (int i = 0; i < 3000; ++i) {
        const uint64_t draw = random() % 100;
        sequence.symbols.push_back(static_cast<Symbol>(draw < 60   ? 0
                                                       : draw < 90 ? 1
                                                                   : 2 + draw % 4));
      }
    }
    const auto mined = MineClosedEpisodes(sequences);
    EXPECT_EQ(mined.support, 10u);
    ASSERT_EQ(AsMap(mined), NaiveClosedEpisodes(sequences, 6, 10, 4));
  }
}

// Figure 2 of the paper: write and read are frequent, poll is not; only
// <write, read> reaches 10 at level 2. So that <read, write> stays rare, each
// write and read stand in a sequence of their own.
TEST(ClosedEpisodes, OfThePapersSecondFigureAreWriteThenRead) {
  constexpr Symbol kWrite = 0;
  constexpr Symbol kRead = 1;
  constexpr Symbol kPoll = 2;
  std::vector<WeightedSequence> sequences = {{{kWrite, kRead}, 9}, {{kWrite, kPoll, kRead}, 3}};
  const auto mined = MineClosedEpisodes(sequences, {.support = 10});
  ASSERT_EQ(mined.episodes.size(), 1u);
  EXPECT_EQ(mined.episodes[0].count, 12u);
  EXPECT_EQ(AsMap(mined), (std::map<std::vector<Symbol>, uint64_t>{{{kWrite, kRead}, 12}}));
  EXPECT_EQ(mined.frequent, 3u);
}

TEST(ClosedEpisodes, SupportFollowsTheRule) {
  EXPECT_EQ(EpisodeSupport(0, 0.01), 2u);
  EXPECT_EQ(EpisodeSupport(199, 0.01), 2u);
  EXPECT_EQ(EpisodeSupport(201, 0.01), 3u);
  EXPECT_EQ(EpisodeSupport(900, 0.01), 9u);
  EXPECT_EQ(EpisodeSupport(1'000'000, 0.01), 10u);
}

TEST(ClosedEpisodes, ALevelWithTooManyCandidatesIsLeftOutWholeAndSaid) {
  std::vector<WeightedSequence> sequences(1);
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) sequences[0].symbols.push_back(static_cast<Symbol>(random() % 10));
  const auto mined = MineClosedEpisodes(sequences, {.support = 2, .max_candidates = 2000});
  EXPECT_TRUE(mined.capped);
  EXPECT_EQ(mined.bound, 3u);
  EXPECT_LE(mined.candidates, 2000u);
  EXPECT_EQ(AsMap(mined), NaiveClosedEpisodes(sequences, 10, 2, 3));
}

TEST(ClosedEpisodes, OneStateMachineCountsWithoutOverlap) {
  const std::vector<Symbol> sequence = {0, 1, 0, 1, 0, 2};
  EXPECT_EQ(CountEpisode(sequence, {.symbols = {0, 1}, .length = 2}), 2u);
  EXPECT_EQ(CountEpisode(sequence, {.symbols = {0, 0}, .length = 2}), 1u);
  EXPECT_EQ(CountEpisode(sequence, {.symbols = {2, 0}, .length = 2}), 0u);
}

TEST(ClosedEpisodes, EqualSequencesAreMergedInOrder) {
  const auto merged = MergeEqual({{{1, 2}, 1}, {{3}, 2}, {{1, 2}, 5}, {{}, 1}});
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0].symbols, (std::vector<Symbol>{1, 2}));
  EXPECT_EQ(merged[0].weight, 6u);
  EXPECT_EQ(merged[1].weight, 2u);
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
