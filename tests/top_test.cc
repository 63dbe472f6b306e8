// SPDX-License-Identifier: Apache-2.0
//
// culprit top from outside, against a program of known behaviour.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

using nlohmann::json;

cli::ShellOutcome Top(const std::string& flags, int program_ms = 6000) {
  return cli::RunShell(ProgramPath("convoy_loop") + " " + std::to_string(program_ms) +
                       " & program=$!; sleep 0.2; " + CULPRIT_BINARY + " top " + flags +
                       "; code=$?; kill $program; exit $code");
}

TEST(TopProgram, TheConvoysLockStandsFirst) {
  SKIP_IF_IT_CANNOT_RECORD();
  const cli::ShellOutcome ran =
      Top("--pid $program --budget 0 --by function --interval 1s --count 2 --json");
  ASSERT_EQ(ran.code, 0) << ran.text;
  std::vector<json> looks;
  std::istringstream lines(ran.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("{")) looks.push_back(json::parse(line));
  }
  ASSERT_EQ(looks.size(), 2u) << ran.text;
  const json& look = looks.back();
  const json& first = look["rows"][0];
  EXPECT_NE(first["what"].get<std::string>().find("QueueInTheConvoy"), std::string::npos) << look;
  EXPECT_EQ(first["class"], "lock");
  EXPECT_NE(first["waker"].get<std::string>().find("convoy_loop ("), std::string::npos);
  // Three of four threads queue at any time.
  const auto dur_ns = look["dur_ns"].get<double>();
  EXPECT_NEAR(first["wait_ns"].get<double>() / dur_ns, 3.0, 0.6) << look;
  int64_t rows_ns = 0;
  for (const json& row : look["rows"]) rows_ns += row["wait_ns"].get<int64_t>();
  EXPECT_EQ(rows_ns, look["wait_ns"].get<int64_t>());
}

TEST(TopProgram, PlainBlocksWhereThereIsNoTerminal) {
  SKIP_IF_IT_CANNOT_RECORD();
  for (const std::string by : {"component", "pattern", "thread", "process"}) {
    const cli::ShellOutcome ran =
        Top("--comm convoy_loop --interval 500ms --count 1 --by " + by, 3000);
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.text.find("culprit top: comm convoy_loop"), std::string::npos) << ran.text;
    EXPECT_NE(ran.text.find("recording by bpf costs"), std::string::npos);
    EXPECT_EQ(ran.text.find('\033'), std::string::npos);
  }
}

TEST(TopProgram, SigintEndsItWithCodeZero) {
  SKIP_IF_IT_CANNOT_RECORD();
  // A busy machine needs longer until there is something to see.
  cli::ShellOutcome ran;
  for (const char* seconds : {"3", "10", "30"}) {
    ran = cli::RunShell(std::string("timeout -s INT ") + seconds + " " + CULPRIT_BINARY +
                        " top --interval 500ms");
    // What timeout says when it had to.
    EXPECT_EQ(ran.code, 124);
    if (ran.text.find("the whole system") != std::string::npos) return;
  }
  ADD_FAILURE() << ran.text;
}

TEST(TopProgram, WithoutPermissionItSaysWhatIsMissing) {
  SKIP_IF_IT_CANNOT_RECORD();
  if (!cli::HasProgram("setpriv")) GTEST_SKIP() << "setpriv is not installed";
  const cli::ShellOutcome ran = cli::RunShell(
      std::string("setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all ") +
      CULPRIT_BINARY + " top --tier bpf --count 1");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.text.find("root"), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace culprit::TEST_FILE
