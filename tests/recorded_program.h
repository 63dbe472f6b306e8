// SPDX-License-Identifier: Apache-2.0
//
// RecordedProgram: one of tests/programs, run under `culprit record`, with what the
// program told about itself (programs/truth.h) beside what was recorded. For tests.
//
// What must hold on any machine is checked at once with EXPECT. What a busy
// machine can spoil, because the program itself was held up between reading the
// clock and doing what it plans, is a deviation: RecordUntilRight records again, up
// to three times, and fails only if none came out right.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "cli/shell_run.h"
#include "record/bpf_engine.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit {

inline bool CanRecord() {
  return record::BpfEngine::Built() && geteuid() == 0 &&
         access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

#define SKIP_IF_IT_CANNOT_RECORD() \
  if (!CanRecord()) GTEST_SKIP() << "recording needs root, BTF and a build with the BPF engine"

inline std::string ProgramPath(const std::string& name) {
  return std::string(CULPRIT_PROGRAMS) + "/" + name;
}

struct RecordedProgram {
  int code = -1;
  std::string notes;                 // what the recorder printed
  std::vector<nlohmann::json> told;  // by the program, a line each
  trace::Trace trace;

  // Lines that have this key.
  std::vector<nlohmann::json> Told(const std::string& key) const {
    std::vector<nlohmann::json> lines;
    for (const nlohmann::json& line : told) {
      if (line.contains(key)) lines.push_back(line);
    }
    return lines;
  }
  // Whoever had that id at that time; none() if nobody had.
  trace::ThreadId ThreadAt(int64_t tid, int64_t time_ns) const {
    const auto& threads = trace.dictionary.threads();
    for (size_t i = 0; i < threads.size(); ++i) {
      const bool begun = threads[i].start_ns == trace::kNoTime || threads[i].start_ns <= time_ns;
      const bool ended = threads[i].end_ns != trace::kNoTime && threads[i].end_ns <= time_ns;
      if (threads[i].tid == tid && begun && !ended) return trace::ThreadId(i);
    }
    return trace::ThreadId::none();
  }
  bool HasFrame(trace::StackId stack, const std::string& name) const {
    return trace.dictionary.StackText(stack).find(name) != std::string::npos;
  }
};

inline RecordedProgram RecordProgram(const std::string& command, const std::string& flags = "") {
  const TestFolder folder;
  const std::string path = folder / "t.ctrace";
  RecordedProgram recorded;
  const cli::ShellOutcome ran =
      cli::RunShell(std::string(CULPRIT_BINARY) + " record --budget 0 " + flags + " -o " + path +
                    " -- " + command + " > " + folder / "told");
  recorded.code = ran.code;
  recorded.notes = ran.text;
  std::ifstream told(folder / "told");
  for (std::string line; std::getline(told, line);) {
    recorded.told.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_FALSE(recorded.told.back().is_discarded()) << line;
  }
  Result<trace::Trace> trace = trace::ReadTrace(path);
  EXPECT_TRUE(trace.ok()) << recorded.notes;
  if (!trace.ok()) return recorded;
  recorded.trace = std::move(trace).value();
  const trace::ConservationReport report = trace::CheckConservation(recorded.trace);
  EXPECT_TRUE(report.ok()) << command << ": " << report.first_problem;
  EXPECT_GT(report.threads_checked, 0u) << command;
  return recorded;
}

// What is wrong with a recording that may be better next time; empty: nothing.
using Deviations = std::vector<std::string>;

inline void RecordUntilRight(const std::string& command,
                             const std::function<Deviations(const RecordedProgram&)>& check) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    const RecordedProgram recorded = RecordProgram(command);
    ASSERT_EQ(recorded.code, 0) << recorded.notes;
    const Deviations deviations = check(recorded);
    if (deviations.empty() || testing::Test::HasFailure() || testing::Test::IsSkipped()) return;
    if (attempt < kAttempts) continue;
    for (const std::string& deviation : deviations) ADD_FAILURE() << command << ": " << deviation;
    return;
  }
}

}  // namespace culprit
