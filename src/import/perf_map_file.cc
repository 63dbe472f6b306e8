// SPDX-License-Identifier: Apache-2.0
#include "import/perf_map_file.h"

#include "base/text.h"

namespace culprit::import_ {
namespace {

std::optional<int64_t> ParsePid(std::string_view text) {
  const std::optional<uint64_t> number = ParseUnsigned(text);
  if (!number || *number > INT32_MAX) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace

PerfMapFile ParsePerfMapFile(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const auto pid = ParsePid(text.substr(colon + 1));
    if (pid) return {.path = std::string(text.substr(0, colon)), .pid = pid};
  }
  PerfMapFile file{.path = std::string(text)};
  std::string_view name = text.substr(text.rfind('/') + 1);
  constexpr std::string_view kPrefix = "perf-";
  constexpr std::string_view kSuffix = ".map";
  if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) {
    name.remove_prefix(kPrefix.size());
    name.remove_suffix(kSuffix.size());
    file.pid = ParsePid(name);
  }
  return file;
}

}  // namespace culprit::import_
