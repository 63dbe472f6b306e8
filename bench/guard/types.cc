// SPDX-License-Identifier: Apache-2.0
//
// How well guards tell the types of units on a load that training did not see,
// against the full call trees of that load (types.sh has the servers and loads).
//
//   guard_types trace FOLDER SECONDS -- COMMAND...   full tracing; the logs stay
//   guard_types learn FOLDER PROFILE                 a profile of these logs
//   guard_types judge PROFILE FOLDER [HITS]          its guards on other logs: all, those of
//                                                    so many hits a unit, or ("budget")
//                                                    those that a plan takes by default
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/progress.h"
#include "cli/guard_target.h"
#include "guard/learn.h"
#include "guard/plan_builder.h"
#include "guard/profile_file.h"
#include "guard/session_folder.h"
#include "guard/unseen_load.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kLogBytes = uint64_t{400} << 20;

int Fail(const Error& error) {
  std::fprintf(stderr, "guard_types: %s\n", error.ToString().c_str());
  return 1;
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

int Trace(const std::string& folder, int seconds, const std::vector<std::string>& command) {
  auto session = SessionFolder::Create({.needed_bytes = 0, .parent = folder});
  if (!session.ok()) return Fail(session.error());
  if (const Status status = session.value().WritePlan(1, TrainPlan({.log_bytes = kLogBytes}));
      !status.ok()) {
    return Fail(status.error());
  }
  if (const Status status = session.value().Want(1); !status.ok()) return Fail(status.error());
  auto target = cli::GuardTarget::Start(command, session.value());
  if (!target.ok()) return Fail(target.error());
  for (int round = 0; round < seconds * 10 && target.value().alive(); ++round) {
    session.value().Beat(GuardClockNs());
    cli::SleepMs(100);
  }
  target.value().End(SIGTERM);
  std::printf("%s\n", session.value().path().c_str());
  session.value().Keep();
  return 0;
}

int LearnFrom(const std::string& folder, const std::string& path) {
  Progress progress;
  Diagnostics diagnostics;
  auto profile = Learn(folder, {}, progress, diagnostics);
  if (!profile.ok()) return Fail(profile.error());
  ChooseTypesAndGuards(profile.value(), {});
  if (const Status status = WriteProfile(profile.value(), path, Overwrite::kAllow); !status.ok()) {
    return Fail(status.error());
  }
  const InferenceQuality& quality = profile.value().quality;
  PlanFacts facts;
  BuildPlan(profile.value(), wire::Mode::kGuard, {}, &facts);
  std::printf(
      "trained: %llu units, %zu shapes, %zu types, %zu guards (%zu in budget, %u contexts, %.2f "
      "hits "
      "a unit), told right %.2f %%, held out %.2f %%; entries by <function, depth> ambiguous "
      "%.2f %%, with callers %.2f %%\n",
      static_cast<unsigned long long>(quality.units), profile.value().shapes.size(),
      profile.value().types.size(), profile.value().guards.size(), facts.guards.numbers.size(),
      facts.context_bits, static_cast<double>(facts.guards.hits_per_mega_unit) / 1e6,
      Percent(quality.right, quality.units),
      Percent(quality.held_out_right, quality.held_out_units),
      Percent(quality.ambiguous_hits, quality.hits), Percent(quality.dropped_hits, quality.hits));
  for (const auto& [what, row] : diagnostics.rows()) {
    std::printf("  %s: %llu\n", what.c_str(), static_cast<unsigned long long>(row.count));
  }
  return 0;
}

AffordableGuards GuardsFor(const Profile& profile, const std::string& hits) {
  if (hits == "budget") {
    PlanFacts facts;
    BuildPlan(profile, wire::Mode::kGuard, {}, &facts);
    return facts.guards;
  }
  const double per_unit = hits.empty() ? 1e9 : std::min(std::atof(hits.c_str()), 1e9);
  return ChooseAffordable(profile,
                          {.max_hits_per_mega_unit = static_cast<uint64_t>(per_unit * 1e6)});
}

int JudgeOn(const std::string& path, const std::string& folder, const std::string& hits) {
  auto profile = ReadProfile(path);
  if (!profile.ok()) return Fail(profile.error());
  Diagnostics diagnostics;
  const AffordableGuards guards = GuardsFor(profile.value(), hits);
  const auto judged =
      JudgeUnseenLoad(profile.value(), GuardsOf(profile.value(), guards), folder, {}, diagnostics);
  if (!judged.ok()) return Fail(judged.error());
  const UnseenLoad& load = judged.value();
  const uint64_t typed = load.units - load.unlike;
  std::printf(
      "unseen: %llu units, %.2f %% like no type, %.2f %% of the others never seen as they "
      "are, told right %.2f %% by %.2f hits a unit\n",
      static_cast<unsigned long long>(load.units), Percent(load.unlike, load.units),
      Percent(load.changed, typed), Percent(load.right, typed),
      static_cast<double>(guards.hits_per_mega_unit) / 1e6);
  for (size_t i = 0; i < load.confusions.size() && i < 5; ++i) {
    const UnseenLoad::Confusion& row = load.confusions[i];
    std::printf("  %llu of %s taken for %s\n", static_cast<unsigned long long>(row.units),
                profile.value().types[row.type].name.c_str(),
                profile.value().types[row.taken_for].name.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace culprit::guard

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() > 4 && words[0] == "trace" && words[3] == "--") {
    return culprit::guard::Trace(words[1], std::atoi(words[2].c_str()),
                                 {words.begin() + 4, words.end()});
  }
  if (words.size() == 3 && words[0] == "learn") {
    return culprit::guard::LearnFrom(words[1], words[2]);
  }
  if ((words.size() == 3 || words.size() == 4) && words[0] == "judge") {
    return culprit::guard::JudgeOn(words[1], words[2], words.size() == 4 ? words[3] : "");
  }
  std::fprintf(stderr,
               "guard_types trace FOLDER SECONDS -- COMMAND... | learn FOLDER PROFILE | "
               "judge PROFILE FOLDER [HITS|budget]\n");
  return 2;
}
