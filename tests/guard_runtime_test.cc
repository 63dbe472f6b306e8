// SPDX-License-Identifier: Apache-2.0
//
// The injected runtime from outside, in real processes: programs do what they did
// (tests/programs/guard_habits.cc), whatever plan is in force and whatever becomes
// of the session; the training log says what the program did; slow units are
// reported. The plans are made here by hand from a training log, without culprit's
// learning, so that nothing but the runtime is on trial.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "cli/shell_run.h"
#include "guard/guarded_process.h"
#include "guard/injector.h"
#include "guard/session_folder.h"
#include "guard/training_log_reader.h"

namespace culprit::guard {
namespace {

using cli::RunShell;
using cli::ShellOutcome;

// With CULPRIT_GUARD_X86 set to a folder, the programs and the library there are
// tested, in an emulator (cmake/guard_x86.cmake).
std::string Setting(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}
const std::string kX86 = Setting("CULPRIT_GUARD_X86");
const std::string kEmulator = Setting("CULPRIT_GUARD_EMULATOR");
const std::string kPrograms = kX86.empty() ? CULPRIT_PROGRAMS : kX86;
const std::string kHabits = kPrograms + "/guard_habits";
const std::string kLibrary =
    (kX86.empty() ? std::filesystem::path(CULPRIT_BINARY).parent_path().string() : kX86) +
    "/libculprit_guard.so";

// How a program is run with variables set.
std::string Command(const std::vector<std::string>& variables) {
  std::string command = kX86.empty() ? (variables.empty() ? "" : "env") : kEmulator;
  for (const std::string& variable : variables) {
    command += (kX86.empty() ? " " : " -E ") + variable;
  }
  return command + " ";
}

uint64_t Fnv1a(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// A plan by hand; see wire.h.
struct HandPlan {
  wire::PlanHeader header = {};
  std::vector<wire::PlanModule> modules;
  std::vector<wire::PlanFunction> functions;
  std::vector<wire::PlanContext> contexts;
  std::vector<wire::PlanSite> sites;
  std::vector<wire::PlanType> types;

  explicit HandPlan(wire::Mode mode) {
    header.magic = wire::Magic("CGPLAN01");
    header.version = wire::kWireVersion;
    header.mode = static_cast<uint32_t>(mode);
    header.max_reports_a_second = 100;
    header.log_bytes = 256 << 20;
  }
  void AddModule(const std::string& name) {
    wire::PlanModule module = {};
    name.copy(module.file_name, sizeof(module.file_name) - 1);
    modules.push_back(module);
  }
  std::string Bytes() const {
    std::string body;
    Add(body, modules);
    Add(body, functions);
    Add(body, contexts);
    Add(body, sites);
    Add(body, types);
    wire::PlanHeader full = header;
    full.modules = static_cast<uint32_t>(modules.size());
    full.functions = static_cast<uint32_t>(functions.size());
    full.contexts = static_cast<uint32_t>(contexts.size());
    full.sites = static_cast<uint32_t>(sites.size());
    full.types = static_cast<uint32_t>(types.size());
    full.bytes = sizeof(full) + body.size();
    full.checksum = Fnv1a(body);
    return std::string(reinterpret_cast<const char*>(&full), sizeof(full)) + body;
  }

 private:
  template <class T>
  static void Add(std::string& body, const std::vector<T>& members) {
    body.append(reinterpret_cast<const char*>(members.data()), members.size() * sizeof(T));
  }
};

SessionFolder MakeSession(const std::string& plan, const std::string& parent = "") {
  Result<SessionFolder> session = SessionFolder::Create({.needed_bytes = 0, .parent = parent});
  EXPECT_TRUE(session.ok());
  EXPECT_TRUE(session.value().WritePlan(1, plan).ok());
  EXPECT_TRUE(session.value().Want(1).ok());
  return std::move(session).value();
}

ShellOutcome RunHabit(const std::string& habit, const std::string& session = "") {
  std::vector<std::string> variables;
  if (!session.empty()) {
    variables = {"LD_PRELOAD=" + kLibrary, std::string(wire::kSessionVariable) + "=" + session};
  }
  const std::string with = Command(variables);
  const std::string operand = habit == "libraries" ? " " + kPrograms + "/late_module.so" : "";
  return RunShell(with + kHabits + " " + habit + operand + " </dev/null");
}

std::vector<GuardedProcess> ProcessesOf(const SessionFolder& session) {
  std::vector<GuardedProcess> processes;
  for (const int64_t pid : session.Processes()) {
    Result<GuardedProcess> process = GuardedProcess::Open(session.path(), pid);
    EXPECT_TRUE(process.ok());
    if (process.ok()) processes.push_back(std::move(process).value());
  }
  return processes;
}

// Where nm says that a function of the habits begins.
uint64_t OffsetOf(const std::string& function) {
  const std::string nm = kX86.empty() ? "nm" : "x86_64-linux-gnu-nm";
  const ShellOutcome found = RunShell(nm + " -C " + kHabits + " | grep -w '" + function + "(int)'");
  return std::stoull(found.text, nullptr, 16);
}

// What one process logged of one thread, and where its program lies.
struct TrainedHabit {
  uint64_t bias = 0;
  uint64_t work_id = 0;
  std::vector<LogRecord> records;
  std::vector<std::vector<uint64_t>> words;  // of the records
  uint64_t lost = 0;
};

uint64_t BiasOf(const SessionFolder& session, int64_t pid, const std::string& name) {
  std::ifstream modules(session.FilePath("modules", pid));
  for (std::string line; std::getline(modules, line);) {
    if (!line.ends_with("/" + name)) continue;
    return std::stoull(line.substr(line.find(' ') + 1), nullptr, 16);
  }
  ADD_FAILURE() << name << " is not in the list of modules";
  return 0;
}

uint64_t IdOf(const SessionFolder& session, int64_t pid, uint64_t offset) {
  const auto bytes = ReadWholeFile(session.FilePath("functions", pid));
  EXPECT_TRUE(bytes.ok());
  const size_t count =
      (bytes.value().size() - sizeof(wire::FunctionsHeader)) / sizeof(wire::FunctionRecord);
  for (size_t i = 0; i < count; ++i) {
    wire::FunctionRecord record;
    std::memcpy(&record, bytes.value().data() + sizeof(wire::FunctionsHeader) + i * sizeof(record),
                sizeof(record));
    if (record.offset == offset && record.module == 0) return i;
  }
  ADD_FAILURE() << "no function at " << offset;
  return 0;
}

TrainedHabit Train(const std::string& habit) {
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  EXPECT_EQ(RunHabit(habit, session.path()).code, 0);
  Diagnostics diagnostics;
  const auto logs = ListLogs(session.path(), diagnostics);
  TrainedHabit trained;
  EXPECT_TRUE(logs.ok());
  EXPECT_EQ(logs.value().size(), 1u);
  if (!logs.ok() || logs.value().empty()) return trained;
  const LogFile& log = logs.value().front();
  trained.bias = BiasOf(session, log.pid, "guard_habits");
  trained.work_id = IdOf(session, log.pid, OffsetOf("Work"));
  auto cursor = LogCursor::Open(log, diagnostics);
  EXPECT_TRUE(cursor.ok());
  for (LogRecord record; cursor.value().Next(record);) {
    trained.words.emplace_back(record.words.begin(), record.words.end());
    record.words = {};
    trained.records.push_back(record);
  }
  EXPECT_EQ(diagnostics.total(), 0u);
  return trained;
}

// The loop around ServeOne's poll, and Work at every depth that it was seen.
HandPlan GuardPlan(const TrainedHabit& trained, uint64_t threshold_ns) {
  HandPlan plan(wire::Mode::kGuard);
  plan.AddModule("guard_habits");
  plan.header.unknown_ns = threshold_ns;
  std::set<int32_t> depths;
  uint64_t base16 = 0;
  for (size_t i = 0; i < trained.records.size(); ++i) {
    const LogRecord& record = trained.records[i];
    if (record.kind == wire::LogKind::kWaitEnter &&
        record.a == static_cast<uint32_t>(wire::WaitCall::kPoll) && plan.sites.empty() &&
        i + 1 < trained.records.size() && trained.records[i + 1].kind == wire::LogKind::kStack) {
      // The holder is the frame outside of ServeOne.
      const uint64_t holder_sp = trained.words[i + 1][3];
      base16 = (holder_sp >> 4) & ((uint64_t{1} << 40) - 1);
      plan.sites.push_back({.return_offset = trained.words[i][2] - trained.bias,
                            .module = 0,
                            .call = record.a,
                            .loop = 0,
                            .base_offset = static_cast<int32_t>((base16 - record.b) * 16),
                            .holder_module = wire::kAnyHolder});
    }
    if (record.kind == wire::LogKind::kEnter && record.a == trained.work_id && base16 != 0) {
      depths.insert(static_cast<int32_t>(base16 - record.b) * 16);
    }
  }
  wire::PlanType type = {.kind = 0, .loop = 0, .threshold_ns = threshold_ns, .contexts = {}};
  for (const int32_t depth : depths) {
    const auto bit = static_cast<uint32_t>(plan.contexts.size());
    type.contexts[0] |= uint64_t{1} << bit;
    plan.contexts.push_back({.depth = depth,
                             .flags = 0,
                             .bit = bit,
                             .return_module = wire::kAnyReturn,
                             .return_offset = 0});
  }
  plan.functions.push_back({.offset = OffsetOf("Work"),
                            .module = 0,
                            .flags = 0,
                            .first_context = 0,
                            .contexts = static_cast<uint32_t>(plan.contexts.size())});
  plan.types.push_back(type);
  return plan;
}

const TrainedHabit& SlowHabit() {
  static const TrainedHabit trained = Train("slow");
  return trained;
}

std::vector<wire::Violation> ViolationsOf(GuardedProcess& process) {
  std::vector<wire::Violation> violations;
  RingSink sink;
  sink.violation = [&](const wire::Violation& violation) { violations.push_back(violation); };
  sink.samples = [](std::span<const wire::Sample>) {};
  sink.modules_changed = [] {};
  process.Drain(sink);
  return violations;
}

class GuardHabit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string habit = GetParam();
    if (!kX86.empty() && (habit == "vfork" || habit == "cancel")) {
      GTEST_SKIP() << "the emulator starts other programs without itself, and cannot cancel";
    }
  }
};

TEST_P(GuardHabit, IsTheSameInTraining) {
  const ShellOutcome alone = RunHabit(GetParam());
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  const ShellOutcome trained = RunHabit(GetParam(), session.path());
  EXPECT_EQ(trained.code, alone.code);
  EXPECT_EQ(trained.text, alone.text);
  ASSERT_FALSE(session.Processes().empty());
  for (const GuardedProcess& process : ProcessesOf(session)) {
    EXPECT_GT(process.Counters().patched, 1000u);
  }
}

TEST_P(GuardHabit, IsTheSameWithGuards) {
  const ShellOutcome alone = RunHabit(GetParam());
  const SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 1'000).Bytes());
  const ShellOutcome guarded = RunHabit(GetParam(), session.path());
  EXPECT_EQ(guarded.code, alone.code);
  EXPECT_EQ(guarded.text, alone.text);
  const std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_FALSE(processes.empty());
  EXPECT_EQ(processes.front().Counters().patched, 1u);
  EXPECT_GT(processes.front().Counters().units, 0u);
}

TEST_P(GuardHabit, IsTheSameWhileCalibrating) {
  const ShellOutcome alone = RunHabit(GetParam());
  HandPlan plan = GuardPlan(SlowHabit(), 0);
  plan.header.mode = static_cast<uint32_t>(wire::Mode::kCalibrate);
  const SessionFolder session = MakeSession(plan.Bytes());
  const ShellOutcome guarded = RunHabit(GetParam(), session.path());
  EXPECT_EQ(guarded.code, alone.code);
  EXPECT_EQ(guarded.text, alone.text);
}

INSTANTIATE_TEST_SUITE_P(Habits, GuardHabit,
                         testing::Values("threads", "forks", "vfork", "signals", "exceptions",
                                         "longjmp", "recursion", "libraries", "seccomp", "errors",
                                         "closeall", "cancel"),
                         [](const auto& habit) { return std::string(habit.param); });

TEST(GuardTraining, LogsEveryEntryAndEveryWait) {
  const TrainedHabit& trained = SlowHabit();
  std::map<uint32_t, uint64_t> polls;
  uint64_t works = 0;
  uint64_t ready = 0;
  for (size_t i = 0; i < trained.records.size(); ++i) {
    const LogRecord& record = trained.records[i];
    if (record.kind == wire::LogKind::kEnter && record.a == trained.work_id) ++works;
    if (record.a != static_cast<uint32_t>(wire::WaitCall::kPoll)) continue;
    if (record.kind == wire::LogKind::kWaitEnter) ++polls[static_cast<uint32_t>(record.kind)];
    if (record.kind == wire::LogKind::kWaitExit) ready += record.b;
  }
  EXPECT_EQ(works, 204u);
  EXPECT_EQ(polls[static_cast<uint32_t>(wire::LogKind::kWaitEnter)], 200u);
  EXPECT_EQ(ready, 200u);
}

TEST(GuardTraining, EndsAtItsBoundAndTheProgramGoesOn) {
  HandPlan plan(wire::Mode::kTrain);
  plan.header.log_bytes = 64 << 10;
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("recursion", session.path()).text, RunHabit("recursion").text);
  EXPECT_LE(session.LogBytes(), 65u << 10);
}

