// SPDX-License-Identifier: Apache-2.0
#include "watch/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/file.h"

namespace culprit::watch {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<StateFolder> StateFolder::Open(const std::string& folder) {
  std::error_code code;
  for (const char* part : {"/profiles", "/dumps", "/reports"}) {
    fs::create_directories(folder + part, code);
    if (code) {
      return Error{.message = "cannot be made: " + code.message(),
                   .file = folder + part,
                   .hint = "--state names another folder"};
    }
  }
  const std::string path = folder + "/lock";
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return ErrnoError("open", path);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return Error{.message = "another watch uses this folder",
                 .file = folder,
                 .hint = "--state names another one"};
  }
  return StateFolder(folder, lock);
}

StateFolder::StateFolder(StateFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

StateFolder::~StateFolder() {
  if (lock_ >= 0) close(lock_);
}

std::vector<std::string> StateFolder::LeftDumps() const {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code code;
  for (fs::directory_iterator it(Dumps(), code), end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    if (it->path().extension() != ".ctrace") continue;
    found.emplace_back(fs::last_write_time(it->path(), ignored), it->path().string());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

Result<std::string> DefaultStateFolder(const std::string& name) {
  if (geteuid() == 0) return "/var/lib/culprit/" + name;
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  if (data != nullptr && *data != '\0') return std::string(data) + "/culprit/watch/" + name;
  if (home != nullptr && *home != '\0') {
    return std::string(home) + "/.local/share/culprit/watch/" + name;
  }
  return Error{.message = "there is no place for what a watch keeps", .hint = "--state FOLDER"};
}

}  // namespace culprit::watch
