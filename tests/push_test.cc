// SPDX-License-Identifier: Apache-2.0
// culprit push to another machine, which is this one: rsync and culprit are the
// real ones, only the way between is a program in the place of ssh.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/program.h"
#include "base/shell_word.h"
#include "base/test_folder.h"

namespace culprit::TEST_FILE {
namespace {

class PushElsewhere : public testing::Test {
 protected:
  void SetUp() override {
    if (!RunProgram({"rsync", "--version"}, std::chrono::seconds(20)).ok()) {
      GTEST_SKIP() << "no rsync here";
    }
    // Drops the options and the host, gives the rest to a shell, as sshd does.
    const std::string bin = std::filesystem::path(CULPRIT_BINARY).parent_path().string();
    way_ = folder_.Write(
        "way",
        "#!/bin/sh\n"
        "while [ \"${1#-}\" != \"$1\" ]; do\n"
        "  case $1 in -o | -l) shift ;; esac\n  [ \"$1\" = -- ] && { shift; break; }\n"
        "  shift\ndone\nshift\n"
        "PATH=" +
            ShellWord(bin) + ":$PATH exec sh -c \"$*\"\n");
    ASSERT_EQ(chmod(way_.c_str(), 0755), 0);
    ASSERT_EQ(Run({"synth", "--traces", "3", "--seed", "8", "-o", folder_ / "from"}).code, 0);
  }

  static ProgramOutput Run(std::vector<std::string> words) {
    words.insert(words.begin(), CULPRIT_BINARY);
    auto output = RunProgram(words, std::chrono::minutes(5));
    EXPECT_TRUE(output.ok());
    return output.ok() ? output.value() : ProgramOutput{.code = -1};
  }
  nlohmann::json Push() {
    const ProgramOutput output = Run({"push", "me@elsewhere:" + (folder_ / "their fleet"),
                                      folder_ / "from", "--ssh", way_, "--json"});
    EXPECT_EQ(output.code, 0) << output.err;
    return nlohmann::json::parse(output.out, nullptr, false);
  }

  TestFolder folder_;
  std::string way_;
};

TEST_F(PushElsewhere, SendsEachTraceOnce) {
  const nlohmann::json first = Push();
  EXPECT_EQ(first["sent"], 3);
  const nlohmann::json again = Push();
  EXPECT_EQ(again["sent"], 0);
  EXPECT_EQ(again["already_there"], 3);
  const ProgramOutput list = Run({"corpus", "list", folder_ / "their fleet", "--json"});
  EXPECT_EQ(nlohmann::json::parse(list.out)["traces"].size(), 3u);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "their fleet.incoming"));
}

TEST_F(PushElsewhere, SaysWhenTheHostCannotBeReached) {
  const ProgramOutput output =
      Run({"push", "nowhere:fleet", folder_ / "from", "--ssh", "/bin/false"});
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.err.find("nowhere"), std::string::npos) << output.err;
}

}  // namespace
}  // namespace culprit::TEST_FILE
