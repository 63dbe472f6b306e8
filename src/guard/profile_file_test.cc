// SPDX-License-Identifier: Apache-2.0
#include "guard/profile_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/test_folder.h"
#include "guard/learn.h"
#include "guard/merge_profiles.h"
#include "guard/profile_codec.h"
#include "guard/random_profile.h"

namespace culprit::guard::TEST_FILE {
namespace {

Profile Calibrated(uint64_t seed, const RandomProfileSize& size = {.shapes = 20, .loops = 2}) {
  Profile profile = RandomProfile(seed, size);
  Compact(profile);
  ChooseTypesAndGuards(profile, {});
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    wire::Sample sample = {};
    sample.type =
        i % 50 == 0 ? wire::kUnknown : static_cast<uint32_t>(random() % profile.types.size());
    sample.wall_ns = 1000 + random() % 3'000'000;
    EXPECT_TRUE(AddSample(sample, profile));
  }
  SetThresholds(profile, {});
  EXPECT_EQ(FirstContradiction(profile), "");
  return profile;
}

TEST(ProfileFile, ReadsWhatWasWritten) {
  const TestFolder folder;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const Profile profile = Calibrated(seed);
    const std::string path = folder / ("p" + std::to_string(seed) + ".cguard");
    ASSERT_TRUE(WriteProfile(profile, path).ok());
    EXPECT_FALSE(WriteProfile(profile, path).ok());
    ASSERT_TRUE(WriteProfile(profile, path, Overwrite::kAllow).ok());
    const auto read = ReadProfile(path);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    EXPECT_EQ(read.value(), profile);
  }
}

TEST(ProfileFile, RefusesWhatIsNone) {
  const auto nothing = UnpackProfile("hello", "x");
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message, "not a guard profile");
  std::string bytes = PackProfile(Calibrated(1));
  std::string other_version = bytes;
  other_version[8] = 9;
  const auto version = UnpackProfile(other_version, "x");
  ASSERT_FALSE(version.ok());
  EXPECT_NE(version.error().message.find("version 9"), std::string::npos);
  for (size_t length = 0; length < bytes.size(); length += 7) {
    EXPECT_FALSE(UnpackProfile(std::string_view(bytes).substr(0, length), "x").ok());
  }
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    EXPECT_FALSE(UnpackProfile(changed, "x").ok()) << i;
  }
}

// The checksum keeps accidents out; this is about bytes made on purpose.
TEST(ProfileFile, ABodyOfAnyBytesIsRefusedOrWithoutContradictions) {
  std::mt19937_64 random(3);
  const std::string body = EncodeProfile(Calibrated(2));
  size_t accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = body;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    Profile profile;
    if (!DecodeProfile(changed, profile)) continue;
    if (!FirstContradiction(profile).empty()) continue;
    ++accepted;
    Profile again;
    ASSERT_TRUE(DecodeProfile(EncodeProfile(profile), again));
    EXPECT_EQ(again, profile);
  }
  EXPECT_GT(accepted, 0U);
}

TEST(MergeProfiles, OfAProfileAndItselfDoublesTheCounts) {
  for (uint64_t seed = 1; seed < 10; ++seed) {
    const Profile profile = Calibrated(seed);
    const auto merged = MergeProfiles(profile, profile, {}, {});
    ASSERT_TRUE(merged.ok());
    const Profile& twice = merged.value();
    EXPECT_EQ(FirstContradiction(twice), "");
    EXPECT_EQ(twice.functions, profile.functions);
    EXPECT_EQ(twice.paths, profile.paths);
    ASSERT_EQ(twice.types.size(), profile.types.size());
    for (size_t i = 0; i < twice.types.size(); ++i) {
      EXPECT_EQ(twice.types[i].name, profile.types[i].name);
      EXPECT_EQ(twice.types[i].units, 2 * profile.types[i].units);
      EXPECT_EQ(twice.types[i].stats.count(), 2 * profile.types[i].stats.count());
      EXPECT_EQ(twice.types[i].stats.max_ns(), profile.types[i].stats.max_ns());
    }
    EXPECT_EQ(twice.training.units, 2 * profile.training.units);
  }
}

TEST(MergeProfiles, KeepsAllUnitsAndSamplesOfBoth) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const Profile a = Calibrated(seed, {.functions = 10, .paths = 20, .shapes = 15, .loops = 1});
    const Profile b =
        Calibrated(seed + 50, {.functions = 14, .paths = 30, .shapes = 9, .loops = 2});
    const auto merged = MergeProfiles(a, b, {}, {});
    ASSERT_TRUE(merged.ok());
    EXPECT_EQ(FirstContradiction(merged.value()), "");
    const auto units = [](const Profile& profile) {
      uint64_t sum = 0;
      for (const UnitType& type : profile.types) sum += type.units;
      return sum;
    };
    const auto samples = [](const Profile& profile) {
      uint64_t sum = profile.unknown.count();
      for (const UnitType& type : profile.types) sum += type.stats.count();
      return sum;
    };
    EXPECT_EQ(units(merged.value()), units(a) + units(b));
    EXPECT_EQ(samples(merged.value()), samples(a) + samples(b));
  }
}

TEST(MergeProfiles, OfDifferentBuildsIsRefused) {
  const Profile a = Calibrated(1);
  Profile b = a;
  b.modules[0].build_id = "cd02";
  const auto merged = MergeProfiles(a, b, {}, {});
  ASSERT_FALSE(merged.ok());
  EXPECT_NE(merged.error().message.find("different binaries"), std::string::npos);
  EXPECT_FALSE(merged.error().hint.empty());
  b = a;
  b.program = "/bin/other";
  EXPECT_FALSE(MergeProfiles(a, b, {}, {}).ok());
}

TEST(Profile, CompactingForgetsWhatNothingUses) {
  Profile profile = RandomProfile(4);
  profile.modules.push_back({"ff", "/lib/unused.so"});
  profile.functions.push_back({1, 0x99, "unused"});
  for (UnitShape& shape : profile.shapes) {
    // The last place is used no more.
    if (!shape.places.empty() && shape.places.back() == profile.places.size() - 1) {
      shape.places.pop_back();
      shape.hits.pop_back();
    }
  }
  const size_t places = profile.places.size();
  Compact(profile);
  ChooseTypesAndGuards(profile, {});
  EXPECT_EQ(FirstContradiction(profile), "");
  EXPECT_EQ(profile.modules.size(), 1U);
  EXPECT_LT(profile.places.size(), places);
  Profile again = profile;
  Compact(again);
  EXPECT_EQ(again, profile);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
