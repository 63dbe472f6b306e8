// SPDX-License-Identifier: Apache-2.0
#include "synth/chain_roles.h"

namespace culprit::synth {

void BrowserWorkerRole::Serve(Machine& machine, const Message& message, Composer& script) {
  Random& random = machine.random();
  const PlantStacks& stacks = computer_.world().plants();
  const bool strike = message.what == kStrikeJob;
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(120'000)});
  script.Acquire(computer_.file_table_lock, stacks.browser_file_table.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(strike ? 700'000 : 80'000)});
  if (wants_mdu_ && (strike || random.Percent(30))) {
    script.Acquire(computer_.mdu_lock, stacks.browser_mdu.Pick(random));
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(strike ? 900'000 : 60'000)});
    script.Release(computer_.mdu_lock, stacks.browser_mdu_release.Pick(random));
  }
  script.Release(computer_.file_table_lock, stacks.browser_file_table_release.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(150'000)});
}

void AntiVirusRole::Serve(Machine& machine, const Message& message, Composer& script) {
  Random& random = machine.random();
  const PlantStacks& stacks = computer_.world().plants();
  const bool strike = message.what == kStrikeJob;
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(200'000)});
  script.Acquire(computer_.mdu_lock, stacks.av_mdu.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(strike ? 1'500'000 : 70'000)});
  script.Release(computer_.mdu_lock, stacks.av_mdu_release.Pick(random));
  if (random.Percent(40)) {
    script.DiskRead({computer_.disk, code_.disk_read.Pick(random), DiskService(random), 32'768});
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(400'000)});
  }
}

void ConfigurationRole::Serve(Machine& machine, const Message& message, Composer& script) {
  Random& random = machine.random();
  const PlantStacks& stacks = computer_.world().plants();
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(100'000)});
  script.Acquire(computer_.mdu_lock, stacks.cm_mdu.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(60'000)});
  if (message.what == kStrikeJob) {
    const WorldStack wait = stacks.cm_wait_read.Pick(random);
    script.Request({computer_.system_queue, kReadDecryptJob, wait, 0, wait});
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(200'000)});
  }
  script.Release(computer_.mdu_lock, stacks.cm_mdu_release.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(90'000)});
}

void CompositorRole::Serve(Machine& machine, const Message& message, Composer& script) {
  Random& random = machine.random();
  const PlantStacks& stacks = computer_.world().plants();
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(150'000)});
  script.Acquire(computer_.device_lock, stacks.compositor_lock.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(200'000)});
  if (message.what == kStrikeJob) {
    const WorldStack fault = stacks.compositor_fault.Pick(random);
    script.Request({computer_.system_queue, kPageInJob, fault, 0, fault});
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(300'000)});
  }
  script.Release(computer_.device_lock, stacks.compositor_release.Pick(random));
}

void SystemWorkerRole::Read(Random& random, int64_t reads, int64_t decrypt_ns,
                            const StackPool& disk, const StackPool& decrypt, Composer& script) {
  for (int64_t i = 0; i < reads; ++i) {
    script.DiskRead(
        {computer_.disk, disk.Pick(random), random.Between(12'000'000, 30'000'000), 262'144});
    script.Compute({decrypt.Pick(random), decrypt_ns / 2 + random.Exponential(decrypt_ns / 2)});
  }
}

void SystemWorkerRole::Serve(Machine& machine, const Message& message, Composer& script) {
  Random& random = machine.random();
  const PlantStacks& stacks = computer_.world().plants();
  switch (message.what) {
    case kReadDecryptJob:
      Read(random, random.Between(7, 13), 9'000'000, stacks.system_read_disk, stacks.system_decrypt,
           script);
      script.Reply(message.sender, stacks.system_read_reply.Pick(random));
      return;
    case kPageInJob:
      Read(random, random.Between(6, 10), 3'000'000, stacks.system_page_disk,
           stacks.system_page_decrypt, script);
      script.Reply(message.sender, stacks.system_page_reply.Pick(random));
      return;
    default:
      script.Compute({code_.compute.Pick(random), random.HeavyTailed(60'000)});
      if (random.Percent(40)) {
        script.DiskRead(
            {computer_.disk, code_.disk_read.Pick(random), DiskService(random), 16'384});
      }
      script.Compute({code_.compute.Pick(random), random.HeavyTailed(40'000)});
      script.Reply(message.sender, code_.reply.Pick(random));
      return;
  }
}

}  // namespace culprit::synth
