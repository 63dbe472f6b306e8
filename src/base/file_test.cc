// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_folder.h"

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  TestFolder folder_;
};

TEST_F(FileTest, CommitMakesTheFileAndLeavesNothingElse) {
  auto file = AtomicFile::Create(Path("a"), Overwrite::kRefuse);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file.value().Write("hello").ok());
  EXPECT_FALSE(fs::exists(Path("a")));
  ASSERT_TRUE(file.value().Commit().ok());
  EXPECT_EQ(ReadWholeFile(Path("a")).value(), "hello");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(FileTest, WithoutCommitThereIsNothing) {
  {
    auto file = AtomicFile::Create(Path("a"), Overwrite::kRefuse);
    ASSERT_TRUE(file.value().Write(std::string(3'000'000, 'x')).ok());
  }
  EXPECT_EQ(Entries(), 0u);
}

// As a process of the same number on another host leaves it when it is killed.
TEST_F(FileTest, ATemporaryLeftBehindIsNoHindrance) {
  const std::string first = CreateTemporary(Path("a"), Overwrite::kRefuse).value();
  const size_t dash = first.rfind('-') + 1;
  const int serial = std::stoi(first.substr(dash));
  for (int i = 1; i <= 4; ++i) {
    fs::copy_file(first, first.substr(0, dash) + std::to_string(serial + i));
  }
  ASSERT_TRUE(WriteWholeFile(Path("a"), "whole", Overwrite::kRefuse).ok());
  EXPECT_EQ(ReadWholeFile(Path("a")).value(), "whole");
  EXPECT_EQ(Entries(), 6u);  // it, and the five temporaries
}

TEST_F(FileTest, RefusesToOverwriteBeforeAndAfter) {
  ASSERT_TRUE(WriteWholeFile(Path("a"), "old", Overwrite::kRefuse).ok());
  EXPECT_FALSE(AtomicFile::Create(Path("a"), Overwrite::kRefuse).ok());
  auto late = AtomicFile::Create(Path("b"), Overwrite::kRefuse);
  ASSERT_TRUE(late.value().Write("late").ok());
  ASSERT_TRUE(WriteWholeFile(Path("b"), "first", Overwrite::kRefuse).ok());
  EXPECT_FALSE(late.value().Commit().ok());
  EXPECT_EQ(ReadWholeFile(Path("b")).value(), "first");
}

TEST_F(FileTest, OverwritesWhenAllowed) {
  ASSERT_TRUE(WriteWholeFile(Path("a"), "old", Overwrite::kRefuse).ok());
  ASSERT_TRUE(WriteWholeFile(Path("a"), "new", Overwrite::kAllow).ok());
  EXPECT_EQ(ReadWholeFile(Path("a")).value(), "new");
}

TEST_F(FileTest, ErrorsNameTheFileAndTheReason) {
  EXPECT_EQ(ReadWholeFile(Path("none")).error().ToString(),
            Path("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(ReadWholeFile(folder_.path()).error().message, "is not a regular file");
  EXPECT_FALSE(AtomicFile::Create(Path("no/such/folder"), Overwrite::kRefuse).ok());
}

TEST_F(FileTest, ReadsAtOffsetsAndShortAtTheEnd) {
  ASSERT_TRUE(WriteWholeFile(Path("a"), "0123456789", Overwrite::kRefuse).ok());
  auto file = InputFile::Open(Path("a"));
  std::string bytes;
  ASSERT_TRUE(file.value().ReadAt(3, 4, bytes).ok());
  EXPECT_EQ(bytes, "3456");
  ASSERT_TRUE(file.value().ReadAt(8, 100, bytes).ok());
  EXPECT_EQ(bytes, "89");
  ASSERT_TRUE(file.value().ReadAt(1000, 1, bytes).ok());
  EXPECT_EQ(bytes, "");
}

TEST_F(FileTest, AFileThatShrinksGivesAShortReadNotASignal) {
  ASSERT_TRUE(WriteWholeFile(Path("a"), std::string(100'000, 'x'), Overwrite::kRefuse).ok());
  auto file = InputFile::Open(Path("a"));
  fs::resize_file(Path("a"), 10);
  std::string bytes;
  ASSERT_TRUE(file.value().ReadAt(0, 100'000, bytes).ok());
  EXPECT_EQ(bytes.size(), 10u);
}

TEST_F(FileTest, Sha256IsTheKnownOne) {
  ASSERT_TRUE(WriteWholeFile(Path("a"), "abc", Overwrite::kRefuse).ok());
  EXPECT_EQ(FileSha256(Path("a")).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ASSERT_TRUE(WriteWholeFile(Path("e"), "", Overwrite::kRefuse).ok());
  EXPECT_EQ(FileSha256(Path("e")).value(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace culprit::TEST_FILE
