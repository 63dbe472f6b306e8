// SPDX-License-Identifier: Apache-2.0
#include "symbol/jit_maps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace culprit::symbol {
namespace {

constexpr off_t kMaxMapBytes = off_t{1} << 30;

std::optional<std::string> ReadDescriptor(int fd, Diagnostics& diagnostics) {
  struct stat status = {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kMaxMapBytes) {
    diagnostics.Count("perf-PID.map that is no plain file, or too large");
    return std::nullopt;
  }
  if (status.st_uid != 0 && status.st_uid != geteuid()) {
    diagnostics.Count("perf-PID.map that belongs to another user");
    return std::nullopt;
  }
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

}  // namespace

// The owner is asked of the open file, so that it cannot be exchanged between
// the question and the reading.
std::optional<JitSymbols> JitMaps::Read(int64_t pid) {
  const std::string path = folder_ + "/perf-" + std::to_string(pid) + ".map";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  const std::optional<std::string> text = ReadDescriptor(fd, diagnostics_);
  close(fd);
  if (!text) return std::nullopt;
  ++files_;
  return JitSymbols::Parse(*text, diagnostics_);
}

void JitMaps::Give(std::optional<int64_t> pid, std::string_view text) {
  given_.push_back({pid, JitSymbols::Parse(text, diagnostics_)});
}

std::string_view JitMaps::Lookup(int64_t pid, uint64_t address) {
  for (auto given = given_.rbegin(); given != given_.rend(); ++given) {
    if (given->pid && *given->pid != pid) continue;
    const std::string_view name = given->symbols.Lookup(address);
    if (!name.empty()) return name;
  }
  if (folder_.empty()) return {};
  const auto [it, is_new] = processes_.try_emplace(pid);
  if (is_new) it->second = Read(pid);
  return it->second ? it->second->Lookup(address) : std::string_view();
}

}  // namespace culprit::symbol
