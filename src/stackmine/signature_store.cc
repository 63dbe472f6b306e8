// SPDX-License-Identifier: Apache-2.0
#include "stackmine/signature_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"

namespace culprit::stackmine {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Holds the lock until it goes out of scope. The lock file stays: removing it
// would let two writers hold locks of two files of one name.
class StoreLock {
 public:
  static Result<StoreLock> Take(const std::string& path) {
    const std::string file = path + ".lock";
    const int fd = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (fd < 0) return ErrnoError("open", file);
    StoreLock lock(fd);
    while (::flock(fd, LOCK_EX) != 0) {
      if (errno != EINTR) return ErrnoError("lock", file);
    }
    return lock;
  }

  StoreLock(StoreLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  StoreLock& operator=(StoreLock&&) = delete;
  ~StoreLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit StoreLock(int fd) : fd_(fd) {}
  int fd_;
};

Status CheckNames(const std::vector<Signature>& signatures, const std::string& path) {
  std::set<std::string> names;
  for (const Signature& signature : signatures) {
    if (!names.insert(signature.name).second) {
      return Error{.message = "there is already a signature '" + signature.name + "'",
                   .file = path,
                   .hint = "choose another name, or remove that one first"};
    }
  }
  return {};
}

}  // namespace

std::string DefaultStorePath() {
  if (std::string path = Environment("CULPRIT_SIGNATURES"); !path.empty()) return path;
  std::string folder = Environment("XDG_DATA_HOME");
  if (folder.empty()) {
    const std::string home = Environment("HOME");
    if (home.empty()) return {};
    folder = home + "/.local/share";
  }
  return folder + "/culprit/signatures.json";
}

Result<std::vector<Signature>> ReadStore(const std::string& path) {
  std::error_code code;
  if (path.empty() || !std::filesystem::exists(path, code)) return std::vector<Signature>();
  CULPRIT_ASSIGN(const std::string text, ReadWholeFile(path));
  return SignaturesFromJson(text, path);
}

Status ChangeStore(const std::string& path,
                   const std::function<Status(std::vector<Signature>&)>& change) {
  if (path.empty()) {
    return Error{.message = "there is no folder for the signature store",
                 .hint = "name a file with --store or CULPRIT_SIGNATURES"};
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code code;
  if (!folder.empty()) std::filesystem::create_directories(folder, code);
  if (code) return Error{.message = "cannot make folder: " + code.message(), .file = folder};
  CULPRIT_ASSIGN(const StoreLock lock, StoreLock::Take(path));
  CULPRIT_ASSIGN(std::vector<Signature> signatures, ReadStore(path));
  CULPRIT_TRY(change(signatures));
  CULPRIT_TRY(CheckNames(signatures, path));
  return WriteWholeFile(path, SignaturesToJson(signatures), Overwrite::kAllow);
}

Result<size_t> FindSignature(const std::vector<Signature>& signatures, const std::string& name) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < signatures.size(); ++i) {
    if (signatures[i].name == name) return i;
    names.push_back(signatures[i].name);
  }
  Error error{.message = "there is no signature '" + name + "'",
              .hint = "culprit signatures list shows them"};
  if (const auto near = Nearest(name, names)) {
    error.message += "; did you mean '" + std::string(*near) + "'?";
  }
  return error;
}

}  // namespace culprit::stackmine
