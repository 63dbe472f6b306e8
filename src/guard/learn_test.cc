// SPDX-License-Identifier: Apache-2.0
#include "guard/learn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/test_folder.h"
#include "guard/learned_profile.h"
#include "guard/plan_builder.h"
#include "guard/profile_file.h"
#include "guard/simulated_server.h"

namespace culprit::guard::TEST_FILE {
namespace {

// The share of units whose type's most frequent command is their own, in percent.
double Purity(const Profile& profile, const SimulatedProcess& process, wire::UnitKind kind) {
  std::map<uint32_t, std::map<std::string, uint64_t>> commands;
  for (const UnitShape& shape : profile.shapes) {
    if (shape.kind != kind) continue;
    std::string label;
    for (const uint32_t place : shape.places) {
      const uint32_t path = profile.places[place].path;
      const std::string name = NameOf(profile, process, profile.paths[path].function);
      if (name.starts_with("command_") || name == "on_accept") label += name + " ";
    }
    commands[shape.type][label] += shape.total_units();
  }
  uint64_t units = 0;
  uint64_t pure = 0;
  for (const auto& [type, labels] : commands) {
    uint64_t most = 0;
    for (const auto& [label, count] : labels) {
      units += count;
      most = std::max(most, count);
    }
    pure += most;
  }
  return units == 0 ? 0 : 100.0 * static_cast<double>(pure) / static_cast<double>(units);
}

uint64_t UnitsOfKind(const Profile& profile, wire::UnitKind kind) {
  uint64_t units = 0;
  for (const UnitType& type : profile.types) units += type.kind == kind ? type.units : 0;
  return units;
}

// Serves a connection: waits for a request deep inside its calls and goes on from there; what is
// there already is read without waiting, and the loop turns.
void ServeAConnection(SimulatedThread& thread, uint32_t requests) {
  const auto execute = [&](uint32_t i) {
    thread.Call("execute", 48, [&] { thread.Call("command_" + std::to_string(i % 4)); });
  };
  thread.Call("connection", 64, [&] {
    for (uint32_t i = 0; i < requests; ++i) {
      thread.Call("serve_one", 96, [&] {
        thread.Call("receive", 32, [&] { thread.Wait(wire::WaitCall::kPoll, 1); });
        execute(i);
      });
      if (i % 7 == 0) {
        thread.Call("serve_one", 96, [&] {
          thread.Call("receive", 32, [&] { thread.Read(20); });
          execute(i / 7);
        });
      }
    }
  });
}

TEST(Learn, ALoopThatWaitsInsideItsCallsHasTheSamePathsWhenItTurnsWithoutWaiting) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  ServeAConnection(thread, 400);
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_EQ(NameOf(profile, process, profile.loops[0].holder), "connection");
  std::map<std::string, uint32_t> paths;
  for (const CallPath& path : profile.paths) ++paths[NameOf(profile, process, path.function)];
  for (const char* name :
       {"serve_one", "execute", "command_0", "command_1", "command_2", "command_3"}) {
    EXPECT_EQ(paths[name], 1U) << name;
  }
  EXPECT_EQ(profile.quality.ambiguous_hits, 0U);
  EXPECT_EQ(profile.quality.right, profile.quality.units);
}

// A process that changed its user cannot write into its first tables any more.
TEST(Learn, TablesThatAProcessWroteLaterAreTheRightOnes) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  ServeAConnection(thread, 400);
  process.Write(folder);
  thread.Write(folder);
  for (const char* file : {"/modules.100", "/functions.100"}) {
    const std::string path = folder.path() + file;
    std::filesystem::rename(path, path + wire::kLaterFile);
  }
  folder.Write("modules.100", "0 0 1000 abcdef /nowhere/bin/before\n");
  folder.Write("functions.100", "");
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_EQ(NameOf(profile, process, profile.loops[0].holder), "connection");
}

