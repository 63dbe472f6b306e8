// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong while culprit records: signals, a full disk, a ring that is too
// small, a second recorder, a suspended one. Each time the file so far can be read
// and accounts for its time, nothing of the recorder stays in the kernel, and the
// recorded command comes to its own end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <functional>
#include <set>

#include "record/recorder.h"
#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

constexpr int kStormCode = 7;  // of switch_storm
constexpr int64_t kMs = 1'000'000;

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000; ++i) {
    if (holds()) return true;
    usleep(10'000);
  }
  return false;
}

uint64_t SizeOf(const std::string& path) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(path, code);
  return code ? 0 : bytes;
}

// A process of the test, which is ended with it.
class ChildProgram {
 public:
  explicit ChildProgram(const std::string& command_line) : pid_(fork()) {
    if (pid_ != 0) return;
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    const std::string words = "exec " + command_line;
    execl("/bin/sh", "sh", "-c", words.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;
  ~ChildProgram() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    Wait();
  }
  pid_t pid() const { return pid_; }
  void Signal(int signal) const { kill(pid_, signal); }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

// The kernel programs that a process holds on to.
std::set<uint32_t> KernelPrograms(pid_t pid) {
  std::set<uint32_t> ids;
  std::error_code code;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fdinfo";
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    std::ifstream file(entry.path());
    for (std::string word; file >> word;) {
      uint32_t id = 0;
      if (word == "prog_id:" && file >> id) ids.insert(id);
    }
  }
  return ids;
}

bool IsInTheKernel(uint32_t program) {
  bpf_attr attributes = {};
  attributes.prog_id = program;
  const long fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attributes, sizeof(attributes));
  if (fd >= 0) close(static_cast<int>(fd));
  return fd >= 0;
}

void ExpectGone(const std::set<uint32_t>& programs) {
  EXPECT_FALSE(programs.empty());
  for (const uint32_t program : programs) {
    EXPECT_TRUE(Eventually([&] { return !IsInTheKernel(program); })) << program;
  }
}

trace::Trace ReadConserved(const std::string& path) {
  Result<trace::Trace> trace = trace::ReadTrace(path);
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  if (!trace.ok()) return {};
  const trace::ConservationReport report = trace::CheckConservation(trace.value());
  EXPECT_TRUE(report.ok()) << report.first_problem;
  return std::move(trace).value();
}

// A storm of `ms`, which leaves its exit code in a file when it has come to its end.
std::string Storm(int ms, const std::string& end_file) {
  return "sh -c '" + ProgramPath("switch_storm") + " " + std::to_string(ms) + "; code=$?; " +
         "echo $code > " + end_file + "; exit $code'";
}

void ExpectItsOwnEnd(const std::string& end_file) {
  const std::string code = std::to_string(kStormCode) + "\n";
  EXPECT_TRUE(Eventually([&] { return SizeOf(end_file) == code.size(); }));
  EXPECT_EQ(ReadWholeFile(end_file).value(), code);
}

std::string RecordTo(const std::string& path) {
  return std::string(CULPRIT_BINARY) + " record --budget 0 -o " + path + " ";
}

