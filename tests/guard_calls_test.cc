// SPDX-License-Identifier: Apache-2.0
//
// culprit guard calls from outside: the functions of a program without symbols own
// the same system calls as its stacks say.
#include <cstdlib>
#include <map>
#include <set>

#include "recorded_program.h"

namespace culprit::TEST_FILE {
namespace {

using nlohmann::json;

class GuardCalls : public testing::Test {
 protected:
  // call_loop without its symbols.
  bool Strip() {
    const std::string copy = "cp " + ProgramPath("call_loop") + " " + Path("call_loop");
    return cli::RunShell(copy + " && strip " + Path("call_loop")).code == 0;
  }
  std::string Path(const std::string& name) const { return folder_ / name; }

  // Kinds that were made a few times only may fall into what is not seen at the begin and
  // end. In its first milliseconds, before its unwind tables are there, a program's stacks
  // are by frame pointers, and lack the caller of a leaf: 2 % of the calls here.
  static std::map<std::string, std::set<std::string>> OwnersOf(
      const std::map<std::string, std::map<std::string, uint64_t>>& counts) {
    std::map<std::string, std::set<std::string>> owners;
    for (const auto& [symbol, functions] : counts) {
      uint64_t all = 0;
      for (const auto& [name, count] : functions) all += count;
      for (const auto& [name, count] : functions) {
        if (count >= 5 && count * 20 >= all) owners[symbol].insert(name);
      }
    }
    return owners;
  }

  // Who made the calls of each kind itself, of the program's own functions.
  std::map<std::string, std::set<std::string>> Owners(const std::string& how) {
    const std::string culprit = CULPRIT_BINARY;
    const cli::ShellOutcome ran = cli::RunShell(
        culprit + " " + how + " --force -o " + Path("t.ctrace") + " -- " + Path("call_loop") +
        " 700 && " + culprit + " profile --force " + Path("t.ctrace") + " -o " + Path("t.cprof"));
    EXPECT_EQ(ran.code, 0) << ran.text;
    const cli::ShellOutcome shown =
        cli::RunShell(culprit + " profile show --json " + Path("t.cprof"));
    const json profile = json::parse(shown.text, nullptr, false);
    if (profile.is_discarded()) return {};
    std::map<std::string, std::map<std::string, uint64_t>> counts;
    for (const json& function : profile["functions"]) {
      const std::string name = function["function"];
      if (!name.starts_with("call_loop!")) continue;
      for (const auto& [symbol, count] : function["innermost"].items()) {
        counts[symbol][name] += count.get<uint64_t>();
      }
    }
    return OwnersOf(counts);
  }

  TestFolder folder_;
};

TEST_F(GuardCalls, FunctionsOfAStrippedProgramOwnWhatItsStacksSay) {
  SKIP_IF_IT_CANNOT_RECORD();
  if (!Strip()) GTEST_SKIP() << "strip is not installed";
  std::map<std::string, std::set<std::string>> by_stacks;
  std::map<std::string, std::set<std::string>> by_entries;
  for (int attempt = 0; attempt < 3; ++attempt) {
    by_stacks = Owners("record --syscalls --budget 0");
    by_entries = Owners("guard calls --for 20s");
    if (by_stacks == by_entries) break;
  }
  EXPECT_GE(by_stacks.size(), 5u);
  EXPECT_EQ(by_stacks, by_entries);
}

}  // namespace
}  // namespace culprit::TEST_FILE