TEST(Learn, FindsLoopLevelsAndTypesOfASimulatedServer) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer server(thread, {});
  server.Run();
  process.Write(folder);
  thread.Write(folder);
  const auto [profile, diagnostics] = MustLearn(folder);
  EXPECT_TRUE(diagnostics.empty());
  ASSERT_EQ(profile.loops.size(), 1U);
  const ProfileLoop& loop = profile.loops[0];
  EXPECT_EQ(NameOf(profile, process, loop.holder), "serve");
  EXPECT_TRUE(loop.external);
  EXPECT_EQ(NamesOf(profile, process, loop.handlers),
            (std::set<std::string>{"on_accept", "on_readable"}));
  EXPECT_EQ(NamesOf(profile, process, loop.commands), (std::set<std::string>{"run_command"}));
  EXPECT_EQ(NamesOf(profile, process, loop.tails), (std::set<std::string>{"process_events"}));
  // The last iteration is cut off by the end of the log.
  EXPECT_NEAR(static_cast<double>(loop.ready_events), static_cast<double>(server.events()), 5);
  EXPECT_NEAR(static_cast<double>(UnitsOfKind(profile, wire::UnitKind::kCommand)),
              static_cast<double>(server.commands()), 20);
  EXPECT_EQ(UnitsOfKind(profile, wire::UnitKind::kTail), loop.iterations);
  EXPECT_GE(Purity(profile, process, wire::UnitKind::kCommand), 99.9);
  EXPECT_EQ(profile.quality.right, profile.quality.units);
  EXPECT_GE(profile.quality.held_out_right * 100, profile.quality.held_out_units * 99);
  EXPECT_GT(profile.quality.held_out_units, 0U);
}

TEST(Learn, TheSameLogsGiveTheSameProfile) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer(thread, {.seed = 3, .iterations = 100}).Run();
  process.Write(folder);
  thread.Write(folder);
  EXPECT_EQ(MustLearn(folder).profile, MustLearn(folder).profile);
}

TEST(Learn, OneClientAtATimeMeansIterationsAreUnits) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer server(thread, {.max_ready = 1, .max_pipelined = 1});
  server.Run();
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_TRUE(profile.loops[0].handlers.empty());
  EXPECT_TRUE(profile.loops[0].turns.empty()) << "replies are sent before the wait";
  EXPECT_EQ(UnitsOfKind(profile, wire::UnitKind::kIteration), profile.loops[0].iterations);
  EXPECT_GE(Purity(profile, process, wire::UnitKind::kIteration), 99.9);
}

TEST(Learn, WithoutPipeliningHandlersAreNotSplit) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer(thread, {.max_pipelined = 1}).Run();
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_FALSE(profile.loops[0].handlers.empty());
  EXPECT_TRUE(profile.loops[0].commands.empty());
  EXPECT_GE(Purity(profile, process, wire::UnitKind::kHandler), 99.9);
}

TEST(Learn, WithoutStacksEntriesTellTheHolder) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  thread.NoStacks();
  SimulatedServer(thread, {}).Run();
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_EQ(NameOf(profile, process, profile.loops[0].holder), "serve");
}

