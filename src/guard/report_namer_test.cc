// SPDX-License-Identifier: Apache-2.0
#include "guard/report_namer.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace culprit::guard::TEST_FILE {
namespace {

__attribute__((noinline)) int NamedByTheNamer(int x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}

UnnamedReport ReportOfThisProcess(uint64_t units) {
  UnnamedReport unnamed;
  unnamed.report.units = units;
  auto image = ProcessImage::Read(getpid());
  EXPECT_TRUE(image.ok());
  unnamed.image = std::make_shared<const ProcessImage>(std::move(image).value());
  const auto place = reinterpret_cast<uint64_t>(&NamedByTheNamer);
  for (int i = 0; i < 2; ++i) {
    unnamed.stacks.push_back({.by = SeenStack::By::kLook,
                              .running = false,
                              .system_call = 7,
                              .addresses = {place},
                              .first_is_place = true});
  }
  return unnamed;
}

TEST(ReportNamer, NamesReportsInTheirOrder) {
  EXPECT_EQ(NamedByTheNamer(1), 2);
  ReportNamer namer;
  EXPECT_TRUE(namer.Take().empty());
  EXPECT_TRUE(namer.TakeAll().empty());
  constexpr uint64_t kReports = 20;
  for (uint64_t i = 0; i < kReports; ++i) namer.Add(ReportOfThisProcess(i));
  std::vector<UnitReport> named = namer.Take();
  for (UnitReport& report : namer.TakeAll()) named.push_back(std::move(report));
  ASSERT_EQ(named.size(), kReports);
  for (uint64_t i = 0; i < kReports; ++i) {
    EXPECT_EQ(named[i].units, i);
    ASSERT_EQ(named[i].stacks.size(), 1U) << "equal ones are one";
    const SeenStack& stack = named[i].stacks[0];
    EXPECT_EQ(stack.seen, 2U);
    EXPECT_EQ(stack.by, SeenStack::By::kLook);
    EXPECT_FALSE(stack.running);
    EXPECT_EQ(stack.system_call, 7);
    EXPECT_NE(named[i].Where().find("NamedByTheNamer"), std::string::npos) << named[i].Where();
  }
  EXPECT_GT(namer.cpu_ns(), 0U);
}

TEST(ReportNamer, AReportWithoutAStackIsOneToo) {
  ReportNamer namer;
  namer.Add({});
  const std::vector<UnitReport> named = namer.TakeAll();
  ASSERT_EQ(named.size(), 1U);
  EXPECT_TRUE(named[0].stacks.empty());
}

TEST(ReportNamer, EndsWithReportsThatNobodyTook) {
  ReportNamer namer;
  for (uint64_t i = 0; i < 5; ++i) namer.Add(ReportOfThisProcess(i));
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
