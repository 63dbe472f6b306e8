// SPDX-License-Identifier: Apache-2.0
#include "synth/strikes.h"

#include "base/check.h"
#include "synth/roles.h"
#include "synth/scenario.h"

namespace culprit::synth {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

void WriteStep(Computer& computer, const Code& code, int64_t compute_ns, Random& random,
               Composer& script) {
  script.Compute({code.compute.Pick(random), random.HeavyTailed(compute_ns)});
  const uint64_t choice = random.Below(100);
  if (choice < 30) {
    const uint32_t lock = computer.small_locks[random.Below(computer.small_locks.size())];
    script.Acquire(lock, code.lock_wait.Pick(random));
    script.Compute({code.compute.Pick(random), random.HeavyTailed(120'000)});
    script.Release(lock, code.lock_release.Pick(random));
  } else if (choice < 60) {
    script.Request({computer.service_queue, kSmallJob, code.request.Pick(random),
                    random.Exponential(60'000), code.request_wait.Pick(random)});
  } else if (choice < 78) {
    script.DiskRead({computer.disk, code.disk_read.Pick(random), DiskService(random), 65'536});
  }
}

// Generated scenarios differ in length and weight by their number.
ScenarioSpec SpecOf(size_t scenario) {
  if (scenario < kNamedScenarios) return NamedScenarios()[scenario];
  ScenarioSpec spec;
  spec.steps = 3 + static_cast<int64_t>(scenario % 9);
  spec.compute_ns = kNsPerMs + static_cast<int64_t>(scenario % 7) * kNsPerMs / 2;
  return spec;
}

void WriteOrdinary(Computer& computer, size_t scenario, Random& random, Composer& script) {
  const Code& code = computer.world().ScenarioCode(scenario);
  const ScenarioSpec spec = SpecOf(scenario);
  const int64_t steps = random.Between(spec.steps / 2 + 1, spec.steps + spec.steps / 2);
  for (int64_t i = 0; i < steps; ++i) {
    WriteStep(computer, code, spec.compute_ns, random, script);
  }
  const PlantStacks& stacks = computer.world().plants();
  if (scenario == kBrowserTabCreate) {
    script.Acquire(computer.file_table_lock, stacks.ui_file_table.Pick(random));
    script.Compute({code.compute.Pick(random), random.HeavyTailed(100'000)});
    script.Release(computer.file_table_lock, stacks.ui_file_table_release.Pick(random));
  } else if (scenario == kMenuDisplay) {
    script.Acquire(computer.device_lock, code.lock_wait.Pick(random));
    script.Compute({code.compute.Pick(random), random.HeavyTailed(200'000)});
    script.Release(computer.device_lock, stacks.menu_lock_release.Pick(random));
  }
  script.Compute({code.compute.Pick(random), random.HeavyTailed(spec.compute_ns)});
}

// 003 figure 1: the others are cued so that each queues up behind the one
// before it while the configuration manager's file is being read.
void StrikeFileTable(Computer& computer, Random& random, Composer& script) {
  const PlantStacks& stacks = computer.world().plants();
  const Code& code = computer.world().ScenarioCode(kBrowserTabCreate);
  script.Cue(computer.cm_queue, kStrikeJob, 0);
  script.Cue(computer.av_queue, kStrikeJob, 7 * kNsPerMs);
  script.Cue(computer.browser_queue_1, kStrikeJob, 14 * kNsPerMs);
  script.Cue(computer.browser_queue_0, kStrikeJob, 21 * kNsPerMs);
  for (int i = 0; i < 8; ++i) {
    script.Compute({code.compute.Pick(random), 3 * kNsPerMs + random.Exponential(kNsPerMs)});
  }
  script.Acquire(computer.file_table_lock, stacks.ui_restore_session.Pick(random), kFileTableLock);
  script.Compute({code.compute.Pick(random), random.HeavyTailed(300'000)});
  script.Release(computer.file_table_lock, stacks.ui_file_table_release.Pick(random));
}

void StrikeShortPathName(Computer& computer, Random& random, Composer& script) {
  const PlantStacks& stacks = computer.world().plants();
  const int64_t components = random.Between(4, 8);
  for (int64_t i = 0; i < components; ++i) {
    const size_t variant = random.Below(stacks.short_path_fault.stacks.size());
    script.Compute({stacks.short_path_compute.stacks[variant], random.HeavyTailed(400'000)});
    script.DiskRead({computer.disk, stacks.short_path_fault.stacks[variant],
                     random.Between(25 * kNsPerMs, 70 * kNsPerMs), 4'096, kShortPathName});
  }
}

void StrikeGlyph(Computer& computer, Random& random, Composer& script) {
  const PlantStacks& stacks = computer.world().plants();
  const int64_t paragraphs = random.Between(20, 50);
  for (int64_t i = 0; i < paragraphs; ++i) {
    script.Compute({stacks.find_glyph.Pick(random), 3 * kNsPerMs + random.Exponential(6 * kNsPerMs),
                    kGlyphHotLoop});
  }
}

void StrikeGraphics(Computer& computer, Random& random, Composer& script) {
  const PlantStacks& stacks = computer.world().plants();
  const Code& code = computer.world().ScenarioCode(kMenuDisplay);
  script.Cue(computer.compositor_queue, kStrikeJob, 0);
  for (int i = 0; i < 4; ++i) {
    script.Compute({code.compute.Pick(random), 2 * kNsPerMs + random.Exponential(kNsPerMs)});
  }
  script.Acquire(computer.device_lock, stacks.menu_lock.Pick(random), kGraphicsHardFault);
  script.Compute({code.compute.Pick(random), random.HeavyTailed(400'000)});
  script.Release(computer.device_lock, stacks.menu_lock_release.Pick(random));
}

// The accelerometer has seen a fall: by design nothing moves for a while.
void StrikeDiskProtection(Computer& computer, Random& random, Composer& script) {
  const PlantStacks& stacks = computer.world().plants();
  script.PauseDisk(computer.disk, random.Between(250 * kNsPerMs, 700 * kNsPerMs));
  script.DiskRead({computer.disk, stacks.hold_until_settled.Pick(random), DiskService(random),
                   65'536, kDiskProtection});
}

void StrikeDirectRead(Computer& computer, Random& random, Composer& script) {
  const PlantStacks& stacks = computer.world().plants();
  const int64_t reads = random.Between(2, 4);
  for (int64_t i = 0; i < reads; ++i) {
    script.DiskRead({computer.disk, stacks.read_direct.Pick(random),
                     random.Between(40 * kNsPerMs, 110 * kNsPerMs), 1'048'576, kDirectDiskRead});
    script.Compute(
        {computer.world().ScenarioCode(kExplorerOpenFolder).compute.Pick(random), kNsPerMs});
  }
}

}  // namespace

size_t ScenarioOf(Plant plant) {
  const std::string_view name = BehaviourOf(plant).scenario;
  for (size_t i = 0; i < NamedScenarios().size(); ++i) {
    if (NamedScenarios()[i].name == name) return i;
  }
  CULPRIT_CHECK(false);
}

void WriteInstance(Computer& computer, size_t scenario, Plant plant, Random& random,
                   Composer& script) {
  switch (plant) {
    case kFileTableLock:
      StrikeFileTable(computer, random, script);
      break;
    case kShortPathName:
      StrikeShortPathName(computer, random, script);
      break;
    case kGlyphHotLoop:
      StrikeGlyph(computer, random, script);
      break;
    case kGraphicsHardFault:
      StrikeGraphics(computer, random, script);
      break;
    case kDiskProtection:
      StrikeDiskProtection(computer, random, script);
      break;
    case kDirectDiskRead:
      StrikeDirectRead(computer, random, script);
      break;
    default:
      CULPRIT_CHECK(plant == kOrdinary);
  }
  WriteOrdinary(computer, scenario, random, script);
}

}  // namespace culprit::synth
