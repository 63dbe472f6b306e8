// SPDX-License-Identifier: Apache-2.0
//
// Loops that look for work and wait only if there is none (event_loops.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/test_folder.h"
#include "guard/learned_profile.h"

namespace culprit::guard::TEST_FILE {
namespace {

// A worker that finds four of five jobs without a wait.
class BusyPool {
 public:
  static constexpr uint64_t kQueue = 0x5000;
  static constexpr int kRounds = 40;
  static constexpr int kJobsARound = 5;

  explicit BusyPool(const TestFolder& folder) {
    SimulatedThread listener(process_, process_.pid(), 0x7ffc'0000'0000);
    listener.Call("listen_loop", 64, [&] {
      for (int i = 0; i < 20; ++i) {
        listener.Wait(wire::WaitCall::kAccept, 1);
        listener.Wake(wire::WakeCall::kConditionSignal, kQueue);
      }
    });
    listener.Write(folder);
    SimulatedThread worker(process_, process_.pid() + 1, 0x7f00'0000'0000);
    worker.Call("worker_main", 64, [&] {
      for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < kJobsARound; ++i) OneJob(worker, i == 0);
      }
      // The last round ends with a wait.
      OneJob(worker, true);
    });
    worker.Write(folder);
    process_.Write(folder);
  }
  const SimulatedProcess& process() const { return process_; }

 private:
  void OneJob(SimulatedThread& worker, bool waits) {
    worker.Call("pop_job", 48, [&] {
      worker.Call("lock_queue");
      if (waits) worker.Wait(wire::WaitCall::kCondition, 1, 1, kQueue);
      worker.Call("unlock_queue");
    });
    const std::string kind = jobs_++ % 2 == 0 ? "a_" : "b_";
    worker.Call("command_" + kind, 48, [&] {
      for (int k = 0; k < 40; ++k) worker.Call(kind + std::to_string(k));
    });
  }

  SimulatedProcess process_{300};
  int jobs_ = 0;
};

const ProfileLoop* LoopHeldBy(const Profile& profile, const SimulatedProcess& process,
                              const std::string& name) {
  for (const ProfileLoop& loop : profile.loops) {
    if (NameOf(profile, process, loop.holder) == name) return &loop;
  }
  return nullptr;
}

TEST(Turns, ABusyWorkersUnitsEndWhereItLooksForTheNextJob) {
  const TestFolder folder;
  const BusyPool pool(folder);
  const Profile profile = MustLearn(folder).profile;
  const ProfileLoop* workers = LoopHeldBy(profile, pool.process(), "worker_main");
  ASSERT_NE(workers, nullptr);
  EXPECT_EQ(NamesOf(profile, pool.process(), workers->turns), (std::set<std::string>{"pop_job"}));
  EXPECT_EQ(workers->iterations, uint64_t{BusyPool::kRounds * BusyPool::kJobsARound});
  EXPECT_EQ(workers->ready_events, workers->iterations);
  EXPECT_GT(workers->train_ns, 0U);
  // One job each, and what leads to a wait is none: the two kinds of jobs, however begun.
  std::map<uint32_t, uint64_t> types;
  for (const UnitShape& shape : profile.shapes) {
    if (&profile.loops[shape.loop] != workers) continue;
    types[shape.type] += shape.total_units();
    uint32_t jobs = 0;
    for (const uint32_t place : shape.places) {
      const CallPath& path = profile.paths[profile.places[place].path];
      jobs += NameOf(profile, pool.process(), path.function).starts_with("command_") ? 1 : 0;
    }
    EXPECT_EQ(jobs, 1U);
  }
  ASSERT_EQ(types.size(), 2U);
  for (const auto& [type, units] : types) EXPECT_EQ(units, workers->iterations / 2);
  const auto pop = std::find_if(
      profile.guards.begin(), profile.guards.end(),
      [&](const Guard& guard) { return guard.function == workers->turns[0].function; });
  ASSERT_NE(pop, profile.guards.end());
  EXPECT_TRUE(pop->boundary);
  EXPECT_TRUE(pop->contexts.empty()) << "it tells nothing about the type";
  EXPECT_EQ(pop->hits_per_mega_unit, workers->iterations * 1'000'000 / profile.training.units);
}

