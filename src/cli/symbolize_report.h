// SPDX-License-Identifier: Apache-2.0
//
// What culprit symbolize found out, and its two forms. Passive data; pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbol/debug_files.h"
#include "symbol/debug_server.h"
#include "symbol/frame_naming.h"

namespace culprit::cli {

inline constexpr std::string_view kWhereKernelNamesAre =
    "--kallsyms with a copy of /proc/kallsyms, read as root on the recorded machine since it was "
    "last started";

// A module in which frames had no name before.
struct ModuleFacts {
  symbol::UnnamedModule module;  // frames: over all traces
  uint64_t traces = 0;
  symbol::ModuleFiles files;
  std::optional<symbol::Download> binary;
  std::optional<symbol::Download> debug;
};

struct TraceFacts {
  std::string name;
  symbol::NamingCounts counts;
  bool replaced = false;
  std::optional<Error> error;
};

struct SymbolizeFacts {
  std::vector<TraceFacts> traces;
  std::vector<ModuleFacts> modules;  // most frames first
  bool kernel_symbols = false;       // were given
  bool asked_servers = false;
};

std::string SymbolizeText(const SymbolizeFacts& facts, size_t width, bool color);
std::string SymbolizeJson(const SymbolizeFacts& facts);
// How to get what is missing, a line each.
std::vector<std::string> MissingHints(const SymbolizeFacts& facts);

}  // namespace culprit::cli
