// SPDX-License-Identifier: Apache-2.0
#include "scale/profile_verbs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/test_folder.h"
#include "corpus/corpus.h"
#include "episode/profile_file.h"
#include "episode/syscall_trace.h"
#include "scale/profile_part_codec.h"
#include "scale/verbs.h"
#include "trace/trace_writer.h"

namespace culprit::scale::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class ProfileVerbsTest : public ::testing::Test {
 protected:
  static constexpr int kTraces = 11;

  void SetUp() override {
    auto corpus = corpus::Corpus::Create(folder_ / "c");
    ASSERT_TRUE(corpus.ok());
    std::vector<corpus::StagedTrace> staged;
    for (int i = 0; i < kTraces; ++i) {
      const auto path = corpus.value().NewStagingPath();
      ASSERT_TRUE(path.ok());
      ASSERT_TRUE(WriteTrace(Calls(i).small.trace, path.value(), Overwrite::kRefuse).ok());
      staged.push_back({.path = path.value(), .name = "t" + std::to_string(i)});
    }
    ASSERT_TRUE(corpus.value().AddStaged(staged).ok());
  }

  // Names of calls, functions and threads come up in another order in every trace.
  static episode::SyscallTrace Calls(int seed) {
    static constexpr std::array<const char*, 6> kCalls = {"read",   "write", "close",
                                                          "openat", "futex", "lseek"};
    episode::SyscallTrace made;
    for (int call = 0; call < 60; ++call) {
      const auto which = static_cast<size_t>((call * (seed + 1) + seed) % 6);
      std::string stack = "app!main";
      for (int depth = 0; depth <= (call + seed) % 3; ++depth) {
        stack += ";app!F" + std::to_string((call / 7 + depth * seed) % 9);
      }
      made.Call("t" + std::to_string((call + seed) % 4), kCalls[which], call * 1000, 100 + seed,
                stack);
    }
    return made;
  }

  std::string InProcess() {
    episode::ProfileBuilder builder({});
    auto corpus = corpus::Corpus::Open(folder_ / "c");
    const std::vector<corpus::TraceRow> rows = corpus.value().List().value();
    for (const corpus::TraceRow& row : rows) {
      builder.Add(trace::TraceReader::Open(corpus.value().TracePath(row)).value());
    }
    return EncodeProfile(builder.Finish());
  }

  RunFolder MakeRun(const std::string& name, uint64_t shards) {
    const auto plan =
        MakePlan(folder_ / "c",
                 {.profile = episode::ProfileOptions(), .events_a_shard = 1, .max_shards = shards});
    EXPECT_TRUE(plan.ok());
    auto run = RunFolder::Create(folder_ / name, plan.value());
    EXPECT_TRUE(run.ok());
    return std::move(run).value();
  }

  static void Finish(const RunFolder& run) {
    for (const Stage& stage : StagesOf(run, {})) {
      for (uint64_t i = 0; i < stage.count; ++i) {
        if (stage.done(i)) continue;
        const Status status = stage.run(i);
        ASSERT_TRUE(status.ok()) << status.error().ToString();
        EXPECT_TRUE(stage.done(i));
      }
    }
  }

  TestFolder folder_;
};

TEST_F(ProfileVerbsTest, MakeTheProfileOfOneProcessHoweverTheWorkIsCut) {
  const std::string expected = InProcess();
  for (const uint64_t shards : {1, 2, 5, 11, 100}) {
    const RunFolder run = MakeRun("run" + std::to_string(shards), shards);
    Finish(run);
    const auto made = ReadProfileResult(run);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(EncodeProfile(made.value().profile), expected) << shards;
    EXPECT_EQ(made.value().facts.traces, static_cast<uint64_t>(kTraces));
    EXPECT_EQ(made.value().facts.syscalls, 60U * kTraces);
    EXPECT_EQ(made.value().facts.with_stack, 60U * kTraces);
  }
}

TEST_F(ProfileVerbsTest, OutputsOfOtherPartsAreNotTakenForOnesOwn) {
  const RunFolder run = MakeRun("run", 5);
  Finish(run);
  ASSERT_GT(run.Count(Verb::kReduce), 1U);
  fs::copy_file(run.OutputPath(Verb::kReduce, 1), run.OutputPath(Verb::kReduce, 0),
                fs::copy_options::overwrite_existing);
  EXPECT_FALSE(run.TaskDone(Verb::kReduce, 0));
  EXPECT_FALSE(FinalizeProfile(run).ok());
  Finish(run);
  EXPECT_EQ(EncodeProfile(ReadProfileResult(run).value().profile), InProcess());
}

TEST_F(ProfileVerbsTest, ATraceThatVanishedIsAnErrorThatNamesIt) {
  const RunFolder run = MakeRun("run", 3);
  fs::remove(folder_ / ("c/traces/" + run.plan().traces[0].file));
  const Status status = MapProfile(run, 0, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().ToString().find(run.plan().traces[0].file), std::string::npos);
}

TEST_F(ProfileVerbsTest, PlansComeBackFromJson) {
  const auto plan = MakePlan(folder_ / "c",
                             {.profile = episode::ProfileOptions{
                                  .processes = {"a*"},
                                  .owners = {.modules = {"m"}, .functions = {"f"}, .unnamed = true},
                                  .episodes = {},
                                  .jobs = 3}});
  ASSERT_TRUE(plan.ok());
  const std::string json = PlanToJson(plan.value());
  const auto again = PlanFromJson(json, "plan.json");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(PlanToJson(again.value()), json);
  EXPECT_EQ(again.value().profile->processes, std::vector<std::string>{"a*"});
  EXPECT_TRUE(again.value().profile->owners.unnamed);
}

TEST(ProfilePartCodec, BytesComeBackAndEveryCutIsRefused) {
  episode::SyscallTrace made;
  made.Call("t", "read", 10, 1, "app!main;app!Fill");
  made.Call("t", "write", 20, 1, "app!main");
  episode::ProfileBuilder builder({});
  builder.Add(made.small.Reader());
  const std::string bytes = EncodeProfilePart(builder.TakePart());
  const auto part = DecodeProfilePart(bytes);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(EncodeProfilePart(*part), bytes);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodeProfilePart(bytes.substr(0, cut)).has_value()) << cut;
  }
  EXPECT_FALSE(DecodeProfilePart(bytes + '\0').has_value());
}

TEST(ProfilePartCodec, ChangedBytesNeverLeadOutOfATable) {
  episode::SyscallTrace made;
  made.Call("t", "read", 10, 1, "app!main;app!Fill");
  made.Call("u", "write", 20, 1, "app!main");
  episode::ProfileBuilder builder({});
  builder.Add(made.small.Reader());
  const std::string bytes = EncodeProfilePart(builder.TakePart());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0, 1, 2, 127, 128, 255}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      auto part = DecodeProfilePart(changed);
      if (part) MineProfile(std::move(*part), {}, 1);
    }
  }
}

}  // namespace
}  // namespace culprit::scale::TEST_FILE
