// SPDX-License-Identifier: Apache-2.0
#include "watch/process_family.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "guard/proc_file.h"
#include "guard/session_folder.h"

namespace culprit::watch {
namespace {

constexpr int kSettledRounds = 5;
constexpr int kMostRounds = 100;
constexpr std::chrono::milliseconds kRound{50};

// 0: it has none, or is gone.
int64_t ParentOf(int64_t pid) {
  const Result<std::string> stat = guard::ReadProcFile(guard::ProcPath(pid, "stat"));
  if (!stat.ok()) return 0;
  // "123 (name, which may hold anything) S 1 ..."
  const size_t name_end = stat.value().rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= stat.value().size()) return 0;
  return std::strtoll(stat.value().c_str() + name_end + 4, nullptr, 10);
}

}  // namespace

std::vector<int64_t> ProcessFamily(int64_t pid) {
  std::map<int64_t, std::vector<int64_t>> children;
  std::error_code code;
  for (std::filesystem::directory_iterator it("/proc", code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const int64_t child = std::strtoll(name.c_str(), nullptr, 10);
    if (const int64_t parent = ParentOf(child); parent > 0) children[parent].push_back(child);
  }
  const std::string program = guard::ProcLink(pid, "exe");
  std::vector<int64_t> family = {pid};
  for (size_t i = 0; i < family.size(); ++i) {
    std::vector<int64_t>& of = children[family[i]];
    std::sort(of.begin(), of.end());
    for (const int64_t child : of) {
      if (guard::ProcLink(child, "exe") == program) family.push_back(child);
    }
  }
  return family;
}

std::string SettledProgram(int64_t pid) {
  std::string program = guard::ProcLink(pid, "exe");
  int same = 0;
  for (int round = 0; same < kSettledRounds && round < kMostRounds; ++round) {
    std::this_thread::sleep_for(kRound);
    std::string now = guard::ProcLink(pid, "exe");
    same = now == program ? same + 1 : 0;
    program = std::move(now);
  }
  return program;
}

bool HasForsakenGuards(int64_t pid) {
  const std::vector<std::string> sessions = guard::SessionsOf(pid);
  return std::any_of(sessions.begin(), sessions.end(), [](const std::string& session) {
    // "session-PID-RANDOM"
    const std::string name = std::filesystem::path(session).filename();
    const size_t begin = name.find('-');
    if (begin == std::string::npos) return false;
    const int64_t collector = std::strtoll(name.c_str() + begin + 1, nullptr, 10);
    return collector > 0 && guard::ProcLink(collector, "exe").empty();
  });
}

}  // namespace culprit::watch
