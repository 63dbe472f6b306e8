// SPDX-License-Identifier: Apache-2.0
#include "guard/session_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/test_folder.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::TEST_FILE {
namespace {

SessionOptions In(const TestFolder& folder) {
  SessionOptions options;
  options.parent = folder / "sessions";
  return options;
}

TEST(SessionFolder, HoldsAControlFileThatTheRuntimeUnderstands) {
  const TestFolder folder;
  auto session = SessionFolder::Create(In(folder));
  ASSERT_TRUE(session.ok()) << session.error().ToString();
  ASSERT_TRUE(session.value().Want(7).ok());
  session.value().Beat(123);
  const auto bytes = ReadWholeFile(session.value().path() + "/control");
  ASSERT_TRUE(bytes.ok());
  ASSERT_EQ(bytes.value().size(), sizeof(wire::Control));
  wire::Control control = {};
  std::copy(bytes.value().begin(), bytes.value().end(), reinterpret_cast<char*>(&control));
  EXPECT_EQ(control.magic, wire::Magic("CGCTRL01"));
  EXPECT_EQ(control.version, wire::kWireVersion);
  EXPECT_EQ(control.wanted.load(), 7u);
  EXPECT_EQ(control.collector_beat_ns.load(), 123u);
}

TEST(SessionFolder, IsOfOthersOnlyWhereRootGuardsThem) {
  const TestFolder folder;
  const auto session = SessionFolder::Create(In(folder));
  ASSERT_TRUE(session.ok());
  struct stat status = {};
  ASSERT_EQ(stat(session.value().path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, geteuid() == 0 ? 01777u : 0700u);
  ASSERT_EQ(stat((folder / "sessions").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0077, geteuid() == 0 ? 0011u : 0u) << "names cannot be listed";
}

TEST(SessionFolder, IsRemovedWithItsObject) {
  const TestFolder folder;
  std::string path;
  {
    auto session = SessionFolder::Create(In(folder));
    ASSERT_TRUE(session.ok());
    path = session.value().path();
    ASSERT_TRUE(session.value().WritePlan(1, "plan").ok());
    EXPECT_TRUE(std::filesystem::exists(path + "/plan.1"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SessionFolder, ListsItsProcessesAndNothingElse) {
  const TestFolder folder;
  const auto session = SessionFolder::Create(In(folder));
  ASSERT_TRUE(session.ok());
  for (const char* name : {"slots.30", "slots.4", "slots.x", "slots.", "ring.5", "slots.-1",
                           "slots.99999999999", "slots.0", "log.30.30"}) {
    std::ofstream(session.value().path() + "/" + name) << "12345";
  }
  EXPECT_EQ(session.value().Processes(), (std::vector<int64_t>{4, 30}));
  EXPECT_EQ(session.value().LogBytes(), 5u);
}

TEST(SessionFolder, HasNewsWhenFilesCameOrWent) {
  const TestFolder folder;
  auto session = SessionFolder::Create(In(folder));
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(session.value().TakeNews()) << "nobody has asked yet";
  const auto settles = [&] {
    // Until the last change is older than a step of the clock of files.
    bool news = true;
    for (int i = 0; i < 100 && news; ++i) {
      usleep(10'000);
      news = session.value().TakeNews();
    }
    return !news;
  };
  ASSERT_TRUE(settles());
  const std::string path = session.value().path() + "/slots.4";
  std::ofstream(path) << "1";
  EXPECT_TRUE(session.value().TakeNews());
  EXPECT_TRUE(session.value().TakeNews()) << "another may come in the same step of the clock";
  ASSERT_TRUE(settles());
  std::ofstream(path) << "12";
  EXPECT_FALSE(session.value().TakeNews()) << "what is written to a file is none";
  unlink(path.c_str());
  EXPECT_TRUE(session.value().TakeNews());
}

TEST(SessionFolder, RefusesAParentOfAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const TestFolder folder;
  const SessionOptions options = In(folder);
  ASSERT_EQ(mkdir(options.parent.c_str(), 0777), 0);
  ASSERT_EQ(chown(options.parent.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(SessionFolder::Create(options).ok());
}

TEST(SessionFolder, SaysHowMuchRoomIsMissing) {
  const TestFolder folder;
  SessionOptions options = In(folder);
  options.needed_bytes = uint64_t{1} << 60;
  const auto session = SessionFolder::Create(options);
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().message.find("no room"), std::string::npos);
}

TEST(SharedFile, RefusesLinksAndFolders) {
  const TestFolder folder;
  const std::string path = folder.Write("file", "12345678");
  ASSERT_EQ(symlink(path.c_str(), (folder / "link").c_str()), 0);
  EXPECT_TRUE(SharedFile::Open(path).ok());
  EXPECT_FALSE(SharedFile::Open(folder / "link").ok());
  EXPECT_FALSE(SharedFile::Open(folder.path()).ok());
  uint64_t value = 0;
  const auto file = SharedFile::Open(path);
  EXPECT_TRUE(file.value().Read(0, value));
  EXPECT_FALSE(file.value().Read(1, value)) << "its end is not there";
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
