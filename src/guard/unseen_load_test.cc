// SPDX-License-Identifier: Apache-2.0
#include "guard/unseen_load.h"

#include <gtest/gtest.h>

#include "guard/learn.h"
#include "guard/simulated_server.h"

namespace culprit::guard::TEST_FILE {
namespace {

void WriteSession(const TestFolder& folder, const SimulatedLoad& load) {
  SimulatedProcess process(100);
  // The same binary in every session: functions lie where they lie, whoever is first.
  for (const char* name :
       {"main", "read_configuration", "serve", "process_events", "flush_replies", "write_to_client",
        "poll", "on_accept", "make_client", "on_readable", "parse_input", "make_word",
        "run_command", "look_up_command", "find_key", "hash", "add_reply", "copy"}) {
    process.Function(name);
  }
  for (int command = 0; command < 8; ++command) {
    const std::string number = std::to_string(command);
    process.Function("command_" + number);
    for (int i = 0; i < 4; ++i) process.Function("step_" + number + "_" + std::to_string(i));
  }
  SimulatedThread thread(process, 100);
  SimulatedServer server(thread, load);
  server.Run();
  process.Write(folder);
  thread.Write(folder);
}

Profile Trained(const TestFolder& folder) {
  Progress progress;
  Diagnostics diagnostics;
  auto profile = Learn(folder.path(), {.names = false}, progress, diagnostics);
  EXPECT_TRUE(profile.ok());
  ChooseTypesAndGuards(profile.value(), {.names = false});
  return std::move(profile).value();
}

TEST(UnseenLoad, UnitsOfAnotherRunAreToldByTheGuards) {
  const TestFolder first;
  WriteSession(first, {.seed = 1});
  const Profile profile = Trained(first);
  const TestFolder second;
  WriteSession(second, {.seed = 2, .max_ready = 3, .max_pipelined = 6});
  Diagnostics diagnostics;
  const auto judged = JudgeUnseenLoad(profile, profile.guards, second.path(), {}, diagnostics);
  ASSERT_TRUE(judged.ok()) << judged.error().ToString();
  const UnseenLoad& load = judged.value();
  EXPECT_GT(load.units, 1000U);
  EXPECT_LT(load.unlike, load.units / 100);
  EXPECT_GE(load.right, (load.units - load.unlike) * 99 / 100);
  // The load that it was trained on is no different.
  const auto own = JudgeUnseenLoad(profile, profile.guards, first.path(), {}, diagnostics);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own.value().units, profile.quality.units);
  EXPECT_EQ(own.value().right, profile.quality.right);
  EXPECT_EQ(own.value().unlike, 0U);
  EXPECT_EQ(own.value().changed, 0U);
}

TEST(UnseenLoad, WithoutGuardsTypesAreMistaken) {
  const TestFolder folder;
  WriteSession(folder, {.seed = 1});
  const Profile profile = Trained(folder);
  Diagnostics diagnostics;
  const auto judged = JudgeUnseenLoad(profile, {}, folder.path(), {}, diagnostics);
  ASSERT_TRUE(judged.ok());
  EXPECT_LT(judged.value().right, judged.value().units * 8 / 10);
  EXPECT_FALSE(judged.value().confusions.empty());
}

TEST(UnseenLoad, WhatTrainingNeverSawIsLikeNoType) {
  const TestFolder first;
  WriteSession(first, {.seed = 1, .commands = 2});
  const Profile profile = Trained(first);
  const TestFolder second;
  WriteSession(second, {.seed = 2, .commands = 8});
  Diagnostics diagnostics;
  const auto judged = JudgeUnseenLoad(profile, profile.guards, second.path(), {}, diagnostics);
  ASSERT_TRUE(judged.ok());
  EXPECT_GT(judged.value().unlike, judged.value().units / 3);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
