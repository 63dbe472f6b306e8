// SPDX-License-Identifier: Apache-2.0
#include "synth/server.h"

#include "synth/scenario.h"

namespace culprit::synth {
namespace {

constexpr int64_t kTryAgain = -11;  // -EAGAIN

uint32_t Number(HttpCallIndex call) { return HttpCalls()[call].number; }

}  // namespace

void HttpListenerRole::BeforeTake(Machine& machine, Composer& script) {
  script.SyscallBegin(Number(kEpollWait), code_.take.Pick(machine.random()));
}

void HttpListenerRole::AfterTake(Machine&, Composer& script) { script.SyscallEnd(1); }

void HttpListenerRole::Serve(Machine& machine, const Message&, Composer& script) {
  Random& random = machine.random();
  script.Syscall({Number(kAccept4), random.Between(12, 900), code_.compute.Pick(random),
                  6'000 + random.Exponential(6'000)});
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(12'000)});
  script.Post(computer_.http_queue, kSmallJob, code_.request.Pick(random));
}

void HttpWorkerRole::Retry(Random& random, Composer& script) {
  const WorldStack stack = computer_.world().plants().accept_retry.Pick(random);
  const int64_t calls = random.Between(2'500, 5'500);
  for (int64_t i = 0; i < calls; ++i) {
    script.Syscall(
        {Number(kAccept), kTryAgain, stack, 2'500 + random.Exponential(2'500), kAcceptRetryLoop});
    script.Compute({stack, 300 + random.Exponential(500)});
  }
}

void HttpWorkerRole::Serve(Machine& machine, const Message&, Composer& script) {
  Random& random = machine.random();
  const World& world = computer_.world();
  const auto call = [&](HttpCallIndex index, int64_t result, int64_t mean_ns) {
    script.Syscall({Number(index), result, world.HttpCall(index).Pick(random),
                    1'500 + random.Exponential(mean_ns)});
  };
  script.MarkBegin(computer_.Scenario(machine, kHttpRequest));
  call(kRead, random.Between(180, 900), 9'000);
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(180'000)});
  const bool near_end = machine.now_ns() + 300'000'000 > machine.end_ns();
  if (!near_end && computer_.TakeStrike(kAcceptRetryLoop)) Retry(random, script);
  call(kOpenat, random.Between(12, 900), 14'000);
  call(kFstat, 0, 3'000);
  if (random.Percent(12)) {
    script.SyscallBegin(Number(kRead), world.HttpCall(kRead).Pick(random));
    script.DiskRead({computer_.disk, code_.disk_read.Pick(random), DiskService(random), 16'384});
    script.SyscallEnd(16'384);
  } else {
    call(kRead, 16'384, 11'000);
  }
  const int64_t steps = random.Between(1, 4);
  for (int64_t i = 0; i < steps; ++i) {
    script.Compute({code_.compute.Pick(random), random.HeavyTailed(150'000)});
  }
  const uint32_t lock = computer_.small_locks[0];
  script.Acquire(lock, code_.lock_wait.Pick(random));
  script.Compute({code_.compute.Pick(random), random.HeavyTailed(15'000)});
  script.Release(lock, code_.lock_release.Pick(random));
  call(kWritev, random.Between(900, 60'000), 25'000);
  call(kClose, 0, 3'000);
  script.MarkEnd();
}

}  // namespace culprit::synth
