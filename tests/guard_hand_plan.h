// SPDX-License-Identifier: Apache-2.0
//
// For tests of the injected runtime from outside: plans made by hand from a training log,
// without culprit's learning, so that nothing but the runtime is on trial, and programs of
// known habits (programs/guard_habits.cc) run under them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "cli/shell_run.h"
#include "guard/guarded_process.h"
#include "guard/injector.h"
#include "guard/session_folder.h"
#include "guard/training_log_reader.h"

namespace culprit::guard {

using cli::RunShell;
using cli::ShellOutcome;

// With CULPRIT_GUARD_X86 set to a folder, the programs and the library there are
// tested, in an emulator (cmake/guard_x86.cmake).
inline std::string Setting(const char* name) {
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
inline std::string Command(const std::vector<std::string>& variables) {
  std::string command = kX86.empty() ? (variables.empty() ? "" : "env") : kEmulator;
  for (const std::string& variable : variables) {
    command += (kX86.empty() ? " " : " -E ") + variable;
  }
  return command + " ";
}

inline uint64_t Fnv1a(const std::string& bytes) {
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

inline SessionFolder MakeSession(const std::string& plan, const std::string& parent = "") {
  Result<SessionFolder> session = SessionFolder::Create({.needed_bytes = 0, .parent = parent});
  EXPECT_TRUE(session.ok());
  EXPECT_TRUE(session.value().WritePlan(1, plan).ok());
  EXPECT_TRUE(session.value().Want(1).ok());
  return std::move(session).value();
}

inline ShellOutcome RunHabit(const std::string& habit, const std::string& session = "") {
  std::vector<std::string> variables;
  if (!session.empty()) {
    variables = {"LD_PRELOAD=" + kLibrary, std::string(wire::kSessionVariable) + "=" + session};
  }
  const std::string with = Command(variables);
  const std::string operand = habit == "libraries" ? " " + kPrograms + "/late_module.so" : "";
  return RunShell(with + kHabits + " " + habit + operand + " </dev/null");
}

inline std::vector<GuardedProcess> ProcessesOf(const SessionFolder& session) {
  std::vector<GuardedProcess> processes;
  for (const int64_t pid : session.Processes()) {
    Result<GuardedProcess> process = GuardedProcess::Open(session.path(), pid);
    EXPECT_TRUE(process.ok());
    if (process.ok()) processes.push_back(std::move(process).value());
  }
  return processes;
}

// Where nm says that a function of the habits begins.
inline uint64_t OffsetOf(const std::string& function) {
  const std::string nm = kX86.empty() ? "nm" : "x86_64-linux-gnu-nm";
  const ShellOutcome found = RunShell(nm + " -C " + kHabits + " | grep -w '" + function + "(int)'");
  return std::stoull(found.text, nullptr, 16);
}

// What one process logged of one thread, and where its program lies.
struct TrainedHabit {
  uint64_t bias = 0;
  uint64_t work_id = 0;
  uint64_t turn_id = 0;  // of NextTurn
  std::vector<LogRecord> records;
  std::vector<std::vector<uint64_t>> words;  // of the records
  uint64_t lost = 0;
};

inline uint64_t BiasOf(const SessionFolder& session, int64_t pid, const std::string& name) {
  std::ifstream modules(session.FilePath("modules", pid));
  for (std::string line; std::getline(modules, line);) {
    if (!line.ends_with("/" + name)) continue;
    return std::stoull(line.substr(line.find(' ') + 1), nullptr, 16);
  }
  ADD_FAILURE() << name << " is not in the list of modules";
  return 0;
}

inline uint64_t IdOf(const SessionFolder& session, int64_t pid, uint64_t offset) {
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

inline TrainedHabit Train(const std::string& habit) {
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
  trained.turn_id = IdOf(session, log.pid, OffsetOf("NextTurn"));
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

// Where the stack of the first poll that may block is logged; records.size(): nowhere.
inline size_t StackOfPoll(const TrainedHabit& trained) {
  for (size_t i = 1; i < trained.records.size(); ++i) {
    const LogRecord& wait = trained.records[i - 1];
    if (wait.kind == wire::LogKind::kWaitEnter &&
        wait.a == static_cast<uint32_t>(wire::WaitCall::kPoll) &&
        trained.records[i].kind == wire::LogKind::kStack) {
      return i;
    }
  }
  ADD_FAILURE() << "no poll was logged with its stack";
  return trained.records.size();
}

// The loop around the function that polls, and Work at every depth that it was seen.
inline HandPlan GuardPlan(const TrainedHabit& trained, uint64_t threshold_ns) {
  HandPlan plan(wire::Mode::kGuard);
  plan.AddModule("guard_habits");
  plan.header.unknown_ns = threshold_ns;
  const size_t stack = StackOfPoll(trained);
  if (stack == trained.records.size()) return plan;
  const LogRecord& wait = trained.records[stack - 1];
  // The holder is the frame outside of the function that polls.
  const uint64_t base16 = (trained.words[stack][3] >> 4) & ((uint64_t{1} << 40) - 1);
  plan.sites.push_back({.return_offset = trained.words[stack - 1][2] - trained.bias,
                        .module = 0,
                        .call = wait.a,
                        .loop = 0,
                        .base_offset = static_cast<int32_t>((base16 - wait.b) * 16),
                        .holder_module = wire::kAnyHolder});
  std::set<int32_t> depths;
  for (const LogRecord& record : trained.records) {
    if (record.kind == wire::LogKind::kEnter && record.a == trained.work_id) {
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

inline const TrainedHabit& SlowHabit() {
  static const TrainedHabit trained = Train("slow");
  return trained;
}

inline std::vector<wire::Violation> ViolationsOf(GuardedProcess& process) {
  std::vector<wire::Violation> violations;
  RingSink sink;
  sink.violation = [&](const wire::Violation& violation) { violations.push_back(violation); };
  sink.samples = [](std::span<const wire::Sample>) {};
  sink.modules_changed = [] {};
  process.Drain(sink);
  return violations;
}

}  // namespace culprit::guard