TEST(Learn, ForkedWorkersShareTheirLoop) {
  const TestFolder folder;
  uint64_t events = 0;
  SimulatedProcess first(200, "ab01", 0x400000);
  for (uint32_t pid = 200; pid < 203; ++pid) {
    // Loaded elsewhere in each process; offsets are the same.
    SimulatedProcess worker(pid, "ab01", 0x400000 + (pid - 200) * 0x1000'0000ULL);
    SimulatedThread thread(worker, pid);
    for (const std::string& name : first.Names()) worker.Function(name);
    SimulatedServer server(thread, {.seed = 7});
    server.Run();
    events += server.events();
    worker.Write(folder);
    thread.Write(folder);
    if (pid == 200) first = worker;
  }
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_EQ(profile.modules.size(), 1U);
  EXPECT_NEAR(static_cast<double>(profile.loops[0].ready_events), static_cast<double>(events), 15);
  EXPECT_GE(Purity(profile, first, wire::UnitKind::kCommand), 99.9);
}

// A listener takes jobs and wakes workers that wait on a condition.
void RunWorkerPool(SimulatedProcess& process, const TestFolder& folder, bool wakes) {
  constexpr uint64_t kQueue = 0x5000;
  SimulatedThread listener(process, process.pid(), 0x7ffc'0000'0000);
  listener.Call("main", 64, [&] {
    listener.Call("listen_loop", 64, [&] {
      for (int i = 0; i < 50; ++i) {
        listener.Wait(wire::WaitCall::kAccept, 1);
        listener.Call("push_job", 32, [&] {
          if (wakes) listener.Wake(wire::WakeCall::kConditionSignal, kQueue);
        });
      }
    });
  });
  listener.Write(folder);
  for (uint32_t n = 0; n < 2; ++n) {
    SimulatedThread worker(process, process.pid() + 1 + n, 0x7f00'0000'0000 + n * 0x100'0000);
    worker.Call("worker_main", 64, [&] {
      for (int i = 0; i < 25; ++i) {
        worker.Call("pop_job", 48, [&] { worker.Wait(wire::WaitCall::kCondition, 1, 1, kQueue); });
        worker.Call(i % 2 == 0 ? "job_a" : "job_b", 48, [&] {
          worker.Call("query", 32, [&] {
            // The answer of a database: a wait inside the unit.
            worker.Wait(wire::WaitCall::kReceive, 1, 3);
          });
          for (int k = 0; k < 6; ++k) {
            worker.Call((i % 2 == 0 ? "a_" : "b_") + std::to_string(k));
          }
        });
      }
    });
    worker.Write(folder);
  }
  process.Write(folder);
}

TEST(Learn, WorkersWokenByAListenerAreALoop) {
  const TestFolder folder;
  SimulatedProcess process(300);
  RunWorkerPool(process, folder, true);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 2U);
  std::map<std::string, uint32_t> loops;
  for (uint32_t i = 0; i < 2; ++i) loops[NameOf(profile, process, profile.loops[i].holder)] = i;
  ASSERT_TRUE(loops.contains("worker_main"));
  ASSERT_TRUE(loops.contains("listen_loop"));
  const ProfileLoop& workers = profile.loops[loops["worker_main"]];
  EXPECT_FALSE(workers.external);
  EXPECT_EQ(workers.woken_by, std::vector<uint32_t>{loops["listen_loop"]});
  ASSERT_EQ(workers.sites.size(), 1U);
  EXPECT_EQ(workers.sites[0].call, wire::WaitCall::kCondition);
  EXPECT_EQ(workers.iterations, 2 * 24U);
}

TEST(Learn, ThreadsThatBeginInOneFunctionHaveLoopsOfTheirOwn) {
  const TestFolder folder;
  SimulatedProcess process(1);
  for (uint32_t tid = 1; tid <= 2; ++tid) {
    SimulatedThread thread(process, tid, 0x7f00'0000'0000 + tid * 0x100'0000);
    thread.Call("begin_thread", 64, [&] {
      for (int i = 0; i < 40; ++i) {
        thread.Call(tid == 1 ? "next_message" : "next_connection", 32, [&] {
          thread.Wait(tid == 1 ? wire::WaitCall::kRead : wire::WaitCall::kAccept, 1);
        });
        thread.Call(tid == 1 ? "answer" : "greet");
      }
    });
    thread.Write(folder);
  }
  process.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 2U);
  for (const ProfileLoop& loop : profile.loops) {
    EXPECT_EQ(NameOf(profile, process, loop.holder), "begin_thread");
    EXPECT_EQ(loop.iterations, 39U);
  }
}

TEST(Learn, AConditionNobodySignalsIsNoEventLoop) {
  const TestFolder folder;
  SimulatedProcess process(300);
  RunWorkerPool(process, folder, false);
  const Profile profile = MustLearn(folder).profile;
  for (const ProfileLoop& loop : profile.loops) {
    for (const ProfileSite& site : loop.sites) EXPECT_NE(site.call, wire::WaitCall::kCondition);
  }
}

TEST(Learn, OnlyWaitsThatMayBlockAndReturnSomethingBeginUnits) {
  const TestFolder folder;
  SimulatedProcess process(1);
  SimulatedThread thread(process, 1);
  thread.Call("main", 64, [&] {
    for (int i = 0; i < 40; ++i) {
      thread.Wait(wire::WaitCall::kEpoll, i % 4 == 0 ? 0 : 1);
      thread.Call("handle", 32, [&] {
        thread.Call("try_accept", 32, [&] {
          thread.Wait(wire::WaitCall::kAccept, 0, 2, 0, wire::LogWait::kNonBlocking);
        });
      });
    }
  });
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  ASSERT_EQ(profile.loops[0].sites.size(), 1U);
  EXPECT_EQ(profile.loops[0].sites[0].call, wire::WaitCall::kEpoll);
  EXPECT_EQ(profile.loops[0].iterations, 29U);
}

TEST(Learn, TheOutermostLoopWins) {
  const TestFolder folder;
  SimulatedProcess process(1);
  SimulatedThread thread(process, 1);
  thread.Call("main", 64, [&] {
    for (int i = 0; i < 40; ++i) {
      thread.Call("next_request", 32, [&] { thread.Wait(wire::WaitCall::kRead, 1); });
      thread.Call("handle", 32, [&] {
        thread.Call("fetch_all", 64, [&] {
          for (int part = 0; part < 5; ++part) {
            thread.Call("fetch", 32, [&] { thread.Wait(wire::WaitCall::kReceive, 1); });
          }
        });
      });
    }
  });
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_EQ(NameOf(profile, process, profile.loops[0].holder), "main");
  ASSERT_EQ(profile.loops[0].sites.size(), 1U);
  EXPECT_EQ(profile.loops[0].sites[0].call, wire::WaitCall::kRead);
  EXPECT_EQ(profile.loops[0].iterations, 39U);
}

TEST(Learn, TheSameWaitDeeperInAUnitIsNoBoundary) {
  const TestFolder folder;
  SimulatedProcess process(1);
  SimulatedThread thread(process, 1);
  const auto wait_latch = [&] {
    thread.Call("wait_latch", 64, [&] { thread.Wait(wire::WaitCall::kEpoll, 1); });
  };
  thread.Call("main", 64, [&] {
    for (int i = 0; i < 40; ++i) {
      wait_latch();
      thread.Call("execute", 64, [&] {
        thread.Call("lock", 64, [&] {
          if (i % 3 == 0) wait_latch();
        });
      });
    }
  });
  process.Write(folder);
  thread.Write(folder);
  const Profile profile = MustLearn(folder).profile;
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_EQ(profile.loops[0].iterations, 39U);
}

TEST(Learn, DamageIsCountedAndSteppedOver) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer(thread, {}).Run();
  thread.Raw(0);
  thread.Raw(0xf123'4567'89ab'cdefULL);
  SimulatedServer(thread, {.seed = 2}).Run();
  thread.Lose(4096);
  SimulatedServer(thread, {.seed = 3}).Run();
  process.Write(folder);
  thread.Write(folder, 4);
  folder.Write("log.1.1", "nothing");
  const auto [profile, diagnostics] = MustLearn(folder);
  EXPECT_EQ(diagnostics.rows().at("word of a training log that begins no record").count, 2U);
  EXPECT_EQ(diagnostics.rows().at("byte of a training log that was lost").count, 4096U);
  EXPECT_EQ(diagnostics.rows().at("training log without a header").count, 1U);
  ASSERT_EQ(profile.loops.size(), 1U);
  EXPECT_GT(profile.loops[0].iterations, 1300U);
  EXPECT_GE(Purity(profile, process, wire::UnitKind::kCommand), 99.9);
}

TEST(Learn, AnyLogCutAnywhereIsReadToItsEnd) {
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer(thread, {.iterations = 30}).Run();
  for (size_t cut = 1; cut < 4000; cut += 131) {
    const TestFolder folder;
    process.Write(folder);
    thread.Write(folder, cut);
    Progress progress;
    Diagnostics diagnostics;
    const auto profile = Learn(folder.path(), WithoutNames(), progress, diagnostics);
    if (profile.ok()) {
      EXPECT_EQ(FirstContradiction(profile.value()), "");
    }
  }
}

TEST(Learn, SaysWhatIsMissing) {
  const TestFolder folder;
  Progress progress;
  Diagnostics diagnostics;
  const auto nothing = Learn(folder.path(), {}, progress, diagnostics);
  ASSERT_FALSE(nothing.ok());
  EXPECT_FALSE(nothing.error().hint.empty());
  SimulatedProcess process(1);
  SimulatedThread thread(process, 1);
  thread.Call("main", 64, [&] { thread.Call("work"); });
  process.Write(folder);
  thread.Write(folder);
  const auto no_loop = Learn(folder.path(), {}, progress, diagnostics);
  ASSERT_FALSE(no_loop.ok());
  EXPECT_NE(no_loop.error().message.find("no event loop"), std::string::npos);
}

TEST(Learn, RareShapesAreDroppedAndCountedWhenThereAreTooMany) {
  const TestFolder folder;
  SimulatedProcess process(100);
  SimulatedThread thread(process, 100);
  SimulatedServer(thread, {.commands = 40}).Run();
  process.Write(folder);
  thread.Write(folder);
  LearnOptions options = WithoutNames();
  options.max_shapes = 20;
  const Profile profile = MustLearn(folder, options).profile;
  EXPECT_LE(profile.shapes.size(), 20U);
  EXPECT_GT(profile.training.dropped_shapes, 0U);
  uint64_t units = 0;
  for (const UnitType& type : profile.types) units += type.units;
  EXPECT_EQ(units + profile.training.dropped_units, profile.training.units);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
