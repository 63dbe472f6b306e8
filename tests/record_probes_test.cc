// SPDX-License-Identifier: Apache-2.0
//
// Instances from what programs tell of themselves, recorded for real: USDT probes
// and trace events.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "record/tracefs.h"
#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

std::map<std::string, std::vector<trace::Instance>> ByScenario(const RecordedProgram& recorded) {
  std::map<std::string, std::vector<trace::Instance>> all;
  for (const trace::Instance& instance : recorded.trace.instances) {
    all[std::string(recorded.trace.dictionary.Text(instance.scenario))].push_back(instance);
  }
  return all;
}

TEST(RecordProbes, UsdtProbesMakeTheInstancesThatTheProgramTells) {
  SKIP_IF_IT_CANNOT_RECORD();
  const RecordedProgram recorded =
      RecordProgram(ProgramPath("usdt_probes"), "--usdt planted:work__start..work__done");
  ASSERT_EQ(recorded.code, 0) << recorded.notes;
  const auto instances = ByScenario(recorded);
  const auto told = recorded.Told("work");
  ASSERT_EQ(instances.size(), 1u) << recorded.notes;
  ASSERT_EQ(instances.begin()->first, "work");
  const std::vector<trace::Instance>& work = instances.begin()->second;
  ASSERT_EQ(work.size(), told.size());
  for (size_t i = 0; i < work.size(); ++i) {
    EXPECT_GE(work[i].t0_ns, told[i]["from_ns"].get<int64_t>());
    EXPECT_LE(work[i].t1_ns, told[i]["until_ns"].get<int64_t>());
    EXPECT_GE(work[i].dur_ns(), 20'000'000);
    EXPECT_EQ(recorded.trace.dictionary.threads()[work[i].thread.value].tid,
              told[i]["work"].get<int64_t>());
  }
}

TEST(RecordProbes, ProbesBehindASemaphoreAreSwitchedOn) {
  SKIP_IF_IT_CANNOT_RECORD();
  const RecordedProgram recorded =
      RecordProgram(ProgramPath("usdt_probes"),
                    "--usdt planted:counted__start..counted__done=Counted --label comm=mine");
  const auto instances = ByScenario(recorded);
  ASSERT_TRUE(instances.contains("Counted")) << recorded.notes;
  EXPECT_EQ(instances.at("Counted").size(), 1u);
  EXPECT_EQ(recorded.trace.metadata.labels.at("comm"), "mine");
}

TEST(RecordProbes, AProbeThatIsNotThereIsAnErrorThatNamesThoseThatAre) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const cli::ShellOutcome ran = cli::RunShell(
      std::string(CULPRIT_BINARY) + " record --tier bpf --usdt planted:no..work__done -o " +
      folder / "t.ctrace" + " -- " + ProgramPath("usdt_probes"));
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.text.find("planted:work__start"), std::string::npos) << ran.text;
}

TEST(RecordProbes, TraceEventsMakeInstancesOfTheRecordedThreadsOnly) {
  SKIP_IF_IT_CANNOT_RECORD();
  const std::string events = record::TracefsFolder() + "/events";
  if (access((events + "/syscalls/sys_enter_clock_nanosleep").c_str(), F_OK) != 0) {
    GTEST_SKIP() << "this kernel has no trace events of system calls";
  }
  const RecordedProgram recorded = RecordProgram(
      ProgramPath("usdt_probes"),
      "--user-event syscalls:sys_enter_clock_nanosleep..sys_exit_clock_nanosleep=nap");
  const auto instances = ByScenario(recorded);
  ASSERT_TRUE(instances.contains("nap")) << recorded.notes;
  // Six of the first thread, one of the other.
  EXPECT_EQ(instances.at("nap").size(), 7u);
  for (const trace::Instance& nap : instances.at("nap")) EXPECT_GE(nap.dur_ns(), 20'000'000);
}

TEST(RecordProbes, AKernelWithoutUserEventsIsSaidToBeOne) {
  SKIP_IF_IT_CANNOT_RECORD();
  if (access((record::TracefsFolder() + "/user_events_data").c_str(), F_OK) == 0) {
    GTEST_SKIP() << "this kernel has user_events";
  }
  const TestFolder folder;
  const cli::ShellOutcome ran = cli::RunShell(
      std::string(CULPRIT_BINARY) + " record --tier bpf --user-event job_begin..job_end -o " +
      folder / "t.ctrace" + " -- true");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.text.find("CONFIG_USER_EVENTS"), std::string::npos) << ran.text;
}

// In any hierarchy; empty if none allows it.
std::string MakeCgroup() {
  for (const std::string root :
       {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu"}) {
    const std::string group = root + "/culprit-test-" + std::to_string(getpid());
    if (cli::RunShell("mkdir " + group).code != 0) continue;
    if (access((group + "/cgroup.procs").c_str(), W_OK) == 0) return group;
    cli::RunShell("rmdir " + group);
  }
  return {};
}

TEST(RecordProbes, WhoJoinsACgroupLaterIsRecorded) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const std::string group = MakeCgroup();
  if (group.empty()) GTEST_SKIP() << "no cgroup can be made here";
  // It joins about a second after the recording began, and then makes children until
  // it is ended.
  folder.Write("join.sh", "until [ -e " + folder / "t.ctrace" +
                              " ]; do sleep 0.1; done; sleep 1; " + "echo $$ > " + group +
                              "/cgroup.procs; sleep 0.4; while :; do " +
                              ProgramPath("timer_sleep") + "; done");
  const cli::ShellOutcome ran =
      cli::RunShell("sh " + folder / "join.sh" + " > /dev/null & joins=$!; " + CULPRIT_BINARY +
                    " record --budget 0 --for 4s --cgroup " + group + " -o " + folder / "t.ctrace" +
                    "; kill $joins; wait; sleep 1");
  cli::RunShell("rmdir " + group);
  const auto trace = trace::ReadTrace(folder / "t.ctrace");
  ASSERT_TRUE(trace.ok()) << ran.text;
  EXPECT_EQ(trace.value().metadata.labels.at("cgroup"), group);
  int64_t waited_ns = 0;
  for (const trace::Event& event : trace.value().events) {
    const std::string label = trace.value().dictionary.ThreadLabel(event.thread);
    if (event.kind == trace::EventKind::kWait && label.find("timer_sleep") != std::string::npos) {
      waited_ns += event.dur_ns;
    }
  }
  EXPECT_GT(waited_ns, 0) << ran.text;
}

}  // namespace
}  // namespace culprit::TEST_FILE
