// SPDX-License-Identifier: Apache-2.0
#include "synth/machine.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "synth/composer.h"
#include "synth/memory_sink.h"

namespace culprit::synth::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

// Plays fixed ops, one per Continue, telling the test before each; sleeps to
// the end of the trace afterwards.
class ScriptedRole : public Role {
 public:
  explicit ScriptedRole(std::vector<Op> ops, std::function<void(size_t)> before = {})
      : ops_(std::move(ops)), before_(std::move(before)) {}
  void Continue(Machine& machine, ThreadIndex, std::vector<Op>& script) override {
    if (at_ == ops_.size()) {
      Composer(script).Sleep({kNoStack, machine.end_ns()});
      return;
    }
    if (before_) before_(at_);
    script.push_back(ops_[at_++]);
  }

 private:
  std::vector<Op> ops_;
  std::function<void(size_t)> before_;
  size_t at_ = 0;
};

std::vector<Op> Ops(const std::function<void(Composer&)>& write) {
  std::vector<Op> ops;
  Composer composer(ops);
  write(composer);
  return ops;
}

class MachineTest : public ::testing::Test {
 protected:
  Machine& Make(size_t cores, int64_t dur_ns = 1'000'000'000) {
    machine_.emplace(world_, sink_,
                     MachineOptions{.cores = cores, .begin_ns = 1000, .end_ns = 1000 + dur_ns},
                     Random(1));
    process_ = machine_->AddProcess("test");
    return *machine_;
  }
  ThreadIndex Add(std::vector<Op> ops, int64_t delay_ns, Priority priority = Priority::kNormal,
                  std::function<void(size_t)> before = {}) {
    roles_.emplace_back(std::move(ops), std::move(before));
    return machine_->AddThread({.process = process_,
                                .name = "thread",
                                .kind = trace::ThreadKind::kUser,
                                .priority = priority,
                                .role = &roles_.back()},
                               kNoStack, delay_ns);
  }
  std::vector<Event> Of(ThreadIndex thread, EventKind kind) const {
    std::vector<Event> events;
    for (const Event& event : sink_.trace.events) {
      if (event.kind == kind && event.thread.value == thread) events.push_back(event);
    }
    return events;
  }

  static const World world_;
  MemorySink sink_;
  std::deque<ScriptedRole> roles_;
  std::optional<Machine> machine_;
  uint32_t process_ = 0;
};
const World MachineTest::world_(1, 20);

constexpr int64_t kMs = 1'000'000;

TEST_F(MachineTest, LockGoesToOneThreadAtATimeInOrderOfArrival) {
  Machine& machine = Make(4);
  const uint32_t lock = machine.AddLock();
  int inside = 0;
  std::vector<int> order;
  for (int i = 0; i < 6; ++i) {
    Add(Ops([&](Composer& c) {
          c.Acquire(lock, kNoStack);
          c.Compute({kNoStack, 10 * kMs});
          c.Release(lock, kNoStack);
        }),
        (i + 1) * kMs, Priority::kNormal, [&, i](size_t step) {
          if (step == 1) {
            EXPECT_EQ(++inside, 1);
            order.push_back(i);
          } else if (step == 2) {
            --inside;
          }
        });
  }
  machine.Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST_F(MachineTest, LockWaitEndsWhenTheHolderReleases) {
  Machine& machine = Make(2);
  const uint32_t lock = machine.AddLock();
  const auto script = Ops([&](Composer& c) {
    c.Acquire(lock, world_.plants().av_mdu.stacks[0]);
    c.Compute({kNoStack, 20 * kMs});
    c.Release(lock, world_.plants().av_mdu_release.stacks[0]);
  });
  const ThreadIndex holder = Add(script, kMs);
  const ThreadIndex waiter = Add(script, 5 * kMs);
  machine.Run();
  const std::vector<Event> waits = Of(waiter, EventKind::kWait);
  ASSERT_EQ(waits.size(), 3u);  // before its start, the lock, the end
  EXPECT_EQ(waits[1].peer.value, holder);
  EXPECT_NEAR(static_cast<double>(waits[1].dur_ns), 16e6, 0.1e6);
  const std::vector<Event> unwaits = Of(holder, EventKind::kUnwait);
  ASSERT_EQ(unwaits.size(), 1u);
  EXPECT_EQ(unwaits[0].time_ns, waits[1].end_ns());
  EXPECT_EQ(unwaits[0].peer.value, waiter);
  EXPECT_TRUE(sink_.trace.dictionary.StackText(unwaits[0].stack).find("fs.sys!AcquireMDU") !=
              std::string::npos);
}

TEST_F(MachineTest, HigherPriorityPreemptsAtWakeUp) {
  Machine& machine = Make(1);
  const ThreadIndex low = Add(Ops([&](Composer& c) {
                                c.Compute({kNoStack, 50 * kMs});
                              }),
                              kMs, Priority::kLow);
  const ThreadIndex high = Add(Ops([&](Composer& c) {
                                 c.Compute({kNoStack, 5 * kMs});
                               }),
                               10 * kMs, Priority::kHigh);
  machine.Run();
  std::vector<Event> preempted;
  for (const Event& ready : Of(low, EventKind::kReady)) {
    if (ready.flags & trace::kPreempted) preempted.push_back(ready);
  }
  ASSERT_EQ(preempted.size(), 1u);
  EXPECT_EQ(preempted[0].peer.value, high);
  EXPECT_NEAR(static_cast<double>(preempted[0].dur_ns), 5e6, 0.1e6);
  EXPECT_EQ(Of(low, EventKind::kWait).size(), 2u) << "preemption is no wait";
}

TEST_F(MachineTest, EqualPrioritiesShareTheCoreBySlices) {
  Machine& machine = Make(1);
  const auto script = Ops([&](Composer& c) { c.Compute({kNoStack, 100 * kMs}); });
  const ThreadIndex a = Add(script, kMs);
  const ThreadIndex b = Add(script, kMs);
  machine.Run();
  for (ThreadIndex thread : {a, b}) {
    EXPECT_GE(Of(thread, EventKind::kReady).size(), 8u);
    int64_t running_ns = 0;
    for (const Event& event : Of(thread, EventKind::kRunning)) running_ns += event.dur_ns;
    EXPECT_NEAR(static_cast<double>(running_ns), 100e6, 0.1e6);
  }
}

TEST_F(MachineTest, DiskServesOneRequestAtATimeInOrder) {
  Machine& machine = Make(4);
  const uint32_t disk = machine.AddDisk("Disk0");
  std::vector<ThreadIndex> readers;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(Add(Ops([&](Composer& c) {
                            c.DiskRead({disk, kNoStack, 10 * kMs, 512});
                          }),
                          (i + 1) * kMs));
  }
  machine.Run();
  std::vector<Event> services;
  for (const Event& event : sink_.trace.events) {
    if (event.kind == EventKind::kHardware) services.push_back(event);
  }
  ASSERT_EQ(services.size(), 4u);
  for (size_t i = 0; i < services.size(); ++i) {
    EXPECT_EQ(services[i].peer.value, readers[i]);
    EXPECT_EQ(services[i].dur_ns, 10 * kMs);
    if (i > 0) {
      EXPECT_EQ(services[i].time_ns, services[i - 1].end_ns());
    }
    EXPECT_EQ(Of(readers[i], EventKind::kWait)[1].peer, services[i].thread);
  }
  EXPECT_EQ(machine.DiskBusyNs(disk), 40 * kMs);
}

