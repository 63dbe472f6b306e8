// SPDX-License-Identifier: Apache-2.0
#include "record/tracefs.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/process_scan.h"

namespace culprit::record::TEST_FILE {
namespace {

std::string SwitchId(const std::string& folder) {
  return ReadKernelFile(folder + "/events/sched/sched_switch/id");
}

enum Found : int { kFound, kNoNamespace, kStillMounted, kMountedForOthers, kNoEvents };

// In a mount namespace of its own, where nobody has mounted it.
Found FindItUnmounted() {
  if (unshare(CLONE_NEWNS) != 0) return kNoNamespace;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kNoNamespace;
  for (const char* folder : {"/sys/kernel/tracing", "/sys/kernel/debug"}) {
    while (umount2(folder, MNT_DETACH) == 0) {
    }
  }
  if (!SwitchId("/sys/kernel/tracing").empty()) return kStillMounted;
  if (SwitchId(FindTracefs()).empty()) return kNoEvents;
  return SwitchId("/sys/kernel/tracing").empty() ? kFound : kMountedForOthers;
}

TEST(Tracefs, IsThereAlsoWhereNobodyHasMountedIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(FindItUnmounted());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNamespace) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), kFound);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
