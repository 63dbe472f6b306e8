// SPDX-License-Identifier: Apache-2.0
//
// SessionFolder: where culprit and the guarded processes meet (runtime/wire.h):
// plans and the control file of culprit, slots, rings and logs of the processes.
// It lies in memory (tmpfs) where there is room, because the target's threads
// write to mapped files of it, and is removed with this object.
//
// A user's session is closed to others (0700). Root's session takes files of
// others, since servers give up their rights (nginx's workers): its name holds
// 128 random bits and lies in a folder that nobody can list. One thread at a
// time; one collector a session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guard/shared_file.h"

namespace culprit::guard {

struct SessionOptions {
  uint64_t needed_bytes = 64 << 20;  // for logs and rings
  std::string parent = {};           // empty: the best of SessionParents()
};

// Folders that hold sessions of this user, best first.
std::vector<std::string> SessionParents();

class SessionFolder {
 public:
  // Also removes what killed collectors left behind, unless a process of theirs
  // still lives.
  static Result<SessionFolder> Create(const SessionOptions& options = {});
  SessionFolder(SessionFolder&& other) noexcept;
  SessionFolder& operator=(SessionFolder&&) = delete;
  ~SessionFolder();

  const std::string& path() const { return path_; }
  std::string FilePath(std::string_view name, int64_t pid) const;  // "slots.123"

  // plan.N, whole before anybody can see it.
  Status WritePlan(uint32_t number, std::string_view plan);
  // wire::Control::wanted.
  Status Want(uint32_t plan);
  // Tells the processes that somebody listens.
  void Beat(uint64_t now_ns);
  // Those that have slots here, by id.
  std::vector<int64_t> Processes() const;
  // Files may have come or gone since it was asked last. A fraction of what Processes() costs.
  bool TakeNews();
  uint64_t LogBytes() const;
  // The session outlives this object: the next collector finds it.
  void Keep() { path_.clear(); }

 private:
  SessionFolder(std::string path, SharedFile control);

  std::string path_;
  SharedFile control_;
  int folder_;                    // open, to be asked when it changed; -1: it cannot be
  int64_t known_change_ns_ = -1;  // when that was, by TakeNews(); -1: it is not known
};

// Process ids of the slots in a session folder, sorted.
std::vector<int64_t> ProcessesIn(const std::string& session);
// Sessions of this user in which the process has slots.
std::vector<std::string> SessionsOf(int64_t pid);

uint64_t GuardClockNs();  // CLOCK_MONOTONIC

}  // namespace culprit::guard
