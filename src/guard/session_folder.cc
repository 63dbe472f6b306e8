// SPDX-License-Identifier: Apache-2.0
#include "guard/session_folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "guard/proc_file.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSessionPrefix = "session-";
constexpr std::string_view kSlotsPrefix = "slots.";

struct Room {
  bool in_memory = false;
  uint64_t bytes = 0;
};

Room RoomIn(const std::string& folder) {
  struct statfs facts = {};
  if (statfs(folder.c_str(), &facts) != 0) return {};
  return {.in_memory = facts.f_type == TMPFS_MAGIC,
          .bytes = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize)};
}

// Everything above the session is ours: another user could otherwise have made
// it first and see what is in it.
bool MakeParent(const std::string& parent) {
  const bool root = geteuid() == 0;
  const mode_t mode = root ? 0711 : 0700;
  const std::string above = parent.substr(0, parent.rfind('/'));
  if (mkdir(above.c_str(), 0755) != 0 && errno != EEXIST) return false;
  if (mkdir(parent.c_str(), mode) == 0 && chmod(parent.c_str(), mode) != 0) return false;
  struct stat status = {};
  return lstat(parent.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & (root ? 0066 : 0077)) == 0;
}

Result<std::string> ChooseParent(const SessionOptions& options) {
  std::vector<std::string> parents = SessionParents();
  if (!options.parent.empty()) parents = {options.parent};
  std::vector<std::pair<std::string, Room>> usable;
  for (const std::string& parent : parents) {
    if (MakeParent(parent)) usable.emplace_back(parent, RoomIn(parent));
  }
  for (const bool in_memory : {true, false}) {
    for (const auto& [parent, room] : usable) {
      if (room.in_memory == in_memory && room.bytes > options.needed_bytes) return parent;
    }
  }
  if (!usable.empty()) {
    return Error{
        .message = "there is no room for " + FormatBytes(options.needed_bytes) + " of guard data",
        .file = usable.front().first,
        .hint = "free some, or say less with --log-bytes"};
  }
  return Error{.message = "cannot make a folder of one's own for guard sessions",
               .file = parents.front()};
}

// kill -9 of a collector leaves its folder; a guarded process may still write to
// it, so it stays until the last one is gone.
void RemoveDeadSessions(const std::string& parent) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(parent, code)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kSessionPrefix)) continue;
    const std::string_view rest = std::string_view(name).substr(kSessionPrefix.size());
    const auto pid = ParseUnsigned(rest.substr(0, rest.find('-')));
    if (!pid || IsRunning(static_cast<int64_t>(*pid))) continue;
    const std::vector<int64_t> processes = ProcessesIn(entry.path());
    if (std::any_of(processes.begin(), processes.end(), IsRunning)) continue;
    fs::remove_all(entry.path(), code);
  }
}

constexpr int64_t kUnknownChange = -1;
constexpr int64_t kFileClockStepNs = 20'000'000;  // two ticks of the slowest kernel

int64_t FileClockNs() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<int64_t>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
}

// When files came or went there last, by the clock of files.
int64_t LastChangeNs(int folder) {
  struct stat status = {};
  if (fstat(folder, &status) != 0) return kUnknownChange;
  return static_cast<int64_t>(status.st_mtim.tv_sec) * kNsPerSecond + status.st_mtim.tv_nsec;
}

Result<std::string> MakeSession(const std::string& parent) {
  uint64_t random[2] = {};
  if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
    return ErrnoError("get random bytes", "");
  }
  char text[2 * 2 * sizeof(uint64_t) + 1] = {};
  snprintf(text, sizeof(text), "%016lx%016lx", static_cast<unsigned long>(random[0]),
           static_cast<unsigned long>(random[1]));
  const std::string path =
      parent + "/" + std::string(kSessionPrefix) + std::to_string(getpid()) + "-" + text;
  const mode_t mode = geteuid() == 0 ? 01777 : 0700;
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoError("create", path);
  if (chmod(path.c_str(), mode) != 0) return ErrnoError("set the mode of", path);
  return path;
}

}  // namespace

std::vector<std::string> SessionParents() {
  const std::string user = std::to_string(geteuid());
  std::vector<std::string> parents;
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (geteuid() == 0) {
    parents.emplace_back("/run/culprit/guard");
  } else if (runtime != nullptr && *runtime != 0) {
    parents.push_back(std::string(runtime) + "/culprit/guard");
  }
  parents.push_back("/dev/shm/culprit-guard-" + user);
  parents.push_back("/tmp/culprit-guard-" + user);
  return parents;
}

