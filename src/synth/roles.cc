// SPDX-License-Identifier: Apache-2.0
#include "synth/roles.h"

namespace culprit::synth {

int64_t DiskService(Random& random) { return 80'000 + random.HeavyTailed(1'400'000); }

void QueueRole::Continue(Machine& machine, ThreadIndex self, std::vector<Op>& script) {
  Composer composer(script);
  if (started_) {
    AfterTake(machine, composer);
    Serve(machine, machine.MessageOf(self), composer);
  }
  started_ = true;
  BeforeTake(machine, composer);
  composer.Take(queue_, code_.take.Pick(machine.random()));
}

void QueueRole::BeforeTake(Machine&, Composer&) {}

void QueueRole::AfterTake(Machine&, Composer&) {}

void TimerRole::Continue(Machine& machine, ThreadIndex, std::vector<Op>& script) {
  Composer composer(script);
  Work(machine, composer);
  Pause(machine, composer);
}

void TimerRole::Pause(Machine& machine, Composer& script) {
  Random& random = machine.random();
  // Some timers are already due when the thread asks for them.
  const int64_t dur_ns = random.Below(200) == 0 ? 0 : 1 + random.Exponential(interval_ns_);
  script.Sleep({code_.sleep.Pick(random), dur_ns});
}

void ServiceRole::Serve(Machine& machine, const Message& message, Composer& script) {
  Random& random = machine.random();
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(150'000)});
  if (random.Percent(35)) {
    const uint32_t lock = computer_.small_locks[random.Below(computer_.small_locks.size())];
    script.Acquire(lock, code_.lock_wait.Pick(random));
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(90'000)});
    script.Release(lock, code_.lock_release.Pick(random));
  }
  if (random.Percent(20)) {
    script.DiskRead({computer_.disk, code_.disk_read.Pick(random), DiskService(random), 65'536});
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(60'000)});
  }
  if (random.Percent(5)) {
    script.DiskWrite({computer_.disk, code_.disk_write.Pick(random), DiskService(random), 4'096});
  }
  script.Reply(message.sender, code_.reply.Pick(random));
}

void HousekeepingRole::Work(Machine& machine, Composer& script) {
  script.Compute(
      {code_.compute.Pick(machine.random()), 2'000 + machine.random().Exponential(9'000)});
}

void HousekeepingRole::Pause(Machine& machine, Composer& script) {
  Random& random = machine.random();
  script.Sleep({computer_.world().plants().housekeeping.Pick(random),
                interval_ns_ + random.Between(-1'000'000, 1'000'000), kHousekeeping});
}

void SchedulerRole::Work(Machine& machine, Composer& script) {
  Random& random = machine.random();
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(20'000)});
  const std::array<uint32_t, 8> queues = {computer_.service_queue,   computer_.service_queue,
                                          computer_.system_queue,    computer_.av_queue,
                                          computer_.cm_queue,        computer_.browser_queue_0,
                                          computer_.browser_queue_1, computer_.compositor_queue};
  const uint32_t queue = queues[random.Below(queues.size())];
  // A worker that is busy with something long gets no backlog of small jobs.
  if (machine.QueueLength(queue) < 2) script.Post(queue, kSmallJob, code_.request.Pick(random));
}

void SourceRole::Work(Machine& machine, Composer& script) {
  Random& random = machine.random();
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(median_ns_)});
  script.Post(queue_, kSmallJob, code_.request.Pick(random));
}

void StageRole::Serve(Machine& machine, const Message&, Composer& script) {
  Random& random = machine.random();
  script.Compute(
      {code_.compute.Pick(random), random.HeavyTailed(computer_.preset().stage_compute_ns)});
  if (random.Percent(30)) {
    script.Acquire(lock_, code_.lock_wait.Pick(random));
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(40'000)});
    script.Release(lock_, code_.lock_release.Pick(random));
  }
  if (random.Percent(1)) {
    script.DiskRead({computer_.disk, code_.disk_read.Pick(random), DiskService(random), 16'384});
  }
  if (next_ != kNoQueue) script.Post(next_, kSmallJob, code_.request.Pick(random));
}

}  // namespace culprit::synth
