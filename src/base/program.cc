// SPDX-License-Identifier: Apache-2.0
#include "base/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

extern char** environ;

namespace culprit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutputBytes = 64 << 20;
constexpr int kSignalBase = 128;

int ShellCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

Error StartError(int code, const std::string& name) {
  errno = code;
  Error error = ErrnoError("start", name);
  if (code == ENOENT) error.hint = "is it installed, and in PATH?";
  return error;
}

// posix_spawn, not fork: other threads may hold locks.
Result<pid_t> Spawn(const std::vector<std::string>& words, int out, int err) {
  CULPRIT_CHECK(!words.empty());
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  sigset_t none;
  sigset_t usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int code = posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) return StartError(code, words.front());
  return pid;
}

struct Pipe {
  int from = -1;
  int to = -1;

  Pipe() {
    std::array<int, 2> ends = {-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    from = ends[0];
    to = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    CloseTo();
    if (from >= 0) ::close(from);
  }
  void CloseTo() {
    if (to >= 0) ::close(std::exchange(to, -1));
  }
};

// False at the end of the stream.
bool ReadSome(int fd, std::string& text) {
  std::array<char, 1 << 16> chunk;
  const ssize_t count = ::read(fd, chunk.data(), chunk.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (text.size() < kMostOutputBytes) text.append(chunk.data(), static_cast<size_t>(count));
  return count != 0;
}

// Both streams until both end; false if `deadline` came first.
bool ReadBoth(const Pipe& out, const Pipe& err, Clock::time_point deadline, ProgramOutput& output) {
  std::array<pollfd, 2> streams = {pollfd{.fd = out.from, .events = POLLIN},
                                   pollfd{.fd = err.from, .events = POLLIN}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(streams.data(), streams.size(), static_cast<int>(std::min<int64_t>(left, 1000))) <=
        0) {
      continue;
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      if (!ReadSome(streams[i].fd, i == 0 ? output.out : output.err)) streams[i].fd = -1;
    }
  }
  return true;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return ShellCode(status);
}

}  // namespace

Result<ProgramOutput> RunProgram(const std::vector<std::string>& words,
                                 std::chrono::milliseconds limit) {
  Pipe out;
  Pipe err;
  if (out.to < 0 || err.to < 0) return ErrnoError("make a pipe", "");
  CULPRIT_ASSIGN(const pid_t pid, Spawn(words, out.to, err.to));
  out.CloseTo();
  err.CloseTo();
  ProgramOutput output;
  if (!ReadBoth(out, err, Clock::now() + limit, output)) ::kill(-pid, SIGKILL);
  output.code = WaitFor(pid);
  return output;
}

Result<RunningProgram> RunningProgram::Start(const std::vector<std::string>& words,
                                             const std::string& log_path) {
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) return ErrnoError("open", log_path);
  const Result<pid_t> pid = Spawn(words, log, log);
  ::close(log);
  if (!pid.ok()) return pid.error();
  return RunningProgram(pid.value());
}

RunningProgram::RunningProgram(RunningProgram&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

RunningProgram& RunningProgram::operator=(RunningProgram&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(code_, other.code_);
  return *this;
}

RunningProgram::~RunningProgram() {
  if (pid_ <= 0 || Poll()) return;
  Kill();
  WaitFor(pid_);
}

std::optional<int> RunningProgram::Poll() {
  if (code_) return code_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) code_ = ShellCode(status);
  return code_;
}

void RunningProgram::Terminate() const {
  if (!code_) ::kill(-pid_, SIGTERM);
}

void RunningProgram::Kill() const {
  if (!code_) ::kill(-pid_, SIGKILL);
}

Result<std::string> OwnProgram() {
  std::error_code code;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return Error{.message = "cannot tell the path of this program: " + code.message()};
  return path.string();
}

}  // namespace culprit
