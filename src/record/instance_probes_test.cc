// SPDX-License-Identifier: Apache-2.0
#include "record/instance_probes.h"

#include <gtest/gtest.h>

#include "record/target.h"

namespace culprit::record::TEST_FILE {
namespace {

TEST(InstanceProbes, AUsdtPairIsReadWithAndWithoutFileAndName) {
  const auto plain = ParseUsdtProbe("mysql:query__start..query__done");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain.value().file, "");
  EXPECT_EQ(plain.value().group, "mysql");
  EXPECT_EQ(plain.value().begin, "query__start");
  EXPECT_EQ(plain.value().end_group, "mysql");
  EXPECT_EQ(plain.value().end, "query__done");
  EXPECT_EQ(plain.value().scenario, "query");
  const auto whole = ParseUsdtProbe("/a/b.so:p:begin..q:end=My Name");
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole.value().file, "/a/b.so");
  EXPECT_EQ(whole.value().group, "p");
  EXPECT_EQ(whole.value().end_group, "q");
  EXPECT_EQ(whole.value().scenario, "My Name");
}

TEST(InstanceProbes, EventsAreUserEventsUnlessAGroupIsNamed) {
  const auto plain = ParseEventProbe("job_begin..job_end");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain.value().is_usdt);
  EXPECT_EQ(plain.value().group, "user_events");
  EXPECT_EQ(plain.value().scenario, "job");
  const auto other = ParseEventProbe("syscalls:sys_enter_fsync..sys_exit_fsync=fsync");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other.value().group, "syscalls");
  EXPECT_EQ(other.value().end_group, "syscalls");
}

TEST(InstanceProbes, WhatIsNoPairIsAnErrorThatSaysHow) {
  for (const char* text : {"", "a", "a:b", "a:b..", "..c", "b..c", "a:b..c="}) {
    const auto probe = ParseUsdtProbe(text);
    ASSERT_FALSE(probe.ok()) << text;
    EXPECT_NE(probe.error().hint.find("PROVIDER"), std::string::npos);
  }
  EXPECT_FALSE(ParseEventProbe("../x..y").ok());
}

TEST(InstanceProbes, AFileThatIsNoneIsAnErrorOnlyWhereItWasNamed) {
  const auto named = ParseUsdtProbe("/no/such:p:b..e");
  ASSERT_TRUE(named.ok());
  EXPECT_FALSE(FindProbeSites({named.value()}, {}).ok());
  const auto plain = ParseUsdtProbe("p:b..e");
  ASSERT_TRUE(plain.ok());
  const auto sites = FindProbeSites({plain.value()}, {"/no/such"});
  ASSERT_FALSE(sites.ok());
  EXPECT_NE(sites.error().message.find("p:b"), std::string::npos);
}

TEST(Containers, AreKnownByTheNamesOfTheirCgroups) {
  const std::string id(64, 'a');
  EXPECT_EQ(ContainerOf("/docker/" + id), "aaaaaaaaaaaa");
  EXPECT_EQ(ContainerOf("/system.slice/docker-" + id + ".scope"), "aaaaaaaaaaaa");
  EXPECT_EQ(ContainerOf("/kubepods/pod1/cri-containerd-" + id + ".scope"), "aaaaaaaaaaaa");
  EXPECT_EQ(ContainerOf("/user.slice/session-2.scope"), "");
  EXPECT_EQ(ContainerOf(std::string(65, 'a')), "");
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
