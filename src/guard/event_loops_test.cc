// SPDX-License-Identifier: Apache-2.0
#include "guard/event_loops.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "guard/learn.h"
#include "guard/simulated_training.h"

namespace culprit::guard::TEST_FILE {
namespace {

constexpr uint64_t kPool = 0x5000;  // the condition that idle threads wait for

std::map<std::string, ProfileLoop> LoopsByHolder(const TestFolder& folder,
                                                 const SimulatedProcess& process) {
  LearnOptions options;
  options.names = false;
  Progress progress;
  Diagnostics diagnostics;
  const auto profile = Learn(folder.path(), options, progress, diagnostics);
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().ToString());
  std::map<std::string, ProfileLoop> loops;
  if (!profile.ok()) return loops;
  for (const ProfileLoop& loop : profile.value().loops) {
    EXPECT_LE(loop.sites.size(), 1U);
    const uint64_t offset = profile.value().functions.at(loop.holder).offset;
    std::string name = process.Names().at(offset / SimulatedProcess::kFunctionBytes - 1);
    if (loop.hand_over) name += " hands over";
    EXPECT_TRUE(loops.emplace(name, loop).second) << name;
  }
  return loops;
}

struct PoolLoad {
  int sessions = 40;
  int requests = 10;             // of a session
  bool loop_in_function = true;  // over requests: of its own
  bool same_source = false;      // what is read is always the same connection
  bool waits_within = true;      // in the midst of requests
};

// A thread of a pool that is given connections and serves the requests of each. In
// the midst of every third request it waits to be woken, too, and at another place
// once in every fourth session.
void ServeConnections(SimulatedThread& thread, uint64_t first_source, const PoolLoad& load) {
  const auto requests = [&](uint64_t source, bool rare) {
    for (int i = 0; i < load.requests; ++i) {
      thread.Call("next_request", 48, [&] {
        thread.Wait(wire::WaitCall::kPoll, 1);
        thread.Read(100, source);
      });
      thread.Call(i % 2 == 0 ? "select" : "update", 48, [&] {
        thread.Call("parse");
        if (load.waits_within && i % 3 == 0) {
          thread.Wait(wire::WaitCall::kCondition, 1, 2, kPool + 8);
        }
        if (load.waits_within && rare && i == 1)
          thread.Wait(wire::WaitCall::kCondition, 1, 3, kPool + 8);
      });
    }
  };
  thread.Call("thread_main", 64, [&] {
    for (int session = 0; session < load.sessions; ++session) {
      thread.Call("next_connection", 32,
                  [&] { thread.Wait(wire::WaitCall::kCondition, 1, 1, kPool); });
      const uint64_t source =
          first_source + (load.same_source ? 0 : static_cast<uint64_t>(session));
      if (load.loop_in_function) {
        thread.Call("serve", 64, [&] { requests(source, session % 4 == 0); });
      } else {
        requests(source, session % 4 == 0);
      }
      thread.Call("close_connection");
    }
  });
}

std::map<std::string, ProfileLoop> LearnPool(const PoolLoad& load) {
  const TestFolder folder;
  SimulatedProcess process(7);
  SimulatedThread acceptor(process, 7);
  acceptor.Call("main", 64, [&] {
    for (int i = 0; i < 2 * load.sessions; ++i) {
      acceptor.Wait(wire::WaitCall::kAccept, 1);
      acceptor.Call("give", 32, [&] {
        acceptor.Wake(wire::WakeCall::kConditionSignal, kPool);
        acceptor.Wake(wire::WakeCall::kConditionSignal, kPool + 8);
      });
    }
  });
  acceptor.Write(folder);
  for (uint32_t i = 0; i < 2; ++i) {
    SimulatedThread thread(process, 8 + i, 0x7f00'0000'0000 + i * 0x100'0000);
    ServeConnections(thread, 1000 * (i + 1), load);
    thread.Write(folder);
  }
  process.Write(folder);
  return LoopsByHolder(folder, process);
}

TEST(EventLoops, OfThreadsThatAreGivenConnectionsTheRequestsAreTheUnits) {
  const auto loops = LearnPool({});
  ASSERT_TRUE(loops.contains("serve"));
  EXPECT_TRUE(loops.at("serve").external);
  // The last request of a session ends where the loop is left.
  EXPECT_EQ(loops.at("serve").iterations, 2 * 40 * 9U);
  ASSERT_TRUE(loops.contains("thread_main hands over"));
  EXPECT_EQ(loops.at("thread_main hands over").iterations, 0U);
  EXPECT_FALSE(loops.contains("thread_main"));
  EXPECT_TRUE(loops.contains("main"));
}

TEST(EventLoops, TheSameWhereOneFunctionHasBothLoops) {
  const auto loops = LearnPool({.loop_in_function = false});
  ASSERT_TRUE(loops.contains("thread_main"));
  EXPECT_TRUE(loops.at("thread_main").external);
  EXPECT_EQ(loops.at("thread_main").sites.at(0).call, wire::WaitCall::kPoll);
  EXPECT_EQ(loops.at("thread_main").iterations, 2 * 40 * 9U);
  ASSERT_TRUE(loops.contains("thread_main hands over"));
  const ProfileLoop& hand_over = loops.at("thread_main hands over");
  EXPECT_EQ(hand_over.sites.at(0).call, wire::WaitCall::kCondition);
}

// Training that ends before any connection does.
TEST(EventLoops, AFunctionThatWaitsForNobodyWhileItServesParksIfItWaits) {
  PoolLoad load = {.sessions = 1, .requests = 100, .waits_within = false};
  for (const bool loop_in_function : {true, false}) {
    load.loop_in_function = loop_in_function;
    const std::string holder = loop_in_function ? "serve" : "thread_main";
    const auto loops = LearnPool(load);
    ASSERT_TRUE(loops.contains(holder));
    EXPECT_TRUE(loops.at(holder).parks);
  }
}

// A process that serves one connection has nobody who would give it another.
TEST(EventLoops, AProcessForEachConnectionDoesNotPark) {
  const TestFolder folder;
  const PoolLoad load = {.sessions = 1, .requests = 100, .waits_within = false};
  SimulatedProcess first(7), second(8);
  for (SimulatedProcess* process : {&first, &second}) {
    SimulatedThread thread(*process, process->pid());
    ServeConnections(thread, 1000 * process->pid(), load);
    thread.Write(folder);
    process->Write(folder);
  }
  const auto loops = LoopsByHolder(folder, first);
  ASSERT_TRUE(loops.contains("serve"));
  EXPECT_EQ(loops.at("serve").iterations, 2 * 99U);
  EXPECT_FALSE(loops.at("serve").parks);
}

TEST(EventLoops, AFunctionThatWaitsForOthersInItsRequestsDoesNotPark) {
  const auto loops = LearnPool({.sessions = 1, .requests = 100});
  ASSERT_TRUE(loops.contains("serve"));
  EXPECT_FALSE(loops.at("serve").parks);
}

// Also where training saw connections end: others may wait at another place.
TEST(EventLoops, AWaitThatHandsOverIsNoneOfARequest) {
  const auto loops = LearnPool({.loop_in_function = false, .waits_within = false});
  ASSERT_TRUE(loops.contains("thread_main"));
  EXPECT_TRUE(loops.at("thread_main").parks);
  ASSERT_TRUE(loops.contains("main"));
  EXPECT_FALSE(loops.at("main").parks) << "of a single thread, which gives the work";
}

TEST(EventLoops, AJobThatAsksItsDatabaseAgainAndAgainStaysOneUnit) {
  const auto loops = LearnPool({.same_source = true});
  ASSERT_TRUE(loops.contains("thread_main"));
  EXPECT_FALSE(loops.at("thread_main").external);
  EXPECT_EQ(loops.at("thread_main").iterations, 2 * 39U);
  EXPECT_FALSE(loops.contains("serve"));
}

TEST(EventLoops, SoDoesATurnOfAConnectionWithFewReads) {
  const auto loops = LearnPool({.requests = 2});
  ASSERT_TRUE(loops.contains("thread_main"));
  EXPECT_EQ(loops.at("thread_main").iterations, 2 * 39U);
  EXPECT_FALSE(loops.contains("serve"));
}

// A process for each connection; all of them wait in one function.
TEST(EventLoops, OneWaitCallHeadsTheLoopsOfAllWhoHoldIt) {
  const TestFolder folder;
  SimulatedProcess process(1);
  for (uint32_t tid = 1; tid <= 3; ++tid) {
    SimulatedThread thread(process, tid, 0x7f00'0000'0000 + tid * 0x100'0000);
    const auto wait = [&] {
      thread.Call("wait_event", 64, [&] { thread.Wait(wire::WaitCall::kEpoll, 1); });
    };
    if (tid < 3) {
      // Not yet in the loop, and with less on the stack.
      thread.Call("backend", 32, [&] {
        thread.Call("read_startup_packet", 32, wait);
        thread.Call("serve_client", 128, [&] {
          for (int i = 0; i < 40; ++i) {
            thread.Call("read_command", 96, wait);
            thread.Call("execute", 64, [&] {
              thread.Call("plan");
              if (i % 4 == 0) thread.Call("lock", 64, wait);
            });
          }
        });
      });
    } else {
      thread.Call("log_writer", 160, [&] {
        for (int i = 0; i < 30; ++i) {
          wait();
          thread.Call("flush_log");
        }
      });
    }
    thread.Write(folder);
  }
  process.Write(folder);
  const auto loops = LoopsByHolder(folder, process);
  ASSERT_TRUE(loops.contains("serve_client"));
  EXPECT_EQ(loops.at("serve_client").iterations, 2 * 39U);
  ASSERT_TRUE(loops.contains("log_writer"));
  EXPECT_EQ(loops.at("log_writer").iterations, 29U);
  EXPECT_EQ(loops.size(), 2U);
}

// A worker that is woken finds the queue empty, because another one was quicker, and waits again.
TEST(EventLoops, AWaitInVainIsNoLoopOfItsOwn) {
  const TestFolder folder;
  SimulatedProcess process(7);
  for (uint32_t n = 0; n < 2; ++n) {
    SimulatedThread worker(process, 7 + n, 0x7f00'0000'0000 + n * 0x100'0000);
    worker.Call("worker_main", 64, [&] {
      for (int i = 0; i < 60; ++i) {
        worker.Call("pop_job", 48, [&] {
          worker.Wait(wire::WaitCall::kCondition, 1, 1, kPool);
          if (i % 2 == 0) worker.Wait(wire::WaitCall::kCondition, 1, 1, kPool);
        });
        worker.Call("job", 48, [&] { worker.Wake(wire::WakeCall::kConditionSignal, kPool); });
      }
    });
    worker.Write(folder);
  }
  process.Write(folder);
  const auto loops = LoopsByHolder(folder, process);
  ASSERT_EQ(loops.size(), 1U);
  ASSERT_TRUE(loops.contains("worker_main"));
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
