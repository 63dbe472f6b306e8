// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_costs.h"

#include <chrono>

#include "base/text.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kAskNs = 30'000'000'000;
constexpr uint64_t kTellNs = 3'600'000'000'000;

std::string Share(uint64_t ppm) { return FormatShare(static_cast<int64_t>(ppm), 1'000'000); }

}  // namespace

WatchCosts::WatchCosts(const WatchSettings& settings, uint64_t guards_ppm,
                       const WatchRecorder* recorder, uint64_t now_ns)
    : settings_(settings),
      guards_ppm_(guards_ppm),
      recorder_(recorder),
      ask_ns_(now_ns + kAskNs),
      tell_ns_(ask_ns_) {}

void WatchCosts::Take(const Result<uint64_t>& answer) {
  if (answer.ok()) recorder_ppm_ = answer.value();
}

std::string WatchCosts::Poll(uint64_t now_ns, uint64_t looks_ppm) {
  if (answer_.valid()) {
    if (answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
    Take(answer_.get());
  } else {
    if (now_ns < ask_ns_) return {};
    ask_ns_ = now_ns + kAskNs;
    if (recorder_ != nullptr) {
      answer_ = std::async(std::launch::async, [this] { return recorder_->CostPpm(); });
      return {};
    }
  }
  if (now_ns < tell_ns_) return {};
  tell_ns_ = now_ns + kTellNs;
  return Line(looks_ppm);
}

std::string WatchCosts::Last(uint64_t looks_ppm) {
  if (answer_.valid()) Take(answer_.get());
  if (recorder_ != nullptr) Take(recorder_->CostPpm());
  return Line(looks_ppm);
}

std::string WatchCosts::Line(uint64_t looks_ppm) const {
  std::string line = "watching costs: guards " + Share(guards_ppm_) +
                     " (expected), looks at them " + Share(looks_ppm);
  if (recorder_ != nullptr) {
    line += ", recorder " + (recorder_ppm_ ? Share(*recorder_ppm_) : "unknown");
  }
  return line + "; budget " + Share(settings_.budget_ppm) + " of the program's CPU time";
}

}  // namespace culprit::cli
