// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/shared_area.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "guard/runtime/session_files.h"
#include "guard/runtime/test_folder.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr size_t kFront = 16 << 10;

uint64_t AllocatedBytes(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * 512 : 0;
}

TEST(SharedArea, TakesRoomAsItIsReached) {
  const TestFolder folder;
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  SharedArea area = {};
  ASSERT_TRUE(area.Create("area.", 7, kBytes, kFront));
  const std::string path = folder.path() + "/area.7";
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kBytes));
  EXPECT_GE(AllocatedBytes(path), kFront);
  EXPECT_LE(AllocatedBytes(path), 2 * kFront);
  area.memory()[0] = 'a';
  EXPECT_TRUE(area.Reach(kFront));
  EXPECT_LE(AllocatedBytes(path), 2 * kFront);
  EXPECT_TRUE(area.Reach(100'000));
  EXPECT_GE(AllocatedBytes(path), 100'000u);
  EXPECT_LT(AllocatedBytes(path), kBytes / 2);
  area.memory()[99'999] = 'b';
  EXPECT_FALSE(area.Reach(kBytes + 1));
  area.ReachAll();
  EXPECT_GE(AllocatedBytes(path), kBytes);
  EXPECT_EQ(area.memory()[0], 'a');
  EXPECT_EQ(area.memory()[99'999], 'b');
  area.Unmap();
  EXPECT_EQ(area.memory(), nullptr);
}

// Servers are started by root and go on as another user.
TEST(SharedArea, GrowsWithoutTheRightToOpenItsFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TestFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  ASSERT_TRUE(OpenSessionFolder(folder.path().c_str()));
  SharedArea area = {};
  ASSERT_TRUE(area.Create("area.", 7, kBytes, kFront));
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(2);
    if (open((folder.path() + "/area.7").c_str(), O_RDWR) >= 0) _exit(3);
    if (!area.Reach(kBytes)) _exit(4);
    area.memory()[kBytes - 1] = 'z';
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GE(AllocatedBytes(folder.path() + "/area.7"), kBytes);
  EXPECT_EQ(area.memory()[kBytes - 1], 'z');
  area.Unmap();
}

TEST(SharedArea, SaysThatTheDiskIsFull) {
  const TestFolder folder;
  if (mount("culprit_test", folder.path().c_str(), "tmpfs", 0, "size=128k") != 0) {
    GTEST_SKIP() << "only root can make a small file system";
  }
  EXPECT_TRUE(OpenSessionFolder(folder.path().c_str()));
  SharedArea area = {};
  EXPECT_TRUE(area.Create("area.", 7, kBytes, kFront));
  EXPECT_TRUE(area.Reach(40'000));
  EXPECT_FALSE(area.Reach(500'000));
  EXPECT_TRUE(area.Reach(40'000));
  SharedArea large = {};
  EXPECT_FALSE(large.Create("large.", 7, kBytes, 500'000));
  EXPECT_NE(access((folder.path() + "/large.7").c_str(), F_OK), 0);
  area.Unmap();
  EXPECT_TRUE(OpenSessionFolder("/"));  // lets go of the other
  EXPECT_EQ(umount(folder.path().c_str()), 0);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