TEST(GuardUnits, SlowOnesAreReportedWithTheirStacks) {
  const SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 20'000'000).Bytes());
  EXPECT_EQ(RunHabit("slow", session.path()).code, 0);
  std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].Counters().units, 199u);  // the last ends at no wait
  EXPECT_TRUE(processes[0].Counters().ended);
  const std::vector<wire::Violation> violations = ViolationsOf(processes[0]);
  ASSERT_EQ(violations.size(), 3u);
  const uint64_t bias = BiasOf(session, processes[0].pid(), "guard_habits");

  // Dawdle enters Work behind its delay: reported there, with what called it.
  EXPECT_EQ(violations[0].flags, wire::Violation::kStillRunning);
  EXPECT_EQ(violations[0].type, 0u);
  EXPECT_GE(violations[0].wall_ns, 40'000'000u);
  ASSERT_GE(violations[0].frames, 4u);
  EXPECT_EQ(violations[0].frame[0] - bias, OffsetOf("Work"));
  const uint64_t dawdle = bias + OffsetOf("Dawdle");
  EXPECT_GT(violations[0].frame[1], dawdle);
  EXPECT_LT(violations[0].frame[1], dawdle + 200);

  EXPECT_EQ(violations[1].flags, wire::Violation::kEndOfRunning | wire::Violation::kStackFromSite);
  EXPECT_EQ(violations[1].begin_ns, violations[0].begin_ns);
  EXPECT_GE(violations[1].wall_ns, violations[0].wall_ns);
  EXPECT_GE(violations[1].frames, 3u);

  EXPECT_EQ(violations[2].flags, wire::Violation::kStackFromSite);
  EXPECT_GE(violations[2].wall_ns, 60'000'000u);
  EXPECT_LT(violations[2].cpu_ns, 30'000'000u);
  ASSERT_GE(violations[2].frames, 3u);
  const uint64_t serve = bias + OffsetOf("ServeOne");
  EXPECT_GT(violations[2].frame[0], serve);
  EXPECT_LT(violations[2].frame[0], serve + 400);
  EXPECT_EQ(processes[0].Counters().violations, 2u);
}

