// SPDX-License-Identifier: Apache-2.0
#include "corpus/staging.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;

// FNV-1a: the name has to be the same in every build of the program.
std::string ShortHash(std::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out.push_back(kHex[(hash >> shift) & 15]);
  return out;
}

const std::string& ThisPlace() {
  static const std::string place = [] {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    std::error_code code;
    return ShortHash(boot + fs::read_symlink("/proc/self/ns/pid", code).string());
  }();
  return place;
}

}  // namespace

Result<std::string> MakeStagingPath(const std::string& staging_folder) {
  static std::atomic<uint64_t> serial{0};
  std::error_code code;
  fs::create_directories(staging_folder, code);
  if (code) {
    return Error{.message = "cannot create the folder: " + code.message(), .file = staging_folder};
  }
  while (true) {
    // A dead process with the same pid may have left a file of this name.
    std::string path = staging_folder + "/" + std::to_string(::getpid()) + "-" + ThisPlace() + "-" +
                       std::to_string(serial++) + ".ctrace";
    if (::access(path.c_str(), F_OK) != 0) return path;
  }
}

StagingWriter WriterOf(std::string_view file_name) {
  const size_t first = file_name.find('-');
  if (first == std::string_view::npos) return StagingWriter::kElsewhere;
  const size_t second = file_name.find('-', first + 1);
  if (second == std::string_view::npos) return StagingWriter::kElsewhere;
  const auto pid = ParseUnsigned(file_name.substr(0, first));
  if (!pid || *pid == 0 || *pid > INT32_MAX) return StagingWriter::kElsewhere;
  if (file_name.substr(first + 1, second - first - 1) != ThisPlace())
    return StagingWriter::kElsewhere;
  const bool alive = ::kill(static_cast<pid_t>(*pid), 0) == 0 || errno == EPERM;
  return alive ? StagingWriter::kAlive : StagingWriter::kDead;
}

StagedFile::~StagedFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace culprit::corpus
