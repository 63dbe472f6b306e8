// SPDX-License-Identifier: Apache-2.0
//
// Every batch held against its definition, over random sequences.
#include "mine/sequence_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace culprit::mine::TEST_FILE {
namespace {

using Sequence = std::vector<Item>;
using Sequences = std::vector<std::pair<Sequence, int64_t>>;

// Items are multiples of `scale`: spread over all batches.
Sequences RandomInput(uint64_t seed, Item distinct, Item scale) {
  std::mt19937_64 random(seed);
  Sequences input;
  for (size_t i = 0; i < 300; ++i) {
    Sequence sequence(1 + random() % 9);
    for (Item& item : sequence) item = static_cast<Item>(random() % distinct) * scale;
    input.emplace_back(sequence, 1 + static_cast<int64_t>(random() % 5));
  }
  return input;
}

SequenceQueue Fill(const Sequences& input, size_t item_count, size_t parts) {
  SequenceQueue queue(item_count);
  for (size_t i = 0; i < input.size(); ++i) {
    Database one;
    one.sequences.Add(input[i].first);
    one.costs.push_back(input[i].second);
    queue.AddFirst(i % parts, one);
  }
  queue.EndFirst();
  return queue;
}

std::map<Sequence, int64_t> Expected(const Sequences& input, Item first, Item end) {
  std::map<Sequence, int64_t> expected;
  for (const auto& [whole, cost] : input) {
    Sequence rest;
    std::ranges::copy_if(whole, std::back_inserter(rest), [&](Item item) { return item >= first; });
    if (std::ranges::any_of(rest, [&](Item item) { return item < end; })) expected[rest] += cost;
  }
  return expected;
}

void ExpectHolders(const Batch& batch, const std::vector<Sequence>& sequences) {
  for (Item item = batch.first; item < batch.end; ++item) {
    std::map<uint32_t, uint32_t> places;
    for (const Holder& holder : batch.HoldersOf(item)) places[holder.sequence] = holder.place;
    EXPECT_EQ(places.size(), batch.HoldersOf(item).size());
    for (uint32_t i = 0; i < sequences.size(); ++i) {
      const auto at = std::ranges::find(sequences[i], item);
      ASSERT_EQ(places.contains(i), at != sequences[i].end());
      if (at == sequences[i].end()) continue;
      EXPECT_EQ(places[i], static_cast<uint32_t>(at - sequences[i].begin()));
    }
  }
}

// All sequences of all batches, in order.
Sequences Drain(SequenceQueue& queue, const Sequences* input) {
  Sequences all;
  for (size_t b = 0; b < queue.end_batch(); ++b) {
    const Batch batch = queue.Take(b, b % 3);
    std::vector<Sequence> sequences;
    std::map<Sequence, int64_t> taken;
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      std::vector<Item> items;
      batch.At(i, items);
      sequences.push_back(items);
      EXPECT_TRUE(taken.emplace(items, batch.sequences[i].cost).second) << "not merged";
      all.emplace_back(items, batch.sequences[i].cost);
      std::ranges::sort(items);
      const bool repeats = std::ranges::adjacent_find(items) != items.end();
      EXPECT_TRUE(!repeats || batch.sequences[i].repeats != 0);
    }
    if (input != nullptr) {
      EXPECT_EQ(taken, Expected(*input, batch.first, batch.end));
      ExpectHolders(batch, sequences);
    }
    for (size_t part = 0; part < SequenceQueue::kParts; ++part) queue.PutBack(batch, part);
  }
  return all;
}

TEST(SequenceQueue, ABatchIsWhatHoldsItsItemsWithoutThoseBelow) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Sequences input = RandomInput(seed, seed % 2 == 0 ? 100 : 8, 1);
    SequenceQueue queue = Fill(input, 100, 1 + seed % SequenceQueue::kParts);
    EXPECT_GT(queue.Bytes(), 0u);
    Drain(queue, &input);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// Items beyond 16 bits.
TEST(SequenceQueue, HoldsForManyItemsToo) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Sequences input = RandomInput(seed, 20, 4999);
    SequenceQueue queue = Fill(input, 100'000, 2);
    Drain(queue, &input);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(SequenceQueue, DoesNotDependOnOrderOrParts) {
  std::mt19937_64 random(7);
  Sequences input = RandomInput(3, 30, 3);
  SequenceQueue queue = Fill(input, 100, 1);
  const Sequences expected = Drain(queue, nullptr);
  for (size_t parts = 1; parts <= SequenceQueue::kParts; ++parts) {
    std::shuffle(input.begin(), input.end(), random);
    SequenceQueue shuffled = Fill(input, 100, parts);
    EXPECT_EQ(Drain(shuffled, nullptr), expected);
  }
}

}  // namespace
}  // namespace culprit::mine::TEST_FILE
