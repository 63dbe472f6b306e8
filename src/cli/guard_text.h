// SPDX-License-Identifier: Apache-2.0
//
// What the guard commands print: slow units as they come, the summary of a
// session, a profile. Text for people; JSON comes from guard/unit_report.h and
// guard_json.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cli/command.h"
#include "cli/own_cost.h"
#include "guard/collector.h"
#include "guard/plan_builder.h"
#include "guard/profile.h"
#include "guard/unit_report.h"

namespace culprit::cli {

// A few lines, each ended.
std::string GuardReportText(const guard::UnitReport& report, bool color);

// What a session of guards amounted to.
struct GuardSummary {
  guard::SessionTotals totals;
  guard::PlanFacts plan;
  uint64_t budget_ppm = 0;
  OwnCostShare own_cost;
  uint64_t dur_ns = 0;
  uint64_t looks_ppm = 0;  // what looking cost, of the program's CPU time
  uint64_t reports = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> by_type;  // reports, longest ns
};
std::string GuardSummaryText(const GuardSummary& summary, const Output& output);
// One line without its end; its "state", which every report has too, is "summary".
std::string GuardSummaryJson(const GuardSummary& summary);
// So few samples of a program tell nothing of what its guards take.
inline constexpr uint64_t kFewestCostSamples = 200;

struct ProfileView {
  size_t top = 20;  // rows a table
  uint64_t budget_ppm = 10'000;
};
std::string GuardProfileText(const guard::Profile& profile, const std::string& path,
                             const ProfileView& view, const Output& output);
std::string GuardProfileJson(const guard::Profile& profile, const ProfileView& view);

}  // namespace culprit::cli
