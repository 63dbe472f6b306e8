// SPDX-License-Identifier: Apache-2.0
#include "record/recorder.h"

#include <utility>

#include "record/bpf_recorder.h"
#include "record/perf_recorder.h"

namespace culprit::record {

std::string_view Name(Tier tier) {
  switch (tier) {
    case Tier::kBpf:
      return "bpf";
    case Tier::kPerfSystem:
      return "perf";
    case Tier::kPerfOwn:
      return "perf-own";
  }
  return "";
}

std::string_view Blindness(Tier tier) {
  switch (tier) {
    case Tier::kBpf:
      return "";
    case Tier::kPerfSystem:
      return "the budget is not kept; all threads are recorded, whoever was asked for";
    case Tier::kPerfOwn:
      return "only your own processes; not who woke a thread, nor disks, nor interrupts";
  }
  return "";
}

namespace {

// Why the better ways were not open, for who would like them to be.
Error Combine(const std::vector<std::pair<Tier, Error>>& failures) {
  Error all = failures.back().second;
  std::string reasons;
  for (const auto& [tier, error] : failures) {
    reasons += (reasons.empty() ? "" : "; ") + std::string(Name(tier)) + ": " + error.message;
  }
  all.message = "cannot record (" + reasons + ")";
  all.hint = failures.front().second.hint.empty() ? all.hint : failures.front().second.hint;
  return all;
}

// Failures of the caller's own making; another tier would meet them too.
bool IsFinal(const Error& error) { return !error.file.empty(); }

}  // namespace

Result<RecordOutcome> Record(const RecordOptions& options, const RecordListener& listener) {
  std::vector<Tier> tiers = {Tier::kBpf, Tier::kPerfSystem, Tier::kPerfOwn};
  // Nothing else can do that.
  if (!options.probes.empty() || options.functions) tiers = {Tier::kBpf};
  if (options.tier) tiers = {*options.tier};
  std::vector<std::pair<Tier, Error>> failures;
  for (const Tier tier : tiers) {
    if (tier == Tier::kBpf) {
      BpfRecorder recorder(options, listener);
      const Status status = recorder.Prepare();
      if (status.ok()) return recorder.Run();
      failures.emplace_back(tier, status.error());
    } else {
      PerfRecorder recorder(options, listener, tier);
      const Status status = recorder.Prepare();
      if (status.ok()) {
        listener.note("recording by " + std::string(Name(tier)) +
                      (failures.empty() ? "" : ", since " + failures.front().second.message));
        return recorder.Run();
      }
      failures.emplace_back(tier, status.error());
    }
    if (IsFinal(failures.back().second)) return failures.back().second;
  }
  return failures.size() == 1 ? failures.back().second : Combine(failures);
}

}  // namespace culprit::record