// A thread for a connection: it takes what has arrived, and waits if nothing has. Of three
// requests two are there already.
constexpr int kRequestsOfConnection = 300;
Profile LearnAConnection(wire::WaitCall call, SimulatedProcess& process) {
  const TestFolder folder;
  SimulatedThread thread(process, 1);
  const auto serve_one = [&](int i) {
    thread.Call("serve_one", 96, [&] {
      thread.Call("try_to_read");
      if (i % 3 == 0) thread.Call("wait", 32, [&] { thread.Wait(call, 1); });
      thread.Call("command_" + std::to_string(i % 2), 48, [&] {
        for (int k = 0; k < 50; ++k) thread.Call("step_" + std::to_string(100 * (i % 2) + k));
      });
    });
  };
  thread.Call("connection", 64, [&] {
    for (int i = 0; i <= kRequestsOfConnection; ++i) serve_one(i);
  });
  process.Write(folder);
  thread.Write(folder);
  return MustLearn(folder).profile;
}

TEST(Turns, ABusyConnectionsUnitsEndWhereItTakesTheNextRequest) {
  SimulatedProcess process(1);
  const Profile profile = LearnAConnection(wire::WaitCall::kPoll, process);
  ASSERT_EQ(profile.loops.size(), 1U);
  const ProfileLoop& loop = profile.loops[0];
  EXPECT_EQ(NamesOf(profile, process, loop.turns), (std::set<std::string>{"serve_one"}));
  EXPECT_EQ(loop.iterations, uint64_t{kRequestsOfConnection});
  // How a unit began makes no difference.
  ASSERT_EQ(profile.shapes.size(), 2U);
  for (const UnitShape& shape : profile.shapes) {
    EXPECT_EQ(shape.total_units(), kRequestsOfConnection / 2U);
    EXPECT_EQ(shape.places.size(), 51U);
  }
  EXPECT_EQ(profile.types.size(), 2U);
  EXPECT_EQ(profile.quality.right, profile.quality.units);
}

TEST(Turns, LinesThatAreReadAtOnceAreOneUnit) {
  SimulatedProcess process(1);
  const Profile profile = LearnAConnection(wire::WaitCall::kRead, process);
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_TRUE(profile.loops[0].turns.empty());
  EXPECT_EQ(profile.loops[0].iterations, kRequestsOfConnection / 3U);
}

TEST(Turns, ALoopThatWaitsForOutsideOrInItsOwnFunctionHasNoTurns) {
  const TestFolder folder;
  const BusyPool pool(folder);
  const Profile profile = MustLearn(folder).profile;
  const ProfileLoop* listener = LoopHeldBy(profile, pool.process(), "listen_loop");
  ASSERT_NE(listener, nullptr);
  EXPECT_TRUE(listener->turns.empty());
  const TestFolder other;
  SimulatedProcess direct(400);
  for (uint32_t n = 0; n < 2; ++n) {
    SimulatedThread worker(direct, direct.pid() + n, 0x7f00'0000'0000 + n * 0x100'0000);
    worker.Call("worker_main", 64, [&] {
      for (int i = 0; i < 30; ++i) {
        worker.Wait(wire::WaitCall::kCondition, 1, 1, 0x5000);
        worker.Call("job", 32, [&] { worker.Wake(wire::WakeCall::kConditionSignal, 0x5000); });
      }
    });
    worker.Write(other);
  }
  direct.Write(other);
  const Profile of_direct = MustLearn(other).profile;
  const ProfileLoop* workers = LoopHeldBy(of_direct, direct, "worker_main");
  ASSERT_NE(workers, nullptr);
  EXPECT_TRUE(workers->turns.empty());
  EXPECT_EQ(workers->iterations, 2 * 29U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
