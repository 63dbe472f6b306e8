// SPDX-License-Identifier: Apache-2.0
#include "record/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace culprit::record {
namespace {

constexpr int kSignalBase = 128;
constexpr int kCannotExecute = 127;

// Between fork and exec only what is safe in a signal handler may be called.
[[noreturn]] void RunChild(int go, int failure, char* const* arguments) {
  char byte = 0;
  if (read(go, &byte, 1) != 1) _exit(kCannotExecute);
  // What the recorder does with signals is not the command's business.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) signal(number, SIG_DFL);
  execvp(arguments[0], arguments);
  const int code = errno;
  if (write(failure, &code, sizeof(code)) < 0) _exit(kCannotExecute);
  _exit(kCannotExecute);
}

}  // namespace

Result<ChildProcess> ChildProcess::Prepare(const std::vector<std::string>& command) {
  int go[2] = {-1, -1};
  int failure[2] = {-1, -1};
  if (pipe2(go, O_CLOEXEC) != 0) return ErrnoError("make a pipe", "");
  if (pipe2(failure, O_CLOEXEC) != 0) {
    close(go[0]);
    close(go[1]);
    return ErrnoError("make a pipe", "");
  }
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    close(go[1]);
    close(failure[0]);
    RunChild(go[0], failure[1], arguments.data());
  }
  close(go[0]);
  close(failure[1]);
  if (pid < 0) {
    close(go[1]);
    close(failure[0]);
    return ErrnoError("start a process", "");
  }
  return ChildProcess(pid, go[1], failure[0], command.front());
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      go_(std::exchange(other.go_, -1)),
      failure_(std::exchange(other.failure_, -1)),
      name_(std::move(other.name_)),
      exit_code_(other.exit_code_) {}

ChildProcess::~ChildProcess() {
  const bool waits = go_ >= 0;
  if (go_ >= 0) close(go_);
  if (failure_ >= 0) close(failure_);
  // It never ran, and ends by itself now that nobody holds the pipe.
  if (waits && pid_ > 0) waitpid(pid_, nullptr, 0);
}

Status ChildProcess::Release() {
  const char byte = 1;
  if (write(go_, &byte, 1) != 1) return ErrnoError("start", name_);
  close(std::exchange(go_, -1));
  int code = 0;
  ssize_t got = 0;
  do {
    got = read(failure_, &code, sizeof(code));
  } while (got < 0 && errno == EINTR);
  close(std::exchange(failure_, -1));
  if (got != sizeof(code)) return {};
  waitpid(pid_, nullptr, 0);
  exit_code_ = kCannotExecute;
  return Error{.message = "cannot execute: " + std::string(strerror(code)), .file = name_};
}

std::optional<int> ChildProcess::ExitCode() {
  if (exit_code_ || pid_ <= 0) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  if (WIFEXITED(status)) exit_code_ = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit_code_ = kSignalBase + WTERMSIG(status);
  return exit_code_;
}

}  // namespace culprit::record
