// SPDX-License-Identifier: Apache-2.0
#include "record/process_scan.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>

#include "base/text.h"

namespace culprit::record {
namespace {

constexpr uint64_t kKernelThreadFlag = 0x200000;
constexpr size_t kMaxCommandLine = 4096;
constexpr const char* kNoFile = "//anon";
// Of x86-64: a page of the kernel, at an address of the kernel; it is no mapping of the process.
constexpr std::string_view kVsyscall = "[vsyscall]";

// Of linux/fs.h, since 6.11: struct procmap_query.
struct MappingQuery {
  uint64_t size = 0;
  uint64_t query_flags = 0;
  uint64_t address = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t flags = 0;
  uint64_t page_size = 0;
  uint64_t file_offset = 0;
  uint64_t inode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint32_t name_size = 0;
  uint32_t build_id_size = 0;
  uint64_t name_address = 0;
  uint64_t build_id_address = 0;
};
constexpr uint64_t kNextExecutable = 0x04 | 0x10;  // VMA_EXECUTABLE | COVERING_OR_NEXT_VMA
constexpr unsigned long kQueryMapping = _IOWR('f', 17, MappingQuery);

std::string ProcFolder(int64_t pid) { return "/proc/" + std::to_string(pid); }

std::string FirstLine(const std::string& path) {
  std::string text = ReadKernelFile(path);
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}

std::vector<int64_t> NumbersIn(const std::string& folder) {
  std::vector<int64_t> numbers;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    const std::optional<uint64_t> number = ParseUnsigned(it->path().filename().string());
    if (number && *number <= INT32_MAX) numbers.push_back(static_cast<int64_t>(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The name in stat may hold anything, so fields count from its last bracket.
bool IsKernelThread(const std::string& stat) {
  size_t at = stat.rfind(')');
  for (int field = 2; field < 9 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return false;
  const std::string_view rest = std::string_view(stat).substr(at + 1);
  const auto flags = ParseUnsigned(rest.substr(0, rest.find(' ')));
  return flags && (*flags & kKernelThreadFlag) != 0;
}

std::string_view TakeWord(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size());
  return word;
}

std::optional<uint64_t> ParseHexadecimal(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::string ReadKernelFile(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[16 << 10];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

std::vector<int64_t> ListProcesses() { return NumbersIn("/proc"); }

std::optional<MapEntry> ParseMapLine(std::string_view line) {
  const std::string_view range = TakeWord(line);
  const std::string_view access = TakeWord(line);
  const std::optional<uint64_t> offset = ParseHexadecimal(TakeWord(line));
  const size_t dash = range.find('-');
  if (access.size() < 3 || access[2] != 'x' || dash == std::string_view::npos || !offset) {
    return std::nullopt;
  }
  const std::optional<uint64_t> start = ParseHexadecimal(range.substr(0, dash));
  const std::optional<uint64_t> end = ParseHexadecimal(range.substr(dash + 1));
  if (!start || !end || *end <= *start) return std::nullopt;
  TakeWord(line);  // device
  TakeWord(line);  // inode
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  std::string path(line);
  if (path == kVsyscall) return std::nullopt;
  if (path.empty()) path = kNoFile;
  return MapEntry{.start = *start, .end = *end, .file_offset = *offset, .path = std::move(path)};
}

std::vector<MapEntry> ReadCodeList(int64_t pid) {
  std::vector<MapEntry> code;
  const std::string text = ReadKernelFile(ProcFolder(pid) + "/maps");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (std::optional<MapEntry> map = ParseMapLine(line)) code.push_back(std::move(*map));
  }
  return code;
}

std::vector<MapEntry> ScanCode(int64_t pid) {
  const int fd = open((ProcFolder(pid) + "/maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::vector<MapEntry> code;
  char name[PATH_MAX];
  MappingQuery query = {.size = sizeof(query), .query_flags = kNextExecutable};
  bool answered = true;
  while (true) {
    name[0] = '\0';
    query.name_address = reinterpret_cast<uint64_t>(name);
    query.name_size = sizeof(name);
    if (ioctl(fd, kQueryMapping, &query) != 0) {
      answered = errno == ENOENT;  // there is no further one
      break;
    }
    std::string path = query.name_size > 1 ? name : kNoFile;
    code.push_back({.start = query.start,
                    .end = query.end,
                    .file_offset = query.file_offset,
                    .path = std::move(path)});
    query.address = query.end;
  }
  close(fd);
  return answered ? code : ReadCodeList(pid);
}

std::string ParseCgroup(std::string_view text) {
  std::string first;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t path = line.find(':', line.find(':') + 1);
    if (path == std::string_view::npos) continue;
    const std::string_view name = line.substr(path + 1);
    if (line.starts_with("0::") && name != "/") return std::string(name);
    if (first.empty() && name != "/") first = name;
  }
  return first.empty() ? "/" : first;
}

std::optional<ProcessEntry> ScanProcess(int64_t pid, bool with_maps) {
  const std::string folder = ProcFolder(pid);
  const std::string stat = ReadKernelFile(folder + "/stat");
  if (stat.empty()) return std::nullopt;
  ProcessEntry entry;
  entry.pid = pid;
  entry.name = FirstLine(folder + "/comm");
  entry.is_kernel_thread = IsKernelThread(stat);
  entry.command_line = ReadKernelFile(folder + "/cmdline").substr(0, kMaxCommandLine);
  while (entry.command_line.ends_with('\0')) entry.command_line.pop_back();
  std::replace(entry.command_line.begin(), entry.command_line.end(), '\0', ' ');
  entry.cgroup = ParseCgroup(ReadKernelFile(folder + "/cgroup"));
  for (const int64_t tid : NumbersIn(folder + "/task")) {
    entry.threads.push_back(
        {.tid = tid, .name = FirstLine(folder + "/task/" + std::to_string(tid) + "/comm")});
  }
  if (with_maps) entry.maps = ScanCode(pid);
  return entry;
}

std::optional<ThreadOwner> FindThread(int64_t tid) {
  const std::string status = ReadKernelFile(ProcFolder(tid) + "/status");
  const size_t at = status.find("\nTgid:\t");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = std::string_view(status).substr(at + 7);
  const std::optional<uint64_t> pid = ParseUnsigned(rest.substr(0, rest.find('\n')));
  if (!pid || *pid > INT32_MAX) return std::nullopt;
  return ThreadOwner{.pid = static_cast<int64_t>(*pid),
                     .name = FirstLine(ProcFolder(tid) + "/comm"),
                     .is_kernel_thread = IsKernelThread(ReadKernelFile(ProcFolder(tid) + "/stat"))};
}

}  // namespace culprit::record
