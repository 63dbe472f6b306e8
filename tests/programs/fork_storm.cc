// SPDX-License-Identifier: Apache-2.0
// Many short lives: children that end at once, and one that makes its parent wait.
#include <sys/wait.h>

#include "truth.h"

namespace {

constexpr int kChildren = 150;
constexpr int64_t kSlowMs = 40;

PLANTED programs::Wait AwaitTheSlowChild(int pipe) {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  while (waitpid(-1, nullptr, 0) < 0) {
  }
  wait.until_ns = programs::NowNs();
  if (read(pipe, &wait.wake_ns, sizeof(wait.wake_ns)) != sizeof(wait.wake_ns)) _exit(1);
  return wait;
}

}  // namespace

int main() {
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    programs::Tell(R"({"child":%d})", pid);
  }
  while (wait(nullptr) > 0) {
  }
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t slow = fork();
  if (slow == 0) {
    programs::SleepMs(kSlowMs);
    const int64_t now_ns = programs::NowNs();
    _exit(write(ends[1], &now_ns, sizeof(now_ns)) == sizeof(now_ns) ? 0 : 1);
  }
  const programs::Wait wait = AwaitTheSlowChild(ends[0]);
  programs::TellWait("child", wait, slow, "AwaitTheSlowChild");
  return 0;
}
