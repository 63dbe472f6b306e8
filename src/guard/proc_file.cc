// SPDX-License-Identifier: Apache-2.0
#include "guard/proc_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/text.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kRemotePage = 4096;
constexpr uint32_t kZombieRounds = 16;

iovec RemotePart(uint64_t address, size_t bytes) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  return {.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
}

}  // namespace

std::string ProcPath(int64_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

Result<std::string> ReadProcFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", path);
  std::string text;
  char chunk[16 * 1024];
  ssize_t got = 0;
  while ((got = read(fd, chunk, sizeof(chunk))) > 0) text.append(chunk, static_cast<size_t>(got));
  const Error error = ErrnoError("read", path);
  close(fd);
  if (got < 0) return error;
  return text;
}

std::string ProcStatusField(int64_t pid, std::string_view field) {
  const Result<std::string> status = ReadProcFile(ProcPath(pid, "status"));
  if (!status.ok()) return "";
  const std::string text = "\n" + status.value();
  const size_t at = text.find("\n" + std::string(field) + ":");
  if (at == std::string::npos) return "";
  const size_t begin = text.find_first_not_of(" \t", at + field.size() + 2);
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

bool IsRunning(int64_t pid) {
  if (pid <= 0 || (kill(static_cast<pid_t>(pid), 0) != 0 && errno != EPERM)) return false;
  const std::string state = ProcStatusField(pid, "State");
  return !state.starts_with('Z') && !state.starts_with('X');
}

bool ProcessLife::alive() const {
  if (asked_++ % kZombieRounds == 0) zombie_ = !IsRunning(pid_);
  return !zombie_ && (kill(static_cast<pid_t>(pid_), 0) == 0 || errno == EPERM);
}

std::vector<int64_t> ThreadsOf(int64_t pid) {
  std::vector<int64_t> tids;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(ProcPath(pid, "task"), code)) {
    const auto tid = ParseUnsigned(entry.path().filename().string());
    if (tid) tids.push_back(static_cast<int64_t>(*tid));
  }
  std::sort(tids.begin(), tids.end());
  return tids;
}

std::string ProcLink(int64_t pid, std::string_view name) {
  std::error_code code;
  return std::filesystem::read_symlink(ProcPath(pid, name), code).string();
}

size_t ReadRemoteMemory(int64_t pid, uint64_t address, void* to, size_t bytes) {
  // Page by page, because a part that is not there spoils a whole vector element.
  size_t done = 0;
  while (done < bytes) {
    constexpr size_t kParts = 64;
    iovec parts[kParts];
    size_t count = 0;
    size_t asked = 0;
    while (count < kParts && done + asked < bytes) {
      const uint64_t at = address + done + asked;
      const size_t part = std::min<size_t>(bytes - done - asked, kRemotePage - at % kRemotePage);
      parts[count++] = RemotePart(at, part);
      asked += part;
    }
    iovec local = {.iov_base = static_cast<char*>(to) + done, .iov_len = asked};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(pid), &local, 1, parts, count, 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < asked) break;
  }
  return done;
}

bool WriteRemoteMemory(int64_t pid, uint64_t address, const void* from, size_t bytes) {
  iovec local = {.iov_base = const_cast<void*>(from), .iov_len = bytes};
  iovec remote = RemotePart(address, bytes);
  return process_vm_writev(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(bytes);
}

}  // namespace culprit::guard
