// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "symbol/symbolizer.h"

namespace culprit::symbol::TEST_FILE {
namespace {

TEST(Demangle, KnowsCppRustAndD) {
  EXPECT_EQ(Demangle("_ZN3foo3barEi"), "foo::bar(int)");
  EXPECT_EQ(Demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)");
  EXPECT_EQ(Demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt");
  EXPECT_EQ(Demangle("_RNvCskwGfYPst2Cb_3foo16example_function"), "foo::example_function");
  EXPECT_EQ(Demangle("_D3std5stdio7writelnFAyaZv"), "std.stdio.writeln(immutable(char)[])");
  EXPECT_EQ(Demangle("_Z4workv.cold"), "work() [clone .cold]");
}

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const char* name : {"", "main", "_start", "_", "_Z", "_R", "_D", "_ZN", "write@plt",
                           "_Zrubbish", "runtime.gopark", "_RNv", "_ZN1aE garbage"}) {
    EXPECT_EQ(Demangle(name), name);
  }
  EXPECT_EQ(Demangle(std::string_view("_Z1fv\0x", 7)), std::string_view("_Z1fv\0x", 7));
}

// Every level names the one before it twice: the written name doubles.
TEST(Demangle, GivesUpOnNamesThatExplode) {
  const auto start = std::chrono::steady_clock::now();
  std::string doubling = "_Z1fI1AIS_S_E";
  for (int i = 0; i < 28; ++i) {
    const std::string reference = i < 10 ? std::string(1, static_cast<char>('0' + i))
                                         : std::string(1, static_cast<char>('A' + i - 10));
    doubling += "1BIS" + reference + "_S" + reference + "_E";
  }
  doubling += "EvT_";
  const std::string text = Demangle(doubling);
  EXPECT_LE(text.size(), 64u * 1024);
  std::string conversions = "_Z";
  for (int i = 0; i < 60; ++i) conversions += "cvI";
  EXPECT_EQ(Demangle(conversions), conversions);
  std::string nested = "_Z1f";
  for (int i = 0; i < 5000; ++i) nested += "P";
  EXPECT_EQ(Demangle(nested), nested);
  std::string rust = "_RIC0";
  for (int i = 0; i < 400; ++i) rust += "TB_B_E";
  (void)Demangle(rust);
  const std::string longest = "_Z" + std::string(1 << 20, 'N');
  EXPECT_EQ(Demangle(longest), longest);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
