// SPDX-License-Identifier: Apache-2.0
// Two processes, one after the other, with the same id: the kernel is asked for
// the second's (clone3 with set_tid, which takes root).
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include "truth.h"

namespace {

pid_t ForkAs(pid_t pid) {
  clone_args arguments = {};
  arguments.exit_signal = SIGCHLD;
  if (pid != 0) {
    arguments.set_tid = reinterpret_cast<uint64_t>(&pid);
    arguments.set_tid_size = 1;
  }
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

PLANTED programs::Wait SleepAs(int64_t ms) {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  wait.wake_ns = wait.from_ns + ms * 1'000'000;
  programs::SleepMs(ms);
  wait.until_ns = programs::NowNs();
  return wait;
}

pid_t Live(pid_t as_pid, const char* name, int64_t ms) {
  const pid_t pid = ForkAs(as_pid);
  if (pid == 0) {
    prctl(PR_SET_NAME, name);
    const programs::Wait wait = SleepAs(ms);
    programs::TellWait(name, wait, "timer", "SleepAs");
    _exit(0);
  }
  if (pid > 0) waitpid(pid, nullptr, 0);
  return pid;
}

}  // namespace

int main() {
  const pid_t pid = Live(0, "former", 30);
  if (pid < 0 || Live(pid, "latter", 50) != pid) {
    programs::Tell(R"({"cannot":"the kernel does not give out an id on request"})");
  }
  return 0;
}
