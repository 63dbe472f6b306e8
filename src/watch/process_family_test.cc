// SPDX-License-Identifier: Apache-2.0
#include "watch/process_family.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace culprit::watch::TEST_FILE {
namespace {

// A child that waits; it is ended with this object.
class Waiting {
 public:
  explicit Waiting(const char* program) : pid_(fork()) {
    if (pid_ != 0) return;
    if (program != nullptr) execlp(program, program, "1000", nullptr);
    for (;;) pause();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessFamily, HasTheDescendantsThatRunTheSameProgram) {
  const Waiting worker(nullptr);
  const Waiting other("sleep");
  SettledProgram(other.pid());
  const std::vector<int64_t> family = ProcessFamily(getpid());
  ASSERT_FALSE(family.empty());
  EXPECT_EQ(family.front(), getpid());
  EXPECT_EQ(std::count(family.begin(), family.end(), worker.pid()), 1);
  EXPECT_EQ(std::count(family.begin(), family.end(), other.pid()), 0);
  EXPECT_EQ(ProcessFamily(worker.pid()), (std::vector<int64_t>{worker.pid()}));
}

TEST(ProcessFamily, ALauncherSettlesAsWhatItBecomes) {
  const Waiting other("sleep");
  const std::string program = SettledProgram(other.pid());
  EXPECT_NE(program.find("sleep"), std::string::npos) << program;
}

TEST(ProcessFamily, AProcessWithoutGuardsHasNoForsakenOnes) {
  EXPECT_FALSE(HasForsakenGuards(getpid()));
}

}  // namespace
}  // namespace culprit::watch::TEST_FILE
