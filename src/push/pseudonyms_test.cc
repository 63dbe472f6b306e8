// SPDX-License-Identifier: Apache-2.0
#include "push/pseudonyms.h"

#include <gtest/gtest.h>

namespace culprit::push::TEST_FILE {
namespace {

TEST(Pseudonyms, AreTheSameForTheSameTextAndKey) {
  Pseudonyms one("key");
  Pseudonyms again("key");
  Pseudonyms other("another key");
  EXPECT_EQ(one.Path("/srv/acme/app"), again.Path("/srv/acme/app"));
  EXPECT_NE(one.Path("/srv/acme/app"), other.Path("/srv/acme/app"));
}

TEST(Pseudonyms, OfAPathKeepTheFileAndWhatEverySystemHas) {
  Pseudonyms names("key");
  EXPECT_EQ(names.Path("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
  EXPECT_EQ(names.Path("libc.so.6"), "libc.so.6");
  EXPECT_EQ(names.Path("[vdso]"), "[vdso]");
  EXPECT_EQ(names.Path(""), "");
  const std::string path = names.Path("/home/alice/secret/app");
  EXPECT_TRUE(path.starts_with("/home/d-"));
  EXPECT_TRUE(path.ends_with("/app"));
  EXPECT_EQ(path.find("alice"), std::string::npos);
  EXPECT_EQ(path.find("secret"), std::string::npos);
  EXPECT_EQ(names.Path("C:\\Work\\x.dll").substr(0, 5), "C:\\d-");
}

TEST(Pseudonyms, OfACommandKeepTheProgram) {
  Pseudonyms names("key");
  const std::string line = names.CommandLine("/usr/bin/mysql --password=hunter2 acme");
  EXPECT_TRUE(line.starts_with("/usr/bin/mysql a-"));
  EXPECT_EQ(line.find("hunter2"), std::string::npos);
  EXPECT_EQ(line.find("acme"), std::string::npos);
}

TEST(Pseudonyms, ReplaceNamesOfHostsAndUsersAsWholeWords) {
  Pseudonyms names("key");
  names.AddHost("db01");
  names.LearnFromPath("/home/alice/x");
  const std::string text = names.Text("sshd: alice@db01, malice, db012");
  EXPECT_EQ(text.find("alice@"), std::string::npos);
  EXPECT_NE(text.find("malice, db012"), std::string::npos);
  EXPECT_NE(text.find(names.Host("db01")), std::string::npos);
  EXPECT_EQ(names.Counts().at("users"), 1u);
}

TEST(Pseudonyms, ReplacePathsInsideTexts) {
  Pseudonyms names("key");
  const std::string text = names.Text("dump of /srv/acme/db, 3 times");
  EXPECT_EQ(text.find("acme"), std::string::npos);
  EXPECT_NE(text.find("/db, 3 times"), std::string::npos);
}

TEST(Pseudonyms, OfACgroupKeepWhatEverySystemHas) {
  Pseudonyms names("key");
  const std::string group = names.Cgroup("/system.slice/acme-db.service");
  EXPECT_TRUE(group.starts_with("/system.slice/g-"));
}

}  // namespace
}  // namespace culprit::push::TEST_FILE
