// SPDX-License-Identifier: Apache-2.0
#include "cli/live_flags.h"

#include <cmath>

#include "base/text.h"
#include "cli/share.h"

namespace culprit::cli {

Result<int64_t> ParsePid(const std::string& text) {
  const std::optional<uint64_t> pid = ParseUnsigned(text);
  if (!pid || *pid == 0 || *pid > INT32_MAX) {
    return Error{.message = "'" + text + "' is no process id"};
  }
  return static_cast<int64_t>(*pid);
}

Result<double> ReadBudget(const Arguments& arguments) {
  return ReadShare(arguments, "--budget", 1);
}

Result<uint64_t> ReadBudgetPpm(const Arguments& arguments) {
  CULPRIT_ASSIGN(const double share, ReadBudget(arguments));
  return static_cast<uint64_t>(std::llround(share * 1e6));
}

Result<record::RecordTarget> ReadTarget(const Arguments& arguments) {
  record::RecordTarget target;
  target.whole_system = arguments.Has("--system");
  for (const std::string& text : arguments.All("--pid")) {
    CULPRIT_ASSIGN(const int64_t pid, ParsePid(text));
    target.pids.push_back(pid);
  }
  target.names = arguments.All("--comm");
  target.cgroups = arguments.All("--cgroup");
  return target;
}

std::optional<record::Tier> ReadTier(const Arguments& arguments) {
  const std::string tier = arguments.Text("--tier");
  if (tier == "bpf") return record::Tier::kBpf;
  if (tier == "perf") return record::Tier::kPerfSystem;
  if (tier == "perf-own") return record::Tier::kPerfOwn;
  return std::nullopt;
}

}  // namespace culprit::cli