TEST(GuardUnits, NothingIsWrittenWhenNobodyListens) {
  SessionFolder session = MakeSession(GuardPlan(SlowHabit(), 20'000'000).Bytes());
  session.Beat(1);
  EXPECT_EQ(RunHabit("slow", session.path()).code, 0);
  std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].Counters().violations, 2u);
  EXPECT_EQ(processes[0].Counters().suppressed, 2u);
  EXPECT_TRUE(ViolationsOf(processes[0]).empty());
}

TEST(GuardUnits, AFunctionThatIsHitTooOftenIsUnpatched) {
  HandPlan plan = GuardPlan(SlowHabit(), 20'000'000);
  plan.header.max_hits_a_second = 10'000;
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("hot", session.path()).text, "done\n");
  const std::vector<GuardedProcess> processes = ProcessesOf(session);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].Counters().removed, 1u);
  EXPECT_EQ(processes[0].Counters().patched, 0u);
  EXPECT_LT(processes[0].Counters().hits, 100'000u);
}

TEST(GuardSession, ADamagedOrMissingPlanChangesNothing) {
  const std::string good = HandPlan(wire::Mode::kTrain).Bytes();
  std::string flipped = GuardPlan(SlowHabit(), 1'000).Bytes();
  flipped[flipped.size() - 3] ^= 1;
  for (const std::string& plan : {std::string(), good.substr(0, 60), flipped}) {
    const SessionFolder session = MakeSession(plan);
    EXPECT_EQ(RunHabit("longjmp", session.path()).text, "100 jumps\n");
    EXPECT_TRUE(session.Processes().empty());
  }
  SessionFolder session = MakeSession(good);
  ASSERT_TRUE(session.Want(7).ok());
  EXPECT_EQ(RunHabit("longjmp", session.path()).text, "100 jumps\n");
  EXPECT_TRUE(session.Processes().empty());
  EXPECT_EQ(RunHabit("longjmp", "/no/such/folder").text, "100 jumps\n");
}

TEST(GuardSession, AProgramThatThePlanDoesNotNameIsLeftAlone) {
  HandPlan plan = GuardPlan(SlowHabit(), 1'000);
  std::strcpy(plan.modules[0].file_name, "another_program");
  const SessionFolder session = MakeSession(plan.Bytes());
  EXPECT_EQ(RunHabit("longjmp", session.path()).text, "100 jumps\n");
  EXPECT_TRUE(session.Processes().empty());
  // The same name, another build.
  HandPlan other = GuardPlan(SlowHabit(), 1'000);
  other.modules[0].build_id_size = 20;
  const SessionFolder other_session = MakeSession(other.Bytes());
  EXPECT_EQ(RunHabit("longjmp", other_session.path()).text, "100 jumps\n");
  EXPECT_TRUE(other_session.Processes().empty());
}

TEST(GuardSession, AFullDiskLosesRecordsAndNothingElse) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting a small disk needs root";
  for (const char* size : {"size=64k", "size=3m"}) {
    const TestFolder folder;
    ASSERT_EQ(mount("tmpfs", folder.path().c_str(), "tmpfs", 0, size), 0);
    {
      const SessionFolder session =
          MakeSession(HandPlan(wire::Mode::kTrain).Bytes(), folder / "sessions");
      EXPECT_EQ(RunHabit("recursion", session.path()).text, RunHabit("recursion").text);
      EXPECT_EQ(RunHabit("forks", session.path()).text, "60 children\n");
    }
    EXPECT_EQ(umount2(folder.path().c_str(), MNT_DETACH), 0);
  }
}

// Feeds the loop of the habits byte by byte.
class FedLoop {
 public:
  explicit FedLoop(const std::string& session) {
    int in[2];
    int out[2];
    EXPECT_EQ(pipe(in), 0);
    EXPECT_EQ(pipe(out), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      close(in[1]);
      const std::string command =
          "exec " +
          Command({"LD_PRELOAD=" + kLibrary, std::string(wire::kSessionVariable) + "=" + session}) +
          kHabits + " loop";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  void Feed(int bytes) {
    for (int i = 0; i < bytes; ++i) EXPECT_EQ(write(in_, "\x05", 1), 1);
    fed_ += bytes;
  }
  // Feeds on until the runtime has come so far. False: it did not in 10 s.
  template <class Reached>
  bool FeedUntil(Reached reached) {
    for (int i = 0; i < 1000; ++i) {
      if (reached()) return true;
      Feed(5);
      usleep(10'000);
    }
    return false;
  }
  // What it printed at the end, as a number, must be what it was fed.
  bool EndsWell() {
    close(in_);
    char text[64] = {};
    const ssize_t got = read(out_, text, sizeof(text) - 1);
    int status = 0;
    waitpid(pid_, &status, 0);
    return got > 0 && status == 0 && std::stol(text) == 16L * fed_;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  long fed_ = 0;
};

TEST(GuardSession, PlansChangeWhileTheProgramRuns) {
  SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  ASSERT_TRUE(session.WritePlan(2, HandPlan(wire::Mode::kOff).Bytes()).ok());
  ASSERT_TRUE(session.WritePlan(3, GuardPlan(SlowHabit(), 1'000'000'000).Bytes()).ok());
  FedLoop loop(session.path());
  const auto counters = [&] {
    const auto process = GuardedProcess::Open(session.path(), loop.pid());
    return process.ok() ? process.value().Counters() : ProcessCounters();
  };
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().plan == 1; }));
  EXPECT_GT(counters().patched, 1000u);
  ASSERT_TRUE(session.Want(2).ok());
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().plan == 2; }));
  EXPECT_EQ(counters().patched, 0u);
  ASSERT_TRUE(session.Want(3).ok());
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().plan == 3; }));
  EXPECT_EQ(counters().patched, 1u);
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().units > 20; }));
  ASSERT_TRUE(session.Want(wire::kRemove).ok());
  ASSERT_TRUE(loop.FeedUntil([&] { return counters().ended; }));
  loop.Feed(50);
  EXPECT_TRUE(loop.EndsWell());
}

