// SPDX-License-Identifier: Apache-2.0
#include "record/target.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "record/process_scan.h"

namespace culprit::record {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCgroupRoots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/cpu"};
constexpr size_t kNameLimit = 15;

fs::path FindCgroup(const std::string& name) {
  std::error_code code;
  if (name.starts_with('/') && fs::exists(fs::path(name) / "cgroup.procs", code)) return name;
  for (const char* root : kCgroupRoots) {
    const fs::path path = fs::path(root) / fs::path(name).relative_path();
    if (fs::exists(path / "cgroup.procs", code)) return path;
  }
  return {};
}

void AddMembers(const fs::path& folder, std::set<int64_t>& pids) {
  std::istringstream text(ReadKernelFile((folder / "cgroup.procs").string()));
  int64_t pid = 0;
  while (text >> pid) pids.insert(pid);
}

Status AddCgroup(const std::string& name, std::set<int64_t>& pids) {
  const fs::path folder = FindCgroup(name);
  if (folder.empty()) {
    return Error{.message = "no such cgroup: " + name,
                 .hint = "name it as /proc/PID/cgroup does, or by its folder below /sys/fs/cgroup"};
  }
  AddMembers(folder, pids);
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    if (it->is_directory(code)) AddMembers(it->path(), pids);
  }
  return {};
}

}  // namespace

Result<std::vector<int64_t>> FindProcesses(const RecordTarget& target) {
  std::set<int64_t> pids;
  for (const int64_t pid : target.pids) {
    // The id of a thread names its process.
    const std::optional<ThreadOwner> owner = FindThread(pid);
    if (!owner) {
      return Error{.message = "there is no process " + std::to_string(pid),
                   .hint = "pgrep NAME finds it; --comm NAME records whoever has that name"};
    }
    pids.insert(owner->pid);
  }
  for (const std::string& cgroup : target.cgroups) CULPRIT_TRY(AddCgroup(cgroup, pids));
  if (!target.names.empty()) {
    for (const int64_t pid : ListProcesses()) {
      const std::optional<ThreadOwner> owner = FindThread(pid);
      if (!owner) continue;
      const bool wanted = std::any_of(
          target.names.begin(), target.names.end(),
          [&](const std::string& name) { return owner->name == name.substr(0, kNameLimit); });
      if (wanted) pids.insert(pid);
    }
  }
  return std::vector<int64_t>(pids.begin(), pids.end());
}

// "/docker/ID", "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID.scope":
// the last part that has 64 hexadecimal digits.
std::string ContainerOf(std::string_view cgroup) {
  constexpr size_t kIdDigits = 64;
  constexpr size_t kShownDigits = 12;
  size_t run = 0;
  std::string found;
  for (size_t i = 0; i <= cgroup.size(); ++i) {
    const bool is_digit = i < cgroup.size() &&
                          std::string_view("0123456789abcdef").find(cgroup[i]) != std::string::npos;
    if (is_digit) {
      ++run;
      continue;
    }
    if (run == kIdDigits) found = cgroup.substr(i - run, kShownDigits);
    run = 0;
  }
  return found;
}

std::map<std::string, std::string> LabelsOf(const RecordTarget& target) {
  std::map<std::string, std::set<std::string>> values;
  for (const std::string& name : target.names) values["comm"].insert(name);
  for (const std::string& cgroup : target.cgroups) {
    values["cgroup"].insert(cgroup);
    if (std::string container = ContainerOf(cgroup); !container.empty()) {
      values["container"].insert(std::move(container));
    }
  }
  for (const int64_t pid : target.pids) {
    const std::optional<ProcessEntry> process = ScanProcess(pid, false);
    if (!process) continue;
    values["comm"].insert(process->name);
    if (!process->cgroup.empty()) values["cgroup"].insert(process->cgroup);
    if (std::string container = ContainerOf(process->cgroup); !container.empty()) {
      values["container"].insert(std::move(container));
    }
  }
  std::map<std::string, std::string> labels;
  for (const auto& [key, texts] : values) {
    for (const std::string& text : texts) labels[key] += (labels[key].empty() ? "" : ",") + text;
  }
  return labels;
}

std::string Describe(const RecordTarget& target) {
  if (target.whole_system) return "the whole system";
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  for (const int64_t pid : target.pids) add("pid " + std::to_string(pid));
  for (const std::string& name : target.names) add("comm " + name);
  for (const std::string& cgroup : target.cgroups) add("cgroup " + cgroup);
  return text;
}

}  // namespace culprit::record
