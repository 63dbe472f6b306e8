// SPDX-License-Identifier: Apache-2.0
#include "synth/users.h"

#include <algorithm>

#include "synth/strikes.h"

namespace culprit::synth {
namespace {

// An instance that might not end before the trace does is not begun.
constexpr int64_t kMarginNs = 1'600'000'000;
constexpr int64_t kNever = 3'600'000'000'000;

constexpr std::initializer_list<Plant> kBrowserStrikes = {kFileTableLock, kGlyphHotLoop};
constexpr std::initializer_list<Plant> kExplorerStrikes = {kGraphicsHardFault, kDiskProtection,
                                                           kDirectDiskRead};

// By program, as in World's plants().wait_for_input.
WorldStack InputStack(const Computer& computer, size_t program) {
  return computer.world().plants().wait_for_input.stacks[program];
}

int64_t ThinkTime(Machine& machine, int64_t mean_ns) {
  const int64_t think_ns = mean_ns / 8 + machine.random().Exponential(mean_ns - mean_ns / 8);
  return machine.now_ns() + think_ns + kMarginNs > machine.end_ns() ? kNever : think_ns;
}

}  // namespace

UiRole::UiRole(Computer& computer, Program program, int64_t think_ns)
    : computer_(computer), program_(program), think_ns_(think_ns) {
  uint64_t sum = 0;
  const auto add = [&](size_t scenario, uint64_t weight) {
    scenarios_.push_back(scenario);
    cumulative_.push_back(sum += weight);
  };
  if (program == Program::kGenerated) {
    for (size_t i = 0; i < computer.preset().generated_scenarios; ++i) {
      add(kNamedScenarios + i, 1'000'000 / (i + 1));
    }
    return;
  }
  const UiProcess process =
      program == Program::kBrowser ? UiProcess::kBrowser : UiProcess::kExplorer;
  for (size_t i = 0; i < NamedScenarios().size(); ++i) {
    const ScenarioSpec& row = NamedScenarios()[i];
    if (row.process == process) add(i, row.weight);
  }
}

Plant UiRole::ChoosePlant(Machine& machine) {
  if (program_ == Program::kGenerated) return kOrdinary;
  // Strikes are mixed with ordinary instances but must not run out of time.
  const int64_t late_ns = machine.end_ns() - computer_.preset().dur_ns * 7 / 10;
  if (machine.now_ns() < late_ns && machine.random().Percent(55)) return kOrdinary;
  if (program_ == Program::kBrowser) return computer_.NextStrike(kBrowserStrikes);
  return computer_.NextStrike(kExplorerStrikes);
}

size_t UiRole::ChooseScenario(Random& random) const {
  const uint64_t point = random.Below(cumulative_.back());
  const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end(), point);
  return scenarios_[static_cast<size_t>(at - cumulative_.begin())];
}

void UiRole::Continue(Machine& machine, ThreadIndex, std::vector<Op>& script) {
  Composer composer(script);
  int64_t mean_ns = think_ns_;
  const bool strikes_left =
      (program_ == Program::kBrowser && computer_.StrikesLeft(kBrowserStrikes)) ||
      (program_ == Program::kExplorer && computer_.StrikesLeft(kExplorerStrikes));
  if (strikes_left) mean_ns = std::min<int64_t>(mean_ns, computer_.preset().dur_ns / 16);
  const int64_t think_ns = ThinkTime(machine, mean_ns);
  const size_t program =
      program_ == Program::kBrowser ? 1 : (program_ == Program::kExplorer ? 2 : 0);
  composer.WaitInput({InputStack(computer_, program), think_ns});
  if (think_ns == kNever) return;
  const Plant plant = ChoosePlant(machine);
  size_t scenario = ChooseScenario(machine.random());
  if (plant != kOrdinary) scenario = ScenarioOf(plant);
  composer.MarkBegin(computer_.Scenario(machine, scenario));
  WriteInstance(computer_, scenario, plant, machine.random(), composer);
  composer.MarkEnd();
}

void AppRole::Continue(Machine& machine, ThreadIndex, std::vector<Op>& script) {
  Composer composer(script);
  Random& random = machine.random();
  if (!started_) {
    started_ = true;
    instances_left_ = random.Between(0, 2);
    composer.MarkBegin(computer_.Scenario(machine, kAppStartup));
    WriteInstance(computer_, kAppStartup, strikes_ ? kShortPathName : kOrdinary, random, composer);
    composer.MarkEnd();
    return;
  }
  if (instances_left_-- <= 0) {
    composer.Exit(computer_.world().ScenarioCode(kAppStartup).start.Pick(random));
    return;
  }
  const int64_t think_ns = ThinkTime(machine, computer_.preset().think_ns / 2);
  composer.WaitInput({InputStack(computer_, 0), think_ns});
  if (think_ns == kNever) return;
  const size_t scenario = random.Percent(70) ? kAppAccessControl : kAppNonResponsive;
  composer.MarkBegin(computer_.Scenario(machine, scenario));
  WriteInstance(computer_, scenario, kOrdinary, random, composer);
  composer.MarkEnd();
}

void LauncherRole::Work(Machine& machine, Composer& script) {
  script.Compute({code_.compute.Pick(machine.random()), machine.random().HeavyTailed(300'000)});
  if (machine.now_ns() + 2 * kMarginNs < machine.end_ns()) script.Spawn();
}

ThreadIndex LauncherRole::Spawn(Machine& machine) {
  auto role = std::make_unique<AppRole>(computer_, computer_.TakeStrike(kShortPathName));
  const ThreadIndex thread = machine.StartThread({.process = machine.AddProcess("App", true),
                                                  .name = "Main",
                                                  .kind = trace::ThreadKind::kUser,
                                                  .priority = Priority::kForeground,
                                                  .role = role.get()});
  computer_.Keep(std::move(role));
  return thread;
}

}  // namespace culprit::synth
