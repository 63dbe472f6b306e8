// SPDX-License-Identifier: Apache-2.0
//
// RecordTarget: whom to record: a command that is started, processes by id, by
// name or by cgroup, each with the children they make from then on; or all.
#pragma once

#include <cstdint>
#include <string>
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

// "pid 12, comm nginx": for people and metadata.
std::string Describe(const RecordTarget& target);

}  // namespace culprit::record
