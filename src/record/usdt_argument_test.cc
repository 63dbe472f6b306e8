// SPDX-License-Identifier: Apache-2.0
#include "record/usdt_argument.h"

#include <gtest/gtest.h>

namespace culprit::record::TEST_FILE {
namespace {

TEST(UsdtArgument, RegistersOfArm64) {
  EXPECT_EQ(FetchOfArgument("8@x20 8@x21 -4@x0", 0), "%x20");
  EXPECT_EQ(FetchOfArgument("8@x20 8@x21 -4@x0", 1), "%x21");
  EXPECT_EQ(FetchOfArgument("8@x20 8@x21 -4@x0", 2), "%x0");
}

TEST(UsdtArgument, MemoryOfArm64) {
  EXPECT_EQ(FetchOfArgument("-4@[sp, 152] 8@[x1]", 0), "+152(%sp)");
  EXPECT_EQ(FetchOfArgument("-4@[sp, 152] 8@[x1]", 1), "+0(%x1)");
  EXPECT_EQ(FetchOfArgument("8@[x29, -16]", 0), "-16(%x29)");
}

TEST(UsdtArgument, RegistersAndMemoryOfX86HaveTheKernelsNames) {
  EXPECT_EQ(FetchOfArgument("8@%rbx 8@%r12 -4@%eax", 0), "%bx");
  EXPECT_EQ(FetchOfArgument("8@%rbx 8@%r12 -4@%eax", 1), "%r12");
  EXPECT_EQ(FetchOfArgument("8@%rbx 8@%r12 -4@%eax", 2), "%ax");
  EXPECT_EQ(FetchOfArgument("-4@-20(%rbp) 8@(%rsi)", 0), "-20(%bp)");
  EXPECT_EQ(FetchOfArgument("-4@-20(%rbp) 8@(%rsi)", 1), "+0(%si)");
}

TEST(UsdtArgument, WhatHasAnotherFormIsNotFetched) {
  for (const char* text : {"", "8", "8@", "8@$5", "8@12", "8@%xmm0", "8@24(%rsp,%rcx,8)",
                           "8@name+8(%rip)", "8@[sp, x1]", "8@x31", "8@x021", "8@%r08", "8@%r16",
                           "8@[", "8@]", "@", "8@[sp, 99999999999999999999]"}) {
    EXPECT_EQ(FetchOfArgument(text, 0), std::nullopt) << text;
  }
  EXPECT_EQ(FetchOfArgument("8@x20", 1), std::nullopt);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
