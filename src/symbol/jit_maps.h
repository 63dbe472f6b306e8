// SPDX-License-Identifier: Apache-2.0
//
// JitMaps: the perf-PID.map files of a folder, in which just-in-time compilers
// (Java, node, .NET) tell the names of the code they made. A file is read when
// its process is first asked for and kept. As perf does, a file that belongs
// neither to root nor to this user is not believed: anyone may write to /tmp.
// Lists that a person gave come before those of the folder, later ones before
// earlier ones. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "symbol/symbolizer.h"

namespace culprit::symbol {

class JitMaps {
 public:
  // An empty name: no folder.
  explicit JitMaps(std::string folder) : folder_(std::move(folder)) {}

  // The text of a perf-PID.map; without a process it counts for all of them.
  void Give(std::optional<int64_t> pid, std::string_view text);
  // The function at an address of a process; empty: not known. The text lives
  // as long as this object.
  std::string_view Lookup(int64_t pid, uint64_t address);
  uint64_t files() const { return files_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  struct Given {
    std::optional<int64_t> pid;
    JitSymbols symbols;
  };
  std::optional<JitSymbols> Read(int64_t pid);

  std::string folder_;
  std::vector<Given> given_;
  std::map<int64_t, std::optional<JitSymbols>> processes_;
  uint64_t files_ = 0;
  Diagnostics diagnostics_;
};

}  // namespace culprit::symbol
