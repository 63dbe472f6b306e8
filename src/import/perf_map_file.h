// SPDX-License-Identifier: Apache-2.0
//
// PerfMapFile: a list of functions of a just-in-time compiler, in the form of
// perf-PID.map, that a person gave for a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::import_ {

struct PerfMapFile {
  std::string path;
  std::optional<int64_t> pid = {};  // unset: for every process
};

// "FILE:PID"; of "FILE" alone the name perf-PID.map tells the process, if it is
// one.
PerfMapFile ParsePerfMapFile(std::string_view text);

}  // namespace culprit::import_
