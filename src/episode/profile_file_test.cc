// SPDX-License-Identifier: Apache-2.0
#include "episode/profile_file.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

Profile Example() {
  SyscallTrace made;
  for (int64_t i = 0; i < 40; ++i) {
    made.Call("t", i % 3 == 0 ? "read" : "write", i * 10, i,
              i % 2 == 0 ? "app!main;app!F" : "app!main;app!G\x01\xff");
  }
  ProfileBuilder builder({});
  builder.Add(made.small.Reader());
  return builder.Finish();
}

TEST(ProfileFile, GivesBackWhatWasWritten) {
  const TestFolder folder;
  const Profile profile = Example();
  const std::string path = folder / "a.cprof";
  ASSERT_TRUE(WriteProfile(profile, path, Overwrite::kRefuse).ok());
  const Result<Profile> again = ReadProfile(path);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ(again.value().functions, profile.functions);
  EXPECT_EQ(again.value().totals, profile.totals);
  EXPECT_EQ(again.value().roles, profile.roles);
  EXPECT_EQ(again.value().roles.size(), 1u);
  EXPECT_EQ(again.value().processes, profile.processes);
  EXPECT_EQ(again.value().arch, "aarch64");
  EXPECT_EQ(again.value().owned, profile.owned);
  EXPECT_EQ(EncodeProfile(again.value()), EncodeProfile(profile));
  EXPECT_FALSE(WriteProfile(profile, path, Overwrite::kRefuse).ok());
}

TEST(ProfileFile, CutShortAnywhereIsRefused) {
  const std::string bytes = EncodeProfile(Example());
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(DecodeProfile(bytes.substr(0, length), "x").ok()) << length;
    // The checksum is not what saves it.
    ASSERT_FALSE(DecodeProfile(WithRightHash(bytes.substr(0, length)), "x").ok()) << length;
  }
  EXPECT_FALSE(DecodeProfile(bytes + "x", "x").ok());
}

TEST(ProfileFile, OneOfTheFirstVersionKnowsNothingOfThreads) {
  Profile profile = Example();
  profile.roles.clear();
  std::string bytes = EncodeProfile(profile);
  bytes.pop_back();  // the number of roles: none
  bytes[10] = 0;
  const Result<Profile> again = DecodeProfile(WithRightHash(bytes), "x");
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ(again.value().functions, profile.functions);
  EXPECT_TRUE(MergeProfiles(Example(), again.value()).roles.empty());
}

TEST(ProfileFile, AnyChangedByteIsRefused) {
  const std::string bytes = EncodeProfile(Example());
  for (size_t at = 0; at < bytes.size(); ++at) {
    if (at >= 10 && at < 16) continue;  // the minor version and what is reserved
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    ASSERT_FALSE(DecodeProfile(changed, "x").ok()) << at;
  }
}

TEST(ProfileFile, ChangedContentsUnderARightChecksumAreRefusedOrConsistent) {
  const std::string bytes = EncodeProfile(Example());
  size_t accepted = 0;
  for (size_t at = 32; at < bytes.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = value;
      const Result<Profile> profile = DecodeProfile(WithRightHash(changed), "x");
      if (!profile.ok()) continue;
      ++accepted;
      for (const ProfiledFunction& function : profile.value().functions) {
        for (const SymbolCount& row : function.inclusive) {
          ASSERT_LT(row.symbol, profile.value().symbols.size());
        }
        for (const EpisodeCount& row : function.episodes) {
          ASSERT_LE(row.episode.length, kMaxEpisode);
        }
      }
    }
  }
  EXPECT_GT(accepted, 0u);
}

TEST(ProfileFile, MessagesSayWhatIsWrong) {
  const auto message = [](const std::string& bytes) {
    return DecodeProfile(bytes, "p.cprof").error().ToString();
  };
  std::string bytes = EncodeProfile(Example());
  EXPECT_NE(message("CTRACE").find("p.cprof: is not a profile"), std::string::npos);
  EXPECT_NE(message(bytes.substr(0, 20)).find("cut short"), std::string::npos);
  bytes[8] = 9;
  EXPECT_NE(message(bytes).find("version 9"), std::string::npos);
  bytes[8] = 1;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_NE(message(bytes).find("checksum"), std::string::npos);
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
