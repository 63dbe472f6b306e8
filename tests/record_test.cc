// SPDX-License-Identifier: Apache-2.0
//
// culprit record, dump and mark from outside: exit codes, and what is left when the
// recorder is killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/test_folder.h"
#include "cli/shell_run.h"
#include "record/bpf_engine.h"
#include "record/tracefs.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::TEST_FILE {
namespace {

using cli::RunShell;
using cli::ShellOutcome;

const std::string kCulprit = CULPRIT_BINARY;

bool CanRecord() {
  return record::BpfEngine::Built() && geteuid() == 0 &&
         access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

#define SKIP_IF_IT_CANNOT_RECORD() \
  if (!CanRecord()) GTEST_SKIP() << "recording needs root, BTF and a build with the BPF engine"

pid_t StartRecorder(const std::vector<std::string>& words) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const int null = open("/dev/null", O_WRONLY);
  dup2(null, STDERR_FILENO);
  dup2(null, STDOUT_FILENO);
  std::vector<char*> arguments = {const_cast<char*>(kCulprit.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

int WaitFor(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Its socket says that it has begun. One that never does is ended.
bool WaitUntilItRecords(pid_t pid) {
  const std::string socket = "/run/culprit/record-" + std::to_string(pid) + ".sock";
  for (int i = 0; i < 3000; ++i) {
    if (access(socket.c_str(), F_OK) == 0) return true;
    usleep(20'000);
  }
  kill(pid, SIGKILL);
  WaitFor(pid);
  return false;
}

TEST(RecordProgram, EndsWithTheCommandsExitCode) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const ShellOutcome ran =
      RunShell(kCulprit + " record -o " + folder / "t.ctrace" + " -- sh -c 'exit 9'");
  EXPECT_EQ(ran.code, 9) << ran.text;
  EXPECT_NE(ran.text.find("recorded"), std::string::npos);
  EXPECT_TRUE(trace::ReadTrace(folder / "t.ctrace").ok());
}

TEST(RecordProgram, ACommandThatDoesNotExistLeavesNothing) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const ShellOutcome ran =
      RunShell(kCulprit + " record -o " + folder / "t.ctrace" + " -- /no/such");
  EXPECT_EQ(ran.code, 1) << ran.text;
  EXPECT_FALSE(std::filesystem::exists(folder / "t.ctrace"));
}

// Until the file has more bytes than these, or a minute has passed; how many it has.
uintmax_t AwaitSize(const std::string& path, uintmax_t bytes) {
  std::error_code code;
  for (int i = 0; i < 3000; ++i) {
    const uintmax_t size = std::filesystem::file_size(path, code);
    if (!code && size > bytes) return size;
    usleep(20'000);
  }
  ADD_FAILURE() << path << " never had more than " << bytes << " bytes";
  return bytes;
}

std::string ChildrenFile(pid_t pid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children";
}

TEST(RecordProgram, KilledItLeavesAReadableFileAndAnUnharmedCommand) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const std::string path = folder / "t.ctrace";
  const pid_t recorder = StartRecorder({"record", "-o", path, "--budget", "0", "--", "sh", "-c",
                                        "while :; do ls / >/dev/null; done"});
  AwaitSize(path, 65'536);
  const ShellOutcome child = RunShell("cat " + ChildrenFile(recorder));
  kill(recorder, SIGKILL);
  EXPECT_EQ(WaitFor(recorder), 128 + SIGKILL);
  // The command is unharmed: it still runs, until it is ended here.
  const ShellOutcome ended = RunShell("kill " + child.text);
  EXPECT_EQ(ended.code, 0) << child.text;
  const auto trace = trace::ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  EXPECT_GT(trace.value().events.size(), 1000u);
  const auto report = trace::CheckConservation(trace.value());
  EXPECT_TRUE(report.ok()) << report.first_problem;
}

TEST(RecordProgram, KilledWhereLittleHappensItLeavesNearlyAll) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const std::string path = folder / "t.ctrace";
  const pid_t recorder = StartRecorder(
      {"record", "-o", path, "--budget", "0", "--", "sh", "-c", "while :; do sleep 0.1; done"});
  // Something, and twice more than before.
  uintmax_t size = 0;
  for (int turn = 0; turn < 3; ++turn) size = AwaitSize(path, size);
  const ShellOutcome child = RunShell("cat " + ChildrenFile(recorder));
  kill(recorder, SIGKILL);
  EXPECT_EQ(WaitFor(recorder), 128 + SIGKILL);
  EXPECT_EQ(RunShell("kill " + child.text).code, 0) << child.text;
  const auto trace = trace::ReadTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.error().ToString();
  EXPECT_GT(trace.value().events.size(), 10u);
  EXPECT_LT(trace.value().events.size(), 2048u);
  const auto report = trace::CheckConservation(trace.value());
  EXPECT_TRUE(report.ok()) << report.first_problem;
}

TEST(RecordProgram, SigintEndsARecordingInGoodOrder) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const std::string path = folder / "t.ctrace";
  const pid_t recorder = StartRecorder({"record", "--system", "-o", path});
  ASSERT_TRUE(WaitUntilItRecords(recorder));
  usleep(200'000);
  kill(recorder, SIGINT);
  EXPECT_EQ(WaitFor(recorder), 0);
  const auto trace = trace::ReadTrace(path);
  ASSERT_TRUE(trace.ok());
  const auto report = trace::CheckConservation(trace.value());
  EXPECT_EQ(report.gaps, 0U) << report.first_problem;
  EXPECT_EQ(report.overlaps, 0U) << report.first_problem;
  EXPECT_EQ(report.out_of_range, 0U) << report.first_problem;
}

// Of the whole machine, for a moment; what is wrong with the dump, or nothing.
std::string DumpOfAFlightRecorder() {
  const TestFolder folder;
  const pid_t recorder =
      StartRecorder({"record", "--system", "--flight", "5s", "-o", folder / "f.ctrace"});
  if (!WaitUntilItRecords(recorder)) return "it does not record";
  usleep(200'000);
  const ShellOutcome dumped = RunShell(kCulprit + " dump --pid " + std::to_string(recorder));
  kill(recorder, SIGTERM);
  EXPECT_EQ(WaitFor(recorder), 0);
  EXPECT_EQ(dumped.code, 0) << dumped.text;
  const auto trace = trace::ReadTrace(folder / "f-1.ctrace");
  if (!trace.ok()) return trace.error().ToString();
  const auto report = trace::CheckConservation(trace.value());
  EXPECT_EQ(report.gaps, 0U) << report.first_problem;
  EXPECT_EQ(report.overlaps, 0U) << report.first_problem;
  return report.first_problem;
}

// On a machine with many more threads that want to run than CPUs, a CPU is still
// given to two threads now and then; the threads' own time is always whole.
TEST(RecordProgram, DumpWritesAFlightRecordersMemory) {
  SKIP_IF_IT_CANNOT_RECORD();
  std::string problem;
  for (int attempt = 0; attempt < 3; ++attempt) {
    problem = DumpOfAFlightRecorder();
    if (problem.empty()) return;
  }
  FAIL() << problem;
}

TEST(RecordProgram, MarksBecomeInstances) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  std::string marker = record::TracefsFolder() + "/trace_marker";
  constexpr std::string_view kOwn = "/proc/self/";
  if (marker.starts_with(kOwn)) marker.replace(0, kOwn.size(), fmt::format("/proc/{}/", getpid()));
  std::string script = kCulprit + " mark begin job; sleep 0.05; " + kCulprit + " mark end job;";
  const bool has_marker = access(marker.c_str(), W_OK) == 0;
  if (has_marker) {
    script += "echo \"B|$$|slice\" > " + marker + "; sleep 0.05; echo \"E|$$\" > " + marker;
  }
  folder.Write("job.sh", script);
  const ShellOutcome ran = RunShell(kCulprit + " record --marks -o " + folder / "t.ctrace" +
                                    " -- sh " + folder / "job.sh");
  EXPECT_EQ(ran.code, 0) << ran.text;
  const auto trace = trace::ReadTrace(folder / "t.ctrace");
  ASSERT_TRUE(trace.ok());
  std::vector<std::string> scenarios;
  for (const trace::Instance& instance : trace.value().instances) {
    scenarios.emplace_back(trace.value().dictionary.Text(instance.scenario));
    EXPECT_GE(instance.dur_ns(), 50'000'000);
  }
  EXPECT_EQ(scenarios, has_marker ? std::vector<std::string>({"job", "slice"})
                                  : std::vector<std::string>({"job"}));
}

}  // namespace
}  // namespace culprit::TEST_FILE
