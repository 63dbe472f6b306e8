// SPDX-License-Identifier: Apache-2.0
#include "import/uftrace_tasks.h"

#include <algorithm>
#include <optional>

#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr int kMaxAncestors = 1000;

// exename="/bin/my app"
std::string_view Quoted(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + key.size());
  if (!rest.starts_with('"')) return {};
  rest.remove_prefix(1);
  return rest.substr(0, std::min(rest.rfind('"'), rest.size()));
}

}  // namespace

UftraceTasks::UftraceTasks(std::string_view text, Diagnostics& diagnostics) {
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t end = std::min(text.find('\n', offset), text.size());
    const std::string_view line = text.substr(offset, end - offset);
    if (!Trim(line).empty() && !Line(line)) {
      diagnostics.Count("line of task.txt that could not be read", 1, offset);
    }
    offset = end + 1;
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; };
  std::stable_sort(programs_.begin(), programs_.end(), earlier);
  std::stable_sort(births_.begin(), births_.end(), earlier);
}

bool UftraceTasks::Line(std::string_view line) {
  const auto time_ns = ParseSecondsNs(FieldText(line, "timestamp="));
  if (!time_ns) return false;
  const auto pid = FieldInteger(line, "pid=");
  const auto tid = FieldInteger(line, "tid=");
  const std::string_view sid = FieldText(line, "sid=");
  if (line.starts_with("SESS ")) {
    if (!pid) return false;
    programs_.push_back({*time_ns, *pid, std::string(sid), std::string(Quoted(line, "exename="))});
    return true;
  }
  if (line.starts_with("TASK ")) {
    if (!pid || !tid) return false;
    pid_of_[*tid] = *pid;
    births_.push_back({.time_ns = *time_ns, .tid = *tid, .pid = *pid, .parent = *pid});
    return true;
  }
  if (line.starts_with("FORK ")) {
    const auto parent = FieldInteger(line, "ppid=");
    if (!pid || !parent) return false;
    pid_of_[*pid] = *pid;
    parent_of_[*pid] = *parent;
    births_.push_back({.time_ns = *time_ns, .tid = *pid, .pid = *pid, .parent = *parent});
    return true;
  }
  if (line.starts_with("DLOP ")) {
    const auto base = ParseHexadecimal(FieldText(line, "base="));
    const std::string_view path = Quoted(line, "libname=");
    if (!base || path.empty()) return false;
    libraries_.push_back({std::string(sid), *base, std::string(path)});
    return true;
  }
  return false;
}

int64_t UftraceTasks::PidOf(int64_t tid) const {
  const auto it = pid_of_.find(tid);
  return it == pid_of_.end() ? tid : it->second;
}

UftraceRun UftraceTasks::RunOf(int64_t tid, int64_t time_ns) const {
  UftraceRun run;
  int64_t pid = PidOf(tid);
  for (int i = 0; i < kMaxAncestors; ++i) {
    const auto parent = parent_of_.find(pid);
    for (const UftraceProgram& program : programs_) {
      if (program.pid != pid) continue;
      // A process that was not forked ran its first program from the start, even
      // if the record of that was written a little late.
      const bool first = run.program == nullptr && parent == parent_of_.end();
      if (program.time_ns <= time_ns || first) {
        run.program = &program;
      } else {
        run.until_ns = std::min(run.until_ns, program.time_ns);
      }
    }
    if (run.program != nullptr || parent == parent_of_.end()) break;
    pid = parent->second;
  }
  if (run.program == nullptr && programs_.size() == 1) run.program = &programs_.front();
  return run;
}

}  // namespace culprit::import_