Result<SessionFolder> SessionFolder::Create(const SessionOptions& options) {
  CULPRIT_ASSIGN(const std::string parent, ChooseParent(options));
  for (const std::string& old : SessionParents()) RemoveDeadSessions(old);
  CULPRIT_ASSIGN(const std::string path, MakeSession(parent));
  auto control = SharedFile::Create(path + "/control", sizeof(wire::Control));
  if (!control.ok()) {
    std::error_code code;
    fs::remove_all(path, code);
    return control.error();
  }
  SessionFolder session(path, std::move(control).value());
  const uint64_t magic = wire::Magic("CGCTRL01");
  session.Beat(GuardClockNs());
  if (!session.control_.Write(offsetof(wire::Control, version), wire::kWireVersion) ||
      !session.control_.Write(offsetof(wire::Control, magic), magic)) {
    return ErrnoError("write", path + "/control");
  }
  return session;
}

SessionFolder::SessionFolder(std::string path, SharedFile control)
    : path_(std::move(path)),
      control_(std::move(control)),
      folder_(open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

SessionFolder::SessionFolder(SessionFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      control_(std::move(other.control_)),
      folder_(std::exchange(other.folder_, -1)),
      known_change_ns_(other.known_change_ns_) {}

SessionFolder::~SessionFolder() {
  if (folder_ >= 0) close(folder_);
  if (path_.empty()) return;
  std::error_code code;
  fs::remove_all(path_, code);
}

std::string SessionFolder::FilePath(std::string_view name, int64_t pid) const {
  return path_ + "/" + std::string(name) + "." + std::to_string(pid);
}

Status SessionFolder::WritePlan(uint32_t number, std::string_view plan) {
  const std::string path = FilePath("plan", number);
  CULPRIT_TRY(WriteWholeFile(path, plan, Overwrite::kAllow));
  if (chmod(path.c_str(), 0644) != 0) return ErrnoError("set the mode of", path);
  return {};
}

Status SessionFolder::Want(uint32_t plan) {
  if (control_.Write(offsetof(wire::Control, wanted), plan)) return {};
  return ErrnoError("write", path_ + "/control");
}

void SessionFolder::Beat(uint64_t now_ns) {
  // A beat that fails is one that the processes miss; the next may succeed.
  static_cast<void>(control_.Write(offsetof(wire::Control, collector_beat_ns), now_ns));
}

std::vector<int64_t> SessionFolder::Processes() const { return ProcessesIn(path_); }

bool SessionFolder::TakeNews() {
  // The clock of files goes in steps: what comes in the same one as the last change leaves no
  // trace.
  const int64_t now_ns = FileClockNs();
  const int64_t change_ns = LastChangeNs(folder_);
  const bool is_past = now_ns - change_ns > kFileClockStepNs;
  const int64_t before_ns = std::exchange(known_change_ns_, is_past ? change_ns : kUnknownChange);
  return before_ns == kUnknownChange || before_ns != change_ns;
}

uint64_t SessionFolder::LogBytes() const {
  uint64_t bytes = 0;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(path_, code)) {
    if (!entry.path().filename().string().starts_with("log.")) continue;
    const uintmax_t size = entry.file_size(code);
    if (!code) bytes += size;
  }
  return bytes;
}

std::vector<int64_t> ProcessesIn(const std::string& session) {
  std::vector<int64_t> pids;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(session, code)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kSlotsPrefix)) continue;
    const auto pid = ParseUnsigned(std::string_view(name).substr(kSlotsPrefix.size()));
    if (pid && *pid > 0 && *pid <= INT32_MAX) pids.push_back(static_cast<int64_t>(*pid));
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::vector<std::string> SessionsOf(int64_t pid) {
  std::vector<std::string> sessions;
  for (const std::string& parent : SessionParents()) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(parent, code)) {
      if (!entry.path().filename().string().starts_with(kSessionPrefix)) continue;
      const std::vector<int64_t> pids = ProcessesIn(entry.path());
      if (std::binary_search(pids.begin(), pids.end(), pid)) sessions.push_back(entry.path());
    }
  }
  std::sort(sessions.begin(), sessions.end());
  return sessions;
}

uint64_t GuardClockNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace culprit::guard
