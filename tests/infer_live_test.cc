// SPDX-License-Identifier: Apache-2.0
//
// culprit infer --live from outside, against a program of known behaviour: its
// profile is made from a recording with stacks, and then its system calls are
// counted while it runs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/test_folder.h"
#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

using nlohmann::json;

class InferLive : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }

  bool MakeProfile() {
    const std::string culprit = CULPRIT_BINARY;
    const cli::ShellOutcome ran =
        cli::RunShell(culprit + " record --syscalls --budget 0 -o " + Path("normal.ctrace") +
                      " -- " + ProgramPath("call_loop") + " 1500 && " + culprit + " profile " +
                      Path("normal.ctrace") + " -o " + Path("app.cprof"));
    EXPECT_EQ(ran.code, 0) << ran.text;
    return ran.code == 0;
  }
  cli::ShellOutcome Live(const std::string& mode, const std::string& flags) const {
    return cli::RunShell(ProgramPath("call_loop") + " 20000 " + mode +
                         " & program=$!; sleep 0.2; " + CULPRIT_BINARY +
                         " infer --live --profile " + Path("app.cprof") + " " + flags +
                         "; code=$?; kill $program; exit $code");
  }
  static std::vector<json> Looks(const std::string& text) {
    std::vector<json> looks;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("{")) looks.push_back(json::parse(line));
    }
    return looks;
  }

  TestFolder folder_;
};

TEST_F(InferLive, NamesWhoMakesTheCallsThatAreTooMany) {
  SKIP_IF_IT_CANNOT_RECORD();
  ASSERT_TRUE(MakeProfile());
  const cli::ShellOutcome ran =
      Live("hurry", "--pid $program --budget 0 --every 1s --count 2 --json");
  ASSERT_EQ(ran.code, 0) << ran.text;
  const std::vector<json> looks = Looks(ran.text);
  ASSERT_EQ(looks.size(), 2u) << ran.text;
  const json& look = looks.back();
  EXPECT_GT(look["syscalls"].get<uint64_t>(), 1000u);
  EXPECT_EQ(look["cost"]["lost"], 0);
  std::map<std::string, json> excess;
  for (const json& row : look["excess_calls"]) excess[row["symbol"]] = row;
  ASSERT_TRUE(excess.contains("futex(WAKE)")) << look;
  ASSERT_TRUE(excess.contains("accept4")) << look;
  EXPECT_FALSE(excess.contains("futex(WAIT)")) << look;
  EXPECT_EQ(excess["accept4"]["error"], "EAGAIN");
  // The profile knows AcceptOnce and WakeWaiters as who makes such calls.
  std::set<std::string> named;
  for (const json& row : look["functions"]) named.insert(row["function"].get<std::string>());
  const auto is_named = [&](const std::string& function) {
    return std::any_of(named.begin(), named.end(), [&](const std::string& name) {
      return name.find(function) != std::string::npos;
    });
  };
  EXPECT_TRUE(is_named("WakeWaiters")) << look;
  EXPECT_TRUE(is_named("AcceptOnce")) << look;
  EXPECT_FALSE(is_named("WaitForWaker")) << look;
  EXPECT_FALSE(is_named("ServeRequest")) << look;
}

TEST_F(InferLive, BlamesNobodyWhereAllIsAsUsual) {
  SKIP_IF_IT_CANNOT_RECORD();
  ASSERT_TRUE(MakeProfile());
  // Whom to count is known from the profile.
  const cli::ShellOutcome ran = Live("", "--every 1s --count 3");
  ASSERT_EQ(ran.code, 0) << ran.text;
  EXPECT_NE(ran.text.find("comm call_loop"), std::string::npos) << ran.text;
  EXPECT_NE(ran.text.find("nobody is blamed"), std::string::npos) << ran.text;
  EXPECT_EQ(ran.text.find('\033'), std::string::npos);
  // No news, nothing printed.
  EXPECT_EQ(ran.text.find("nobody is blamed"), ran.text.rfind("nobody is blamed")) << ran.text;
}

TEST_F(InferLive, ATraceCanBeTheNormalSide) {
  SKIP_IF_IT_CANNOT_RECORD();
  ASSERT_TRUE(MakeProfile());
  const cli::ShellOutcome ran =
      Live("hurry", "--system --against " + Path("normal.ctrace") + " --every 1s --count 1 --json");
  ASSERT_EQ(ran.code, 0) << ran.text;
  const std::vector<json> looks = Looks(ran.text);
  ASSERT_EQ(looks.size(), 1u) << ran.text;
  EXPECT_FALSE(looks[0]["functions"].empty()) << ran.text;
}

TEST_F(InferLive, WantsATraceOrLive) {
  const cli::ShellOutcome ran = cli::RunShell(std::string(CULPRIT_BINARY) + " infer --profile x");
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.text.find("--live"), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace culprit::TEST_FILE
