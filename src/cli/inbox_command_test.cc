// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/program.h"
#include "base/test_folder.h"

namespace culprit::cli::TEST_FILE {
namespace {

class InboxCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Run({"synth", "--traces", "6", "--seed", "3", "-o", folder_ / "fleet"}).code, 0);
  }
  static ProgramOutput Run(std::vector<std::string> words) {
    words.insert(words.begin(), CULPRIT_BINARY);
    auto output = RunProgram(words, std::chrono::minutes(2));
    EXPECT_TRUE(output.ok());
    return output.ok() ? output.value() : ProgramOutput{.code = -1};
  }
  nlohmann::json Inbox() const {
    const ProgramOutput output =
        Run({"inbox", folder_ / "fleet", "--store", folder_ / "store.json", "--json"});
    EXPECT_EQ(output.code, 0) << output.err;
    return nlohmann::json::parse(output.out, nullptr, false)["items"];
  }
  int Mark(const std::string& name, const char* status) const {
    return Run({"signatures", "edit", name, "--status", status, "--store", folder_ / "store.json"})
        .code;
  }
  const TestFolder folder_;
};

TEST_F(InboxCommandTest, AFixedOneThatIsSeenIsRegressedAndAnIgnoredOneIsGone) {
  const nlohmann::json first = Inbox();
  ASSERT_GE(first.size(), 3u);
  for (const auto& item : first) EXPECT_EQ(item["standing"], "new");
  const std::string fixed = first[1]["name"];
  const std::string ignored = first[2]["name"];
  ASSERT_EQ(Mark(fixed, "fixed"), 0);
  ASSERT_EQ(Mark(ignored, "ignored"), 0);
  const nlohmann::json second = Inbox();
  EXPECT_EQ(second[0]["name"], fixed);
  EXPECT_EQ(second[0]["standing"], "regressed");
  EXPECT_FALSE(second[0]["seen"].empty());
  for (const auto& item : second) EXPECT_NE(item["name"], ignored);
}

TEST_F(InboxCommandTest, ADryRunLeavesTheStoreAsItIs) {
  Run({"inbox", folder_ / "fleet", "--store", folder_ / "store.json", "--dry-run"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store.json"));
}

TEST_F(InboxCommandTest, SignaturesGoFromOneStoreToAnother) {
  const nlohmann::json items = Inbox();
  const ProgramOutput all = Run({"signatures", "export", "--store", folder_ / "store.json"});
  const std::string file = folder_.Write("team.json", all.out);
  ASSERT_EQ(Run({"signatures", "import", file, "--store", folder_ / "other.json"}).code, 0);
  const ProgramOutput again = Run({"signatures", "export", "--store", folder_ / "other.json"});
  EXPECT_EQ(again.out, all.out);
  EXPECT_EQ(nlohmann::json::parse(again.out)["signatures"].size(), items.size());
}

TEST_F(InboxCommandTest, WhereGuardsSaidWhatIsSlowThatIsTheRank) {
  std::vector<std::string> words = {"corpus", "add", folder_ / "watched"};
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "fleet/traces")) {
    if (entry.path().extension() == ".ctrace") words.push_back(entry.path());
  }
  words.insert(words.end(), {"--label", "watch.thresholds=MenuDisplay=1;HttpRequest=1"});
  ASSERT_EQ(Run(words).code, 0);
  const ProgramOutput output =
      Run({"inbox", folder_ / "watched", "--store", folder_ / "store.json", "--json"});
  ASSERT_EQ(output.code, 0) << output.err;
  const nlohmann::json items = nlohmann::json::parse(output.out)["items"];
  ASSERT_GE(items.size(), 3u);
  int64_t last_ns = INT64_MAX;
  for (const auto& item : items) {
    if (item["common"].empty() || std::string(item["common"][0]).starts_with("[")) break;
    EXPECT_LE(item["slow_ns"].get<int64_t>(), last_ns);
    last_ns = item["slow_ns"].get<int64_t>();
    if (last_ns == 0) continue;
    EXPECT_TRUE(item["scenario"] == "MenuDisplay" || item["scenario"] == "HttpRequest") << item;
    EXPECT_FALSE(item["chain"].empty());
    EXPECT_LE(item["slow_instances"], item["all_slow"]);
  }
  EXPECT_GT(items[0]["slow_ns"], 0);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
