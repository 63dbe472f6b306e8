// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_parts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/test_folder.h"
#include "guard/learn.h"
#include "guard/profile_file.h"
#include "guard/random_profile.h"

namespace culprit::cli::TEST_FILE {
namespace {

TEST(UnitsPart, HasTheTypesOfTheProfileAndCountsReports) {
  const TestFolder folder;
  guard::Profile profile = guard::RandomProfile(5);
  guard::ChooseTypesAndGuards(profile, {});
  ASSERT_FALSE(profile.types.empty());
  for (size_t i = 0; i < profile.types.size(); ++i) {
    profile.types[i].name += std::to_string(i);
    profile.types[i].stats.Add(1500 * (i + 1), 3);
    profile.types[i].stats.Add(700, i);
    profile.types[i].threshold_ns = 1'000'000 + i;
  }
  ASSERT_TRUE(guard::WriteProfile(profile, folder / "p.cguard", Overwrite::kRefuse).ok());
  std::filesystem::create_directory(folder / "reports");
  const std::string line =
      nlohmann::json{{"type", profile.types[0].name}, {"wall_ns", 7'000'000u}}.dump();
  folder.Write("reports/slow-units-2026-01-01.jsonl", line + "\nnot json\n" + line + "\n{\"ty");
  const auto part = UnitsPart(folder / "p.cguard", folder / "reports");
  ASSERT_TRUE(part.ok());
  const auto json = nlohmann::json::parse(part.value().json);
  ASSERT_EQ(json["types"].size(), profile.types.size());
  for (size_t i = 0; i < profile.types.size(); ++i) {
    const guard::UnitType& type = profile.types[i];
    EXPECT_EQ(json["types"][i]["threshold_ns"], type.threshold_ns);
    uint64_t units = 0;
    for (const auto& bar : json["types"][i]["histogram"]) units += bar.get<uint64_t>();
    EXPECT_EQ(units, type.stats.count());
  }
  EXPECT_EQ(json["types"][0]["slow"], 2);
  EXPECT_EQ(json["types"][0]["longest_ns"], 7'000'000);
}

TEST(UnitsPart, AProfileThatCannotBeReadIsAnError) {
  const TestFolder folder;
  EXPECT_FALSE(UnitsPart(folder.Write("p.cguard", "no profile"), "").ok());
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
