// SPDX-License-Identifier: Apache-2.0
#include "guard/violation_hook.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "guard/session_folder.h"

namespace culprit::guard {
namespace {

void Export(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

int RunCommand(const std::string& command, const UnitReport& report) {
  Export("CULPRIT_TYPE", report.type_name);
  Export("CULPRIT_STATE", std::string(Name(report.state)));
  Export("CULPRIT_PROCESS", report.process);
  Export("CULPRIT_PID", std::to_string(report.pid));
  Export("CULPRIT_TID", std::to_string(report.tid));
  Export("CULPRIT_WALL_NS", std::to_string(report.wall_ns));
  Export("CULPRIT_THRESHOLD_NS", std::to_string(report.threshold_ns));
  Export("CULPRIT_WHERE", report.Where());
  Export("CULPRIT_REPORT", ToJson(report));
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  return 127;
}

}  // namespace

ViolationHook ViolationHook::OfCommand(std::string command, uint64_t pause_ns) {
  return {[command = std::move(command)](const UnitReport& report) {
            return RunCommand(command, report);
          },
          pause_ns};
}

ViolationHook::ViolationHook(ViolationHook&& other) noexcept
    : action_(std::move(other.action_)),
      pause_ns_(other.pause_ns_),
      child_(std::exchange(other.child_, -1)),
      last_ns_(other.last_ns_),
      started_(other.started_),
      left_out_(other.left_out_),
      failed_(other.failed_) {}

bool ViolationHook::IsBusy() {
  if (child_ <= 0) return false;
  int status = 0;
  if (waitpid(child_, &status, WNOHANG) == 0) return true;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed_;
  child_ = -1;
  return false;
}

void ViolationHook::WaitForLast(uint64_t patience_ns) {
  const uint64_t until_ns = GuardClockNs() + patience_ns;
  while (IsBusy() && GuardClockNs() < until_ns) usleep(1000);
}

void ViolationHook::Offer(const UnitReport& report) {
  const uint64_t now_ns = GuardClockNs();
  if (IsBusy() || (last_ns_ != 0 && now_ns - last_ns_ < pause_ns_)) {
    ++left_out_;
    return;
  }
  last_ns_ = now_ns;
  child_ = fork();
  if (child_ == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) signal(number, SIG_DFL);
    _exit(action_(report));
  }
  if (child_ > 0) {
    ++started_;
  } else {
    ++failed_;
  }
}

}  // namespace culprit::guard