TEST_F(MachineTest, PausedDiskHoldsRequestsBack) {
  Machine& machine = Make(2);
  const uint32_t disk = machine.AddDisk("Disk0");
  const ThreadIndex reader = Add(Ops([&](Composer& c) {
                                   c.PauseDisk(disk, 100 * kMs);
                                   c.DiskRead({disk, kNoStack, 10 * kMs, 512});
                                 }),
                                 kMs);
  machine.Run();
  EXPECT_NEAR(static_cast<double>(Of(reader, EventKind::kWait)[1].dur_ns), 110e6, 0.1e6);
  EXPECT_EQ(machine.DiskBusyNs(disk), 10 * kMs);
}

TEST_F(MachineTest, TimerThatIsDueGivesAWaitOfLengthZero) {
  Machine& machine = Make(1);
  const ThreadIndex thread = Add(Ops([&](Composer& c) { c.Sleep({kNoStack, 0}); }), kMs);
  machine.Run();
  const std::vector<Event> waits = Of(thread, EventKind::kWait);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(waits[1].dur_ns, 0);
  EXPECT_EQ(waits[1].flags, 0);
  EXPECT_TRUE(waits[1].peer.valid());
}

TEST_F(MachineTest, ExitedThreadLeavesItsIdToTheNext) {
  Machine& machine = Make(1);
  ScriptedRole child(Ops([](Composer& c) { c.Compute({kNoStack, kMs}); }));
  ThreadIndex second = kNoThread;
  const ThreadIndex first = Add(Ops([&](Composer& c) {
                                  c.Compute({kNoStack, kMs});
                                  c.Exit(kNoStack);
                                }),
                                kMs);
  Add(Ops([&](Composer& c) {
        c.Compute({kNoStack, kMs});
      }),
      10 * kMs, Priority::kNormal, [&](size_t) {
        second = machine.StartThread({.process = process_, .name = "next", .role = &child});
      });
  machine.Run();
  ASSERT_NE(second, kNoThread);
  const auto& threads = sink_.trace.dictionary.threads();
  EXPECT_EQ(threads[first].tid, threads[second].tid);
  EXPECT_LT(threads[first].end_ns, threads[second].start_ns);
}

TEST_F(MachineTest, OpenEndsAreMarkedAtTheEndOfTheTrace) {
  Machine& machine = Make(2, 100 * kMs);
  const uint32_t disk = machine.AddDisk("Disk0");
  const ThreadIndex reader = Add(Ops([&](Composer& c) {
                                   c.DiskRead({disk, kNoStack, 1000 * kMs, 512});
                                 }),
                                 kMs);
  const ThreadIndex caller = Add(Ops([&](Composer& c) {
                                   c.Syscall({63, 0, kNoStack, 1000 * kMs});
                                 }),
                                 kMs);
  machine.Run();
  const Event wait = Of(reader, EventKind::kWait).back();
  EXPECT_EQ(wait.flags, trace::kWakerUnknown);
  EXPECT_FALSE(wait.peer.valid());
  EXPECT_EQ(wait.end_ns(), machine.end_ns());
  const Event call = Of(caller, EventKind::kSyscall).back();
  EXPECT_EQ(call.flags, trace::kUnfinished);
  EXPECT_EQ(call.end_ns(), machine.end_ns());
  bool unfinished_service = false;
  for (const Event& event : sink_.trace.events) {
    unfinished_service |= event.kind == EventKind::kHardware && event.flags == trace::kUnfinished;
  }
  EXPECT_TRUE(unfinished_service);
}

}  // namespace
}  // namespace culprit::synth::TEST_FILE
