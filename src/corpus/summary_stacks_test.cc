// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_stacks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/test_folder.h"
#include "corpus/random_forest.h"
#include "corpus/summary_store.h"

namespace culprit::corpus::TEST_FILE {
namespace {

// Names and stacks as an analysis has them: one after the other in a folder.
struct Packing {
  explicit Packing(const TestFolder& folder) : names(folder.path()), stacks(folder.path(), names) {}
  std::string Pack(const std::string& payload) { return stacks.Pack(payload); }
  std::optional<std::string> Unpack(const std::string& packed) { return stacks.Unpack(packed); }

  SummaryNames names;
  SummaryStacks stacks;
};

// Stacks of a part of the frames, with something behind them.
std::string Payload(uint64_t seed, size_t stacks = 300) {
  std::mt19937_64 random(seed);
  const RandomForest forest(random, 40, stacks, seed % 5 * 10);
  return forest.Canonical({"scenario " + std::to_string(seed % 3)}) + "the rest of " +
         std::to_string(seed);
}

std::vector<std::string> Tables(const TestFolder& folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(StacksFolder(folder.path()), code)) {
    files.push_back(entry.path().string());
  }
  return files;
}

TEST(SummaryStacks, GivesBackWhatWasPacked) {
  const TestFolder folder;
  Packing packing(folder);
  std::vector<std::pair<std::string, std::string>> packed;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string payload = Payload(seed, seed % 11 * 60);
    packed.emplace_back(payload, packing.Pack(payload));
    EXPECT_EQ(packing.Unpack(packed.back().second), payload) << seed;
  }
  EXPECT_GT(Tables(folder).size(), 1U);
  Packing later(folder);
  for (const auto& [payload, bytes] : packed) EXPECT_EQ(later.Unpack(bytes), payload);
}

TEST(SummaryStacks, StacksThatWereThereBeforeTakeAFewBits) {
  const TestFolder folder;
  Packing packing(folder);
  const std::string payload = Payload(1, 5000);
  (void)packing.Pack(payload);
  EXPECT_EQ(Tables(folder).size(), 1U);
  EXPECT_LT(packing.Pack(payload).size(), 800U);
  EXPECT_LT(Packing(folder).Pack(payload).size(), 800U);
  EXPECT_EQ(Tables(folder).size(), 1U);
  // Others make a table that has the old ones too.
  (void)packing.Pack(Payload(6, 5000));
  EXPECT_EQ(Tables(folder).size(), 2U);
  EXPECT_LT(packing.Pack(payload).size(), 1600U);
}

TEST(SummaryStacks, FewStacksMakeNoTable) {
  const TestFolder folder;
  Packing packing(folder);
  const std::string payload = Payload(1, 50);
  EXPECT_EQ(packing.Unpack(packing.Pack(payload)), payload);
  EXPECT_TRUE(Tables(folder).empty());
}

TEST(SummaryStacks, WhatIsInAnotherOrderIsSpelled) {
  const TestFolder folder;
  Packing packing(folder);
  (void)packing.Pack(Payload(1));
  std::mt19937_64 random(1);
  const RandomForest forest(random, 40, 300);
  std::vector<uint32_t> order(forest.get().size());
  std::iota(order.begin(), order.end(), 0);
  ByteWriter out;
  WriteForest(forest.get(), order, {}, out);
  EXPECT_EQ(packing.Unpack(packing.Pack(out.bytes())), out.bytes());
}

TEST(SummaryStacks, WithoutItsTableASummaryIsNone) {
  const TestFolder folder;
  const std::string payload = Payload(1);
  const std::string packed = Packing(folder).Pack(payload);
  ASSERT_EQ(Tables(folder).size(), 1U);
  const std::string table = Tables(folder).front();
  const std::string whole = ReadWholeFile(table).value();
  for (const std::string& bad :
       {whole.substr(0, whole.size() / 2), std::string(), whole + "x", std::string("CSEALED\n")}) {
    ASSERT_TRUE(WriteWholeFile(table, bad, Overwrite::kAllow).ok());
    Packing packing(folder);
    EXPECT_FALSE(packing.Unpack(packed));
    // Made again it is whole: the same stacks are the same table.
    EXPECT_EQ(packing.Pack(payload), packed);
    EXPECT_EQ(packing.Unpack(packed), payload);
    EXPECT_EQ(ReadWholeFile(table).value(), whole);
  }
  std::filesystem::remove(table);
  EXPECT_FALSE(Packing(folder).Unpack(packed));
}

TEST(SummaryStacks, WhereNothingCanBeWrittenStacksAreSpelled) {
  const TestFolder folder;
  folder.Write("names", "a file stands where the folder should be");
  folder.Write("stacks", "and here");
  Packing packing(folder);
  const std::string payload = Payload(1);
  EXPECT_EQ(packing.Unpack(packing.Pack(payload)), payload);
  EXPECT_EQ(packing.stacks.bytes_written(), 0U);
}

TEST(SummaryStacks, ChangedBytesGiveAPayloadOrNone) {
  const TestFolder folder;
  Packing packing(folder);
  (void)packing.Pack(Payload(0));
  (void)packing.Pack(Payload(5));
  const std::string packed = packing.Pack(Payload(10, 100));
  for (size_t i = 0; i < packed.size(); ++i) {
    (void)packing.Unpack(packed.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = packed;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      (void)packing.Unpack(changed);
    }
  }
  ByteWriter outside;
  outside.U8(1);
  outside.String("../../etc/passwd");
  EXPECT_FALSE(packing.Unpack(outside.bytes()));
}

TEST(SummaryStacks, SeveralWritersAtOnceDisturbNobody) {
  const TestFolder folder;
  std::vector<std::thread> threads;
  std::vector<std::string> packed(64);
  Packing shared(folder);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Packing own(folder);
      for (size_t i = t; i < packed.size(); i += 4) {
        packed[i] = (i % 8 < 4 ? own : shared).Pack(Payload(i, 100 + i * 10));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Packing packing(folder);
  for (size_t i = 0; i < packed.size(); ++i) {
    EXPECT_EQ(packing.Unpack(packed[i]), Payload(i, 100 + i * 10)) << i;
  }
}

TEST(SummaryStore, SharesStacksAndMakesASummaryAgainWhoseTableIsGone) {
  const TestFolder folder;
  const SummaryKind kind{.name = "mine", .parameters = "p", .head = SummaryHead::kStacks};
  const std::string sha(64, 'a');
  const std::string payload = Payload(1);
  SummaryStore store(folder.path());
  store.Put(sha, kind, payload);
  EXPECT_EQ(store.Get(sha, kind), payload);
  EXPECT_EQ(ListSummaries(folder.path()).size(), 1U);
  const std::string tables = StacksFolder(SummariesFolder(folder.path()));
  std::filesystem::remove_all(tables);
  SummaryStore later(folder.path());
  EXPECT_FALSE(later.Get(sha, kind));
  later.Put(sha, kind, payload);
  EXPECT_EQ(later.Get(sha, kind), payload);
  // Tables go with the last summary.
  ASSERT_TRUE(TrimSummaries(folder.path(), 0).ok());
  EXPECT_FALSE(std::filesystem::exists(tables));
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
