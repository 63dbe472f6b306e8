// SPDX-License-Identifier: Apache-2.0
#include "record/control_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/text.h"

namespace culprit::record {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "record-";
constexpr std::string_view kSuffix = ".sock";
constexpr size_t kMaxRequest = 4096;
constexpr int kPatienceMs = 200;   // with a client that does not speak
constexpr int kAnswerMs = 60'000;  // a dump takes its time
constexpr mode_t kFolderMode = 0755;

std::string SocketFolder() {
  if (geteuid() == 0) return "/run/culprit";
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != 0) return std::string(runtime) + "/culprit";
  return "/tmp/culprit-" + std::to_string(geteuid());
}

bool FillAddress(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::copy(path.begin(), path.end(), address.sun_path);
  return true;
}

int Connect(const std::string& path) {
  sockaddr_un address;
  if (!FillAddress(path, address)) return -1;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
  close(fd);
  return -1;
}

std::string ReadLine(int fd, int patience_ms) {
  std::string line;
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  char byte = 0;
  while (line.size() < kMaxRequest && poll(&waiting, 1, patience_ms) == 1 &&
         read(fd, &byte, 1) == 1 && byte != '\n') {
    line.push_back(byte);
  }
  return line;
}

void SendLine(int fd, std::string line) {
  line.push_back('\n');
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
}

}  // namespace

Result<ControlSocket> ControlSocket::Listen() {
  const std::string folder = SocketFolder();
  std::error_code code;
  fs::create_directories(folder, code);
  chmod(folder.c_str(), kFolderMode);
  const std::string path =
      folder + "/" + std::string(kPrefix) + std::to_string(getpid()) + std::string(kSuffix);
  sockaddr_un address;
  if (!FillAddress(path, address)) return Error{.message = "name of socket too long", .file = path};
  unlink(path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoError("make a socket", path);
  ControlSocket control(fd, path);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    return ErrnoError("listen", path);
  }
  return control;
}

ControlSocket::ControlSocket(ControlSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

ControlSocket::~ControlSocket() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(path_.c_str());
}

// Nearly always nobody waits, and accept makes a socket before it finds that out.
void ControlSocket::Serve(const Handler& handler) {
  pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
  while (poll(&waiting, 1, 0) == 1) {
    const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const std::string request = ReadLine(client, kPatienceMs);
    if (!request.empty()) SendLine(client, handler(request));
    close(client);
  }
}

std::vector<RunningRecorder> FindRecorders() {
  std::vector<RunningRecorder> found;
  std::error_code code;
  for (fs::directory_iterator it(SocketFolder(), code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const std::string_view digits = std::string_view(name).substr(
        kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    const std::optional<uint64_t> pid = ParseUnsigned(digits);
    if (!pid || *pid > INT32_MAX) continue;
    const int fd = Connect(it->path().string());
    if (fd >= 0) {
      close(fd);
      found.push_back({.pid = static_cast<int64_t>(*pid), .socket = it->path().string()});
    } else if (errno == ECONNREFUSED) {
      unlink(it->path().c_str());
    }
  }
  std::sort(found.begin(), found.end(),
            [](const RunningRecorder& a, const RunningRecorder& b) { return a.pid < b.pid; });
  return found;
}

Result<std::string> Ask(const RunningRecorder& recorder, const std::string& request) {
  const int fd = Connect(recorder.socket);
  if (fd < 0) return ErrnoError("reach the recorder", recorder.socket);
  SendLine(fd, request);
  std::string answer = ReadLine(fd, kAnswerMs);
  close(fd);
  if (answer.empty()) {
    return Error{.message = "the recorder gave no answer", .file = recorder.socket};
  }
  return answer;
}

std::string FormatMark(const MarkRequest& mark) {
  return "mark " + std::to_string(mark.time_ns) + " " + std::to_string(mark.pid) + " " +
         std::string(mark.text);
}

bool ParseMark(std::string_view request, MarkRequest& mark) {
  constexpr std::string_view kVerb = "mark ";
  if (!request.starts_with(kVerb)) return false;
  request.remove_prefix(kVerb.size());
  const size_t first = request.find(' ');
  const size_t second = first == std::string_view::npos ? first : request.find(' ', first + 1);
  if (second == std::string_view::npos) return false;
  const std::optional<uint64_t> time_ns = ParseUnsigned(request.substr(0, first));
  const std::optional<uint64_t> pid = ParseUnsigned(request.substr(first + 1, second - first - 1));
  if (!time_ns || !pid || *time_ns > INT64_MAX / 4 || *pid > INT32_MAX) return false;
  mark = {.time_ns = static_cast<int64_t>(*time_ns),
          .pid = static_cast<int64_t>(*pid),
          .text = request.substr(second + 1)};
  return true;
}

}  // namespace culprit::record
