// SPDX-License-Identifier: Apache-2.0
//
// What /proc tells about the processes that already run when a recording
// begins: names, threads, cgroups, executable mappings. A process that ends
// meanwhile is simply not there. Each call reads what it needs and keeps
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record {

struct ThreadEntry {
  int64_t tid = -1;
  std::string name;
};

struct MapEntry {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;
  std::string path;
  bool operator==(const MapEntry&) const = default;
};

struct ProcessEntry {
  int64_t pid = -1;
  std::string name;
  std::string command_line;
  std::string cgroup;
  bool is_kernel_thread = false;
  std::vector<ThreadEntry> threads;
  std::vector<MapEntry> maps;  // executable ones
};

// The whole of a file of /proc or /sys, which have no size to go by; empty if it
// cannot be read.
std::string ReadKernelFile(const std::string& path);

std::vector<int64_t> ListProcesses();
std::optional<ProcessEntry> ScanProcess(int64_t pid, bool with_maps);
// The process of a thread, and its name.
struct ThreadOwner {
  int64_t pid = -1;
  std::string name;
  bool is_kernel_thread = false;
};
std::optional<ThreadOwner> FindThread(int64_t tid);

// One line of /proc/PID/maps, if it is an executable mapping.
std::optional<MapEntry> ParseMapLine(std::string_view line);
// The executable mappings of a process, by address. Asked for one by one where the kernel
// can be asked (6.11), which is a fraction of what the whole list costs.
std::vector<MapEntry> ScanCode(int64_t pid);
// The same by the whole list.
std::vector<MapEntry> ReadCodeList(int64_t pid);
// The unified path, or the first of a hierarchy, from /proc/PID/cgroup.
std::string ParseCgroup(std::string_view text);

}  // namespace culprit::record
