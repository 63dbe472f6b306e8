// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_names.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "corpus/part_codec.h"
#include "corpus/summary_store.h"

namespace culprit::corpus::TEST_FILE {
namespace {

std::string Payload(size_t first, size_t count, std::string_view rest = "the rest") {
  ByteWriter out;
  out.Varint(count);
  for (size_t i = 0; i < count; ++i) {
    out.String("module!function number " + std::to_string(first + i));
  }
  out.Bytes(rest);
  return out.Take();
}

std::vector<std::string> Tables(const TestFolder& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(NamesFolder(folder.path()), code)) {
    names.push_back(entry.path().string());
  }
  return names;
}

TEST(SummaryNames, GivesBackWhatWasPacked) {
  const TestFolder folder;
  SummaryNames names(folder.path());
  std::mt19937_64 random(1);
  std::vector<std::pair<std::string, std::string>> packed;
  for (int i = 0; i < 200; ++i) {
    const std::string payload = Payload(random() % 300, random() % 200, std::to_string(random()));
    packed.emplace_back(payload, names.Pack(payload));
    EXPECT_EQ(names.Unpack(packed.back().second), payload) << i;
  }
  SummaryNames later(folder.path());
  for (const auto& [payload, bytes] : packed) EXPECT_EQ(later.Unpack(bytes), payload);
}

TEST(SummaryNames, NamesThatWereThereBeforeTakeAFewBytes) {
  const TestFolder folder;
  SummaryNames names(folder.path());
  const std::string payload = Payload(0, 1000);
  (void)names.Pack(payload);
  EXPECT_LT(names.Pack(payload).size(), 1100U);
  EXPECT_LT(SummaryNames(folder.path()).Pack(payload).size(), 1100U);
  EXPECT_EQ(Tables(folder).size(), 1U);
  // A few new ones are spelled, many make a table that has the old ones too.
  EXPECT_EQ(names.Unpack(names.Pack(Payload(50, 1000))), Payload(50, 1000));
  EXPECT_EQ(Tables(folder).size(), 1U);
  (void)names.Pack(Payload(500, 1000));
  EXPECT_EQ(Tables(folder).size(), 2U);
  EXPECT_LT(names.Pack(payload).size(), 1100U);
}

TEST(SummaryNames, FewNamesMakeNoTable) {
  const TestFolder folder;
  SummaryNames names(folder.path());
  const std::string payload = Payload(0, 15);
  EXPECT_EQ(names.Unpack(names.Pack(payload)), payload);
  EXPECT_TRUE(Tables(folder).empty());
}

TEST(SummaryNames, WithoutItsTableASummaryIsNone) {
  const TestFolder folder;
  const std::string payload = Payload(0, 100);
  const std::string packed = SummaryNames(folder.path()).Pack(payload);
  ASSERT_EQ(Tables(folder).size(), 1U);
  const std::string table = Tables(folder).front();
  const std::string whole = ReadWholeFile(table).value();
  for (const std::string& bad :
       {whole.substr(0, whole.size() / 2), std::string(), whole + "x", std::string("CSEALED\n")}) {
    ASSERT_TRUE(WriteWholeFile(table, bad, Overwrite::kAllow).ok());
    SummaryNames names(folder.path());
    EXPECT_FALSE(names.Unpack(packed));
    // Made again it is whole: the same names are the same table.
    EXPECT_EQ(names.Pack(payload), packed);
    EXPECT_EQ(names.Unpack(packed), payload);
    EXPECT_EQ(ReadWholeFile(table).value(), whole);
  }
  std::filesystem::remove(table);
  EXPECT_FALSE(SummaryNames(folder.path()).Unpack(packed));
}

TEST(SummaryNames, WhereNothingCanBeWrittenNamesAreSpelled) {
  const TestFolder folder;
  folder.Write("names", "a file stands where the folder should be");
  SummaryNames names(folder.path());
  const std::string payload = Payload(0, 100);
  EXPECT_EQ(names.Unpack(names.Pack(payload)), payload);
  EXPECT_EQ(names.bytes_written(), 0U);
}

TEST(SummaryNames, ChangedBytesGiveAPayloadOrNone) {
  const TestFolder folder;
  SummaryNames names(folder.path());
  (void)names.Pack(Payload(0, 100));
  const std::string packed = names.Pack(Payload(90, 20));
  for (size_t i = 0; i < packed.size(); ++i) {
    (void)names.Unpack(packed.substr(0, i));
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = packed;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      (void)names.Unpack(changed);
    }
  }
  ByteWriter outside;
  outside.String("../../etc/passwd");
  outside.Varint(0);
  EXPECT_FALSE(names.Unpack(outside.bytes()));
}

TEST(SummaryNames, SeveralWritersAtOnceDisturbNobody) {
  const TestFolder folder;
  std::vector<std::thread> threads;
  std::vector<std::string> packed(64);
  SummaryNames shared(folder.path());
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      SummaryNames own(folder.path());
      for (size_t i = t; i < packed.size(); i += 4) {
        packed[i] = (i % 8 < 4 ? own : shared).Pack(Payload(i * 20, 100 + i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  SummaryNames names(folder.path());
  for (size_t i = 0; i < packed.size(); ++i) {
    EXPECT_EQ(names.Unpack(packed[i]), Payload(i * 20, 100 + i)) << i;
  }
}

TEST(SummaryStore, SharesNamesAndMakesASummaryAgainWhoseTableIsGone) {
  const TestFolder folder;
  const SummaryKind kind{.name = "mine", .parameters = "p", .head = SummaryHead::kNames};
  const std::string sha(64, 'a');
  const std::string payload = Payload(0, 500);
  SummaryStore store(folder.path());
  store.Put(sha, kind, payload);
  EXPECT_EQ(store.Get(sha, kind), payload);
  EXPECT_EQ(ListSummaries(folder.path()).size(), 1U);
  std::filesystem::remove_all(NamesFolder(SummariesFolder(folder.path())));
  SummaryStore later(folder.path());
  EXPECT_FALSE(later.Get(sha, kind));
  later.Put(sha, kind, payload);
  EXPECT_EQ(later.Get(sha, kind), payload);
  // Tables go with the last summary.
  ASSERT_TRUE(TrimSummaries(folder.path(), 0).ok());
  EXPECT_FALSE(std::filesystem::exists(NamesFolder(SummariesFolder(folder.path()))));
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