// A program that may not make memory executable (prctl PR_SET_MDWE, kept by exec),
// as hardened services are: it cannot be patched, and runs as ever.
TEST(GuardSession, AProgramWhoseMemoryCannotBecomeCodeRunsAsEver) {
  const ShellOutcome alone = RunHabit("threads");
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kSetMdwe = 65;
    if (prctl(kSetMdwe, 1, 0, 0, 0) != 0) _exit(77);
    const ShellOutcome with = RunHabit("threads", session.path());
    _exit(with.code == alone.code && with.text == alone.text ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this kernel cannot forbid it";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const GuardedProcess& process : ProcessesOf(session)) {
    EXPECT_EQ(process.Counters().patched, 0u);
    EXPECT_TRUE(process.Counters().ended);
  }
}

// Whose threads all sleep sees neither that its session ended nor that another is
// wanted.
TEST(GuardSession, ASleeperIsFreedByTheNextStart) {
  SessionFolder ended = MakeSession(GuardPlan(SlowHabit(), 1'000'000'000).Bytes());
  FedLoop loop(ended.path());
  const auto counters = [&](const SessionFolder& session) {
    const auto process = GuardedProcess::Open(session.path(), loop.pid());
    return process.ok() ? process.value().Counters() : ProcessCounters();
  };
  ASSERT_TRUE(loop.FeedUntil([&] { return counters(ended).units > 5; }));
  usleep(100'000);
  ASSERT_TRUE(ended.Want(wire::kRemove).ok());
  EXPECT_FALSE(counters(ended).ended);
  SessionFolder next = MakeSession(GuardPlan(SlowHabit(), 1'000'000'000).Bytes());
  const auto started = InjectRuntime(loop.pid(), kLibrary, next.path());
  ASSERT_TRUE(started.ok()) << started.error().ToString();
  EXPECT_EQ(started.value().start_result, 0u);
  EXPECT_TRUE(counters(ended).ended);
  ASSERT_TRUE(loop.FeedUntil([&] { return counters(next).units > 5; }));
  // The same with a session that has ended: only the freeing.
  usleep(100'000);
  ASSERT_TRUE(next.Want(wire::kRemove).ok());
  ASSERT_EQ(setenv("CULPRIT_GUARD_RUNTIME", kLibrary.c_str(), 1), 0);
  EXPECT_EQ(ReleaseSleepers(next.path()), 0u);
  ASSERT_EQ(unsetenv("CULPRIT_GUARD_RUNTIME"), 0);
  EXPECT_TRUE(counters(next).ended);
  loop.Feed(50);
  EXPECT_TRUE(loop.EndsWell());
}

TEST(GuardSession, AThreadThatWaitsKeepsNoSamples) {
  HandPlan plan = GuardPlan(SlowHabit(), 1'000'000'000);
  plan.header.sample_every = 1;
  const SessionFolder session = MakeSession(plan.Bytes());
  FedLoop loop(session.path());
  Result<GuardedProcess> process = Error{.message = "not yet"};
  ASSERT_TRUE(loop.FeedUntil([&] {
    process = GuardedProcess::Open(session.path(), loop.pid());
    return process.ok() && process.value().Counters().units > 5;
  }));
  usleep(200'000);
  uint64_t samples = 0;
  RingSink sink;
  sink.samples = [&](std::span<const wire::Sample> some) { samples += some.size(); };
  process.value().Drain(sink);
  samples = 0;
  loop.Feed(1);  // a lone unit, and then nothing
  for (int i = 0; i < 500 && samples == 0; ++i) {
    usleep(10'000);
    process.value().Drain(sink);
  }
  EXPECT_GT(samples, 0u);
  EXPECT_TRUE(loop.EndsWell());
}

// A program that no library can be loaded into.
TEST(GuardSession, AStaticProgramRunsAsEver) {
  const ShellOutcome kind = RunShell("file -L /sbin/ldconfig");
  if (kind.text.find("static") == std::string::npos) {
    GTEST_SKIP() << "no static program here: " << kind.text;
  }
  const SessionFolder session = MakeSession(HandPlan(wire::Mode::kTrain).Bytes());
  const ShellOutcome alone = RunShell("/sbin/ldconfig -V");
  const ShellOutcome with = RunShell("env LD_PRELOAD=" + kLibrary + " " + wire::kSessionVariable +
                                     "=" + session.path() + " /sbin/ldconfig -V");
  EXPECT_EQ(with.code, alone.code);
  EXPECT_EQ(with.text, alone.text);
  EXPECT_TRUE(session.Processes().empty());
}

}  // namespace
}  // namespace culprit::guard
