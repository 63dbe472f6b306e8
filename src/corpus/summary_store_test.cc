// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/test_folder.h"

namespace culprit::corpus::TEST_FILE {
namespace {

const std::string kFirst(64, 'a');
const std::string kSecond(64, 'b');
const SummaryKind kMine{.name = "mine", .parameters = "p1"};

TEST(SummaryStore, GivesBackWhatWasPut) {
  const TestFolder folder;
  SummaryStore store(folder.path());
  EXPECT_FALSE(store.Get(kFirst, kMine));
  store.Put(kFirst, kMine, "payload");
  EXPECT_EQ(store.Get(kFirst, kMine), "payload");
  EXPECT_EQ(SummaryStore(folder.path()).Get(kFirst, kMine), "payload");
  EXPECT_EQ(store.why_not_kept(), "");
  EXPECT_GT(store.bytes_written(), 0U);
}

TEST(SummaryStore, TellsTracesKindsAndParametersApart) {
  const TestFolder folder;
  SummaryStore store(folder.path());
  store.Put(kFirst, kMine, "payload");
  EXPECT_FALSE(store.Get(kSecond, kMine));
  EXPECT_FALSE(store.Get(kFirst, {.name = "causes", .parameters = "p1"}));
  EXPECT_FALSE(store.Get(kFirst, {.name = "mine", .parameters = "p2"}));
  // Two hashes with one beginning, which the name of a file cannot tell apart.
  EXPECT_FALSE(store.Get(std::string(32, 'a') + std::string(32, 'c'), kMine));
}

TEST(SummaryStore, ADamagedSummaryIsNotFoundAndCanBeMadeAgain) {
  const TestFolder folder;
  SummaryStore store(folder.path());
  store.Put(kFirst, kMine, "payload");
  const std::string path = folder / ListSummaries(folder.path()).at(0).path;
  const std::string whole = ReadWholeFile(path).value();
  ASSERT_TRUE(WriteWholeFile(path, whole.substr(0, 20), Overwrite::kAllow).ok());
  EXPECT_FALSE(store.Get(kFirst, kMine));
  store.Put(kFirst, kMine, "payload");
  EXPECT_EQ(ReadWholeFile(path).value(), whole);
}

TEST(SummaryStore, WhereNothingCanBeWrittenItSaysSo) {
  const TestFolder folder;
  folder.Write("summaries", "a file stands where the folder should be");
  SummaryStore store(folder.path());
  store.Put(kFirst, kMine, "payload");
  store.Put(kSecond, kMine, "payload");
  EXPECT_FALSE(store.Get(kFirst, kMine));
  EXPECT_NE(store.why_not_kept().find("cannot create"), std::string::npos);
}

TEST(SummaryStore, RemovesThoseOfOneTrace) {
  const TestFolder folder;
  SummaryStore store(folder.path());
  store.Put(kFirst, kMine, "payload");
  store.Put(kFirst, {.name = "causes", .parameters = "p"}, "payload");
  store.Put(kSecond, kMine, "payload");
  RemoveSummaries(folder.path(), kFirst);
  EXPECT_FALSE(store.Get(kFirst, kMine));
  EXPECT_TRUE(store.Get(kSecond, kMine));
  EXPECT_EQ(ListSummaries(folder.path()).size(), 1U);
  RemoveSummaries(folder.path(), kFirst);
  RemoveSummaries(folder / "nowhere", kFirst);
}

TEST(SummaryStore, TrimmingKeepsTheLastUsed) {
  const TestFolder folder;
  SummaryStore store(folder.path());
  store.Put(kFirst, kMine, "payload");
  store.Put(kSecond, kMine, "payload");
  const std::vector<SummaryFile> files = ListSummaries(folder.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].trace, kFirst.substr(0, 32));
  // The second was last used in 1970, so it goes first; reading it would save it.
  const struct timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder / files[1].path).c_str(), old, 0), 0);
  const auto removed = TrimSummaries(folder.path(), files[0].bytes);
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed.value().files, 1U);
  EXPECT_EQ(removed.value().files_left, 1U);
  EXPECT_EQ(removed.value().bytes, files[1].bytes);
  EXPECT_TRUE(store.Get(kFirst, kMine));
  EXPECT_FALSE(store.Get(kSecond, kMine));
}

TEST(SummaryStore, ReadingOneSavesItFromTrimming) {
  const TestFolder folder;
  SummaryStore store(folder.path());
  store.Put(kFirst, kMine, "payload");
  const std::string path = folder / ListSummaries(folder.path()).at(0).path;
  const struct timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  EXPECT_TRUE(store.Get(kFirst, kMine));
  EXPECT_GT(ListSummaries(folder.path()).at(0).used_s, 1'000'000);
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
