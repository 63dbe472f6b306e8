// SPDX-License-Identifier: Apache-2.0
#include "guard/violation_store.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/text.h"

namespace culprit::guard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStorePrefix = "slow-units-";
constexpr std::string_view kStoreSuffix = ".jsonl";

std::string DayFile(int64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm day = {};
  gmtime_r(&seconds, &day);
  char text[16] = {};
  strftime(text, sizeof(text), "%Y-%m-%d", &day);
  return std::string(kStorePrefix) + text + std::string(kStoreSuffix);
}

}  // namespace

Result<ViolationStore> ViolationStore::Open(const std::string& folder, uint64_t max_bytes) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (!fs::is_directory(folder, code)) {
    return Error{.message = "cannot make a folder there", .file = folder};
  }
  return ViolationStore(folder, max_bytes);
}

bool ViolationStore::MakeRoom(const std::string& today, uint64_t bytes) const {
  std::vector<std::pair<std::string, uint64_t>> days;
  uint64_t total = bytes;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_, code)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kStorePrefix) || !name.ends_with(kStoreSuffix)) continue;
    const uintmax_t size = entry.file_size(code);
    if (code) continue;
    days.emplace_back(name, size);
    total += size;
  }
  std::sort(days.begin(), days.end());
  for (const auto& [name, size] : days) {
    if (total <= max_bytes_) return true;
    if (name >= today) continue;
    fs::remove(folder_ + "/" + name, code);
    total -= size;
  }
  return total <= max_bytes_;
}

Status ViolationStore::Append(const UnitReport& report) {
  const std::string line = ToJson(report) + "\n";
  const std::string today = DayFile(report.begin_unix_ns);
  if (!MakeRoom(today, line.size())) {
    ++refused_;
    return {};
  }
  const std::string path = folder_ + "/" + today;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd < 0) return ErrnoError("open", path);
  const ssize_t written = write(fd, line.data(), line.size());
  const Error error = ErrnoError("write", path);
  close(fd);
  if (written != static_cast<ssize_t>(line.size())) return error;
  return {};
}

}  // namespace culprit::guard
