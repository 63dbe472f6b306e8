// SPDX-License-Identifier: Apache-2.0
#include "scale/engine.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "scale/index_ranges.h"

namespace culprit::scale {
namespace {

constexpr size_t kTailBytes = 4096;

std::string TaskCount(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " task" : " tasks");
}

}  // namespace

Status ToStatus(const StageOutcome& outcome, const Stage& stage, const std::string& run_folder) {
  if (outcome.ok()) return {};
  const std::string verb(VerbName(stage.verb));
  const uint64_t done = outcome.found_done + outcome.finished;
  const std::string so_far = std::to_string(done) + " of " + TaskCount(stage.count);
  if (outcome.stopped) {
    return Error{.message = "stopped during " + verb + " with " + so_far + " done",
                 .file = run_folder,
                 .hint = "the same command goes on from here"};
  }
  std::set<uint64_t> indexes;
  for (const TaskFailure& failure : outcome.failures) indexes.insert(failure.index);
  return Error{.message = verb + " failed for " + TaskCount(indexes.size()) + " of " +
                          std::to_string(stage.count) + " (" + IndexRanges(indexes) + "); " +
                          so_far + " done",
               .file = run_folder,
               .hint = "see why above; then the same command does only what is missing"};
}

std::string TaskLog(Verb verb, uint64_t index) {
  return "logs/" + std::string(VerbName(verb)) + "-" + std::to_string(index) + ".log";
}

std::vector<std::string> LastLines(const std::string& path, size_t lines) {
  const Result<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return {};
  const uint64_t size = file.value().size();
  const uint64_t begin = size > kTailBytes ? size - kTailBytes : 0;
  std::string tail;
  if (!file.value().ReadAt(begin, kTailBytes, tail).ok()) return {};
  std::vector<std::string> all;
  for (std::string_view rest = tail; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.empty()) all.emplace_back(line);
  }
  if (all.size() > lines) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(lines));
  return all;
}

}  // namespace culprit::scale