// False: the storm was over before the signal came, so nothing was tried.
bool EndBySignal(int signal, int expected_code, int storm_ms) {
  const TestFolder folder;
  const std::string path = folder / "t.ctrace";
  ChildProgram recorder(RecordTo(path) + "-- " + Storm(storm_ms, folder / "end"));
  EXPECT_TRUE(Eventually([&] { return SizeOf(path) > 16'384; }));
  const std::set<uint32_t> programs = KernelPrograms(recorder.pid());
  recorder.Signal(signal);
  const int code = recorder.Wait();
  if (code == kStormCode || programs.empty()) return false;
  EXPECT_EQ(code, expected_code);
  ExpectGone(programs);
  EXPECT_GT(ReadConserved(path).events.size(), 100u);
  ExpectItsOwnEnd(folder / "end");
  return true;
}

// A busy machine takes its time.
void EndBySignal(int signal, int expected_code) {
  for (const int storm_ms : {1'500, 6'000, 24'000}) {
    if (EndBySignal(signal, expected_code, storm_ms) || testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "the command was always over before the signal came";
}

TEST(RecordFault, InterruptedItEndsInGoodOrderAndTheCommandRunsOn) {
  SKIP_IF_IT_CANNOT_RECORD();
  EndBySignal(SIGINT, 0);
}

TEST(RecordFault, KilledItLeavesNothingInTheKernelAndTheCommandRunsOn) {
  SKIP_IF_IT_CANNOT_RECORD();
  EndBySignal(SIGKILL, 128 + SIGKILL);
}

class SmallDisk {
 public:
  explicit SmallDisk(const TestFolder& folder) : path_(folder / "disk") {
    std::filesystem::create_directory(path_);
    mounted_ = mount("none", path_.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(RecordFault, AFullDiskEndsTheRecordingNotTheCommand) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const SmallDisk disk(folder);
  if (!disk.mounted()) GTEST_SKIP() << "a tmpfs cannot be mounted here";
  const std::string path = disk.path() + "/t.ctrace";
  cli::ShellOutcome ran;
  // A busy machine takes longer to fill it.
  for (const int storm_ms : {1'000, 6'000, 24'000}) {
    std::filesystem::remove(path);
    std::filesystem::remove(folder / "end");
    ran = cli::RunShell(RecordTo(path) + "-- " + Storm(storm_ms, folder / "end"));
    if (ran.code != kStormCode) break;
  }
  EXPECT_EQ(ran.code, 1) << ran.text;
  EXPECT_NE(ran.text.find("No space left"), std::string::npos) << ran.text;
  EXPECT_GT(ReadConserved(path).events.size(), 100u);
  ExpectItsOwnEnd(folder / "end");
}

TEST(RecordFault, WhatFindsNoRoomInTheRingIsCountedAndItsTimeKept) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  // How much is lost is up to the scheduler.
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const Result<record::RecordOutcome> outcome = record::Record(
        {.command = {"/bin/sh", "-c", ProgramPath("switch_storm") + " 300 > /dev/null"},
         .path = folder / "t.ctrace",
         .overwrite = Overwrite::kAllow,
         .budget = 0,
         .ring_bytes = static_cast<uint64_t>(2 * sysconf(_SC_PAGESIZE))},
        {});
    ASSERT_TRUE(outcome.ok()) << outcome.error().ToString();
    EXPECT_EQ(outcome.value().exit_code, kStormCode);
    const trace::Trace trace = ReadConserved(folder / "t.ctrace");
    EXPECT_EQ(trace.metadata.properties.at("drops.total"), std::to_string(outcome.value().lost));
    if (outcome.value().lost > 0) return;
  }
  ADD_FAILURE() << "nothing was ever lost";
}

TEST(RecordFault, TwoRecordersSeeTheSameProcess) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const ChildProgram storm(ProgramPath("switch_storm") + " 20000");
  const std::string whom = "--for 500ms --pid " + std::to_string(storm.pid());
  ChildProgram one(RecordTo(folder / "1.ctrace") + whom);
  ChildProgram two(RecordTo(folder / "2.ctrace") + whom);
  EXPECT_EQ(one.Wait(), 0);
  EXPECT_EQ(two.Wait(), 0);
  for (const char* name : {"1.ctrace", "2.ctrace"}) {
    EXPECT_GT(ReadConserved(folder / name).events.size(), 100u) << name;
  }
}

// SIGSTOP is what a terminal's suspend comes to, for a process without a terminal.
TEST(RecordFault, SuspendedForAWhileItStillAccountsForAllTime) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const std::string path = folder / "t.ctrace";
  ChildProgram recorder(RecordTo(path) + "-- " + Storm(1200, folder / "end"));
  ASSERT_TRUE(Eventually([&] { return SizeOf(path) > 16'384; }));
  const std::set<uint32_t> programs = KernelPrograms(recorder.pid());
  recorder.Signal(SIGSTOP);
  usleep(300'000);
  recorder.Signal(SIGCONT);
  EXPECT_EQ(recorder.Wait(), kStormCode);
  ExpectGone(programs);
  const trace::Trace trace = ReadConserved(path);
  EXPECT_GE(trace.metadata.end_ns - trace.metadata.begin_ns, 1200 * kMs);
  ExpectItsOwnEnd(folder / "end");
}

}  // namespace
}  // namespace culprit::TEST_FILE
