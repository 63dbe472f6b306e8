// SPDX-License-Identifier: Apache-2.0
#include "synth/computer.h"

#include <algorithm>
#include <string>

#include "synth/chain_roles.h"
#include "synth/roles.h"
#include "synth/scenario.h"
#include "synth/server.h"
#include "synth/users.h"

namespace culprit::synth {

Computer::Computer(const World& world, const Preset& preset, const PlantSet& plants,
                   uint64_t trace_index, Machine& machine)
    : world_(world), preset_(preset) {
  PlanStrikes(plants, trace_index, machine.random());
  AddObjects(machine);
  AddServices(machine);
  AddPipelines(machine);
  if (preset.desktop) AddDesktop(machine);
  if (preset.server) AddServer(machine);
}

// The first trace shows everything, however few are asked for.
void Computer::PlanStrikes(const PlantSet& plants, uint64_t trace_index, Random& random) {
  for (uint8_t plant = 1; plant < kPlantCount; ++plant) {
    const bool drawn = random.Percent(preset_.strike_percent);
    const uint64_t count = 1 + random.Below(preset_.max_strikes);
    if (!plants[plant] || BehaviourOf(static_cast<Plant>(plant)).scenario.empty()) continue;
    const bool possible = plant == kAcceptRetryLoop ? preset_.server : preset_.desktop;
    if (!possible) continue;
    strikes_[plant] = trace_index == 0 ? 1 : (drawn ? count : 0);
  }
}

bool Computer::TakeStrike(Plant plant) {
  if (strikes_[plant] == 0) return false;
  --strikes_[plant];
  return true;
}

Plant Computer::NextStrike(std::initializer_list<Plant> plants) {
  for (Plant plant : plants) {
    if (TakeStrike(plant)) return plant;
  }
  return kOrdinary;
}

bool Computer::StrikesLeft(std::initializer_list<Plant> plants) const {
  return std::any_of(plants.begin(), plants.end(),
                     [&](Plant plant) { return strikes_[plant] > 0; });
}

uint32_t Computer::Scenario(Machine& machine, size_t number) {
  if (scenario_ids_.size() <= number) scenario_ids_.resize(number + 1, UINT32_MAX);
  uint32_t& id = scenario_ids_[number];
  if (id == UINT32_MAX) {
    id = machine.AddScenario(number < kNamedScenarios
                                 ? std::string(NamedScenarios()[number].name)
                                 : GeneratedScenarioName(number - kNamedScenarios));
  }
  return id;
}

void Computer::AddRole(Machine& machine, uint32_t process, std::string_view name, Priority priority,
                       Kind kind, Role& role) {
  const bool kernel = kind == Kind::kSystemWorker;
  const WorldStack start = world_.code(kind).start.Pick(machine.random());
  const int64_t delay_ns = machine.random().Between(1, 30'000'000);
  machine.AddThread({.process = process,
                     .name = name,
                     .kind = kernel ? trace::ThreadKind::kKernel : trace::ThreadKind::kUser,
                     .priority = priority,
                     .role = &role},
                    start, delay_ns);
}

void Computer::AddObjects(Machine& machine) {
  disk = machine.AddDisk("Disk0");
  file_table_lock = machine.AddLock();
  mdu_lock = machine.AddLock();
  device_lock = machine.AddLock();
  for (uint32_t& lock : small_locks) lock = machine.AddLock();
  for (uint32_t* queue : {&service_queue, &system_queue, &browser_queue_0, &browser_queue_1,
                          &av_queue, &cm_queue, &compositor_queue, &listener_queue, &http_queue}) {
    *queue = machine.AddQueue();
  }
}

void Computer::AddServices(Machine& machine) {
  const uint32_t system = machine.AddProcess("System");
  for (int i = 0; i < 3; ++i) {
    Add<SystemWorkerRole>(machine, system, "Worker", Priority::kHigh, Kind::kSystemWorker,
                          system_queue);
  }
  const uint32_t services = machine.AddProcess("svchost");
  for (int i = 0; i < 3; ++i) {
    Add<ServiceRole>(machine, services, "ServiceWorker", Priority::kNormal, Kind::kService,
                     service_queue, Kind::kService);
  }
  for (size_t i = 0; i < preset_.housekeepers; ++i) {
    Add<HousekeepingRole>(machine, services, "Housekeeping", Priority::kLow, Kind::kService,
                          Kind::kService, 40'000'000 + 35'000'000 * static_cast<int64_t>(i));
  }
}

void Computer::AddPipelines(Machine& machine) {
  constexpr Kind kStages[] = {Kind::kStageA, Kind::kStageB, Kind::kStageC, Kind::kStageD};
  constexpr size_t kLength = std::size(kStages);
  for (size_t i = 0; i < preset_.pipelines; ++i) {
    const uint32_t process = machine.AddProcess("Pipeline" + std::to_string(i));
    const uint32_t lock = machine.AddLock();
    std::array<uint32_t, kLength> queues;
    for (uint32_t& queue : queues) queue = machine.AddQueue();
    Add<SourceRole>(machine, process, "Source", Priority::kNormal, Kind::kStageA, Kind::kStageA,
                    preset_.pipeline_interval_ns, queues[0], int64_t{30'000});
    for (size_t stage = 0; stage < kLength; ++stage) {
      const Kind kind = kStages[(i + stage) % kLength];
      const uint32_t next = stage + 1 < kLength ? queues[stage + 1] : kNoQueue;
      Add<StageRole>(machine, process, "Stage", stage == 0 ? Priority::kNormal : Priority::kLow,
                     kind, queues[stage], kind, next, lock);
    }
  }
}

void Computer::AddDesktop(Machine& machine) {
  const uint32_t browser = machine.AddProcess("Browser");
  const uint32_t explorer = machine.AddProcess("Explorer");
  const bool generated = preset_.generated_scenarios > 0;
  const int64_t think_ns = generated ? preset_.dur_ns : preset_.think_ns;
  using Program = UiRole::Program;
  Add<UiRole>(machine, browser, "UI", Priority::kForeground, Kind::kBrowserWorker,
              Program::kBrowser, think_ns);
  Add<BrowserWorkerRole>(machine, browser, "W0", Priority::kForeground, Kind::kBrowserWorker,
                         browser_queue_0, false);
  Add<BrowserWorkerRole>(machine, browser, "W1", Priority::kForeground, Kind::kBrowserWorker,
                         browser_queue_1, true);
  Add<UiRole>(machine, explorer, "UI", Priority::kForeground, Kind::kExplorerWorker,
              Program::kExplorer, think_ns);
  if (generated) {
    const uint32_t office = machine.AddProcess("Office");
    for (int i = 0; i < 3; ++i) {
      Add<UiRole>(machine, office, "UI", Priority::kForeground, Kind::kStageB, Program::kGenerated,
                  preset_.think_ns);
    }
  }
  Add<LauncherRole>(machine, explorer, "Launcher", Priority::kNormal, Kind::kLauncher,
                    Kind::kLauncher, preset_.launch_interval_ns);
  Add<AntiVirusRole>(machine, machine.AddProcess("AntiVirus"), "Worker", Priority::kForeground,
                     Kind::kAntiVirus, av_queue);
  Add<ConfigurationRole>(machine, machine.AddProcess("ConfigurationManager"), "Worker",
                         Priority::kForeground, Kind::kConfiguration, cm_queue);
  Add<CompositorRole>(machine, machine.AddProcess("dwm"), "Compose", Priority::kForeground,
                      Kind::kCompositor, compositor_queue);
  Add<SchedulerRole>(machine, machine.AddProcess("TaskScheduler"), "Scheduler", Priority::kNormal,
                     Kind::kScheduler, Kind::kScheduler, preset_.job_interval_ns);
}

void Computer::AddServer(Machine& machine) {
  const uint32_t httpd = machine.AddProcess("httpd");
  Add<HttpListenerRole>(machine, httpd, "listener", Priority::kForeground, Kind::kHttpListener,
                        listener_queue);
  for (int i = 0; i < 3; ++i) {
    Add<HttpWorkerRole>(machine, httpd, "worker", Priority::kNormal, Kind::kHttpWorker, http_queue);
  }
  Add<SourceRole>(machine, machine.AddProcess("netd"), "client", Priority::kNormal,
                  Kind::kHttpClient, Kind::kHttpClient, preset_.request_interval_ns, listener_queue,
                  int64_t{8'000});
}

}  // namespace culprit::synth
