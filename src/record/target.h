// SPDX-License-Identifier: Apache-2.0
//
// RecordTarget: whom to record: a command that is started, processes by id, by
// name or by cgroup, each with the children they make from then on; or all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::record {

struct RecordTarget {
  bool whole_system = false;
  std::vector<int64_t> pids = {};
  std::vector<std::string> names = {};    // as in /proc/PID/comm
  std::vector<std::string> cgroups = {};  // folders below /sys/fs/cgroup, or whole paths

  bool empty() const { return !whole_system && pids.empty() && names.empty() && cgroups.empty(); }
};

// The processes that are meant now, ascending. An Error if one named by id, or a
// cgroup, does not exist; a name may turn up later.
Result<std::vector<int64_t>> FindProcesses(const RecordTarget& target);

// The container a cgroup is of, by the names that Docker, Podman, containerd and
// CRI-O give it: twelve digits of its id; empty: none.
std::string ContainerOf(std::string_view cgroup);
// Labels that say whom a recording is of: "comm", "cgroup", "container".
std::map<std::string, std::string> LabelsOf(const RecordTarget& target);

// "pid 12, comm nginx": for people and metadata.
std::string Describe(const RecordTarget& target);

}  // namespace culprit::record
