// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "symbol/symbolizer.h"

namespace culprit::symbol::TEST_FILE {
namespace {

constexpr std::string_view kSmall =
    "0000000000000000 A fixed_percpu_data\n"
    "ffff800080010000 T _stext\n"
    "ffff800080010000 t bcm2835_handle_irq\n"
    "ffff800080010100 t local_alias\n"
    "ffff800080010100 T __schedule\n"
    "ffff800080010800 W weak_one\n"
    "ffff800080010900 D jiffies\n"
    "ffff80007a0b1000 t ext4_find_entry\t[ext4]\n"
    "ffff80007a0b1000 t $x\t[ext4]\n"
    "ffff80007a0b2000 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

TEST(KernelSymbols, FindsFunctionsAndTheirModules) {
  const KernelSymbols symbols = KernelSymbols::Parse(kSmall).value();
  const auto schedule = symbols.Lookup(0xffff800080010123);
  EXPECT_EQ(schedule.name, "__schedule");
  EXPECT_EQ(schedule.module, "[kernel]");
  EXPECT_EQ(schedule.start, 0xffff800080010100u);
  const auto ext4 = symbols.Lookup(0xffff80007a0b1fff);
  EXPECT_EQ(ext4.name, "ext4_find_entry");
  EXPECT_EQ(ext4.module, "[ext4]");
  EXPECT_EQ(symbols.Lookup(0xffff80007a0b2000).module, "[bpf]");
  EXPECT_EQ(symbols.Lookup(0xffff800080010004).name, "bcm2835_handle_irq");
  EXPECT_FALSE(symbols.hidden());
  EXPECT_EQ(symbols.size(), 5u);
}

TEST(KernelSymbols, DataEndsAFunction) {
  const KernelSymbols symbols = KernelSymbols::Parse(kSmall).value();
  EXPECT_EQ(symbols.Lookup(0xffff8000800108ff).name, "weak_one");
  EXPECT_EQ(symbols.Lookup(0xffff800080010900).name, "");
  EXPECT_EQ(symbols.Lookup(0xffffffffffffffff).name, "");
  EXPECT_EQ(symbols.Lookup(0x400000).name, "");
  EXPECT_EQ(symbols.Lookup(0xffff80007b0b2000).name, "");  // 16 MB after the last of a module
}

TEST(KernelSymbols, SaysWhenAddressesAreHidden) {
  const KernelSymbols symbols =
      KernelSymbols::Parse("0000000000000000 T a\n0000000000000000 t b\n").value();
  EXPECT_TRUE(symbols.hidden());
  EXPECT_EQ(symbols.Lookup(0).name, "");
}

TEST(KernelSymbols, RefusesWhatIsNone) {
  EXPECT_FALSE(KernelSymbols::Parse("").ok());
  EXPECT_FALSE(KernelSymbols::Parse("hello\nworld\n").ok());
}

TEST(KernelSymbols, SurvivesCutsAnywhere) {
  for (size_t length = 0; length < kSmall.size(); ++length) {
    const auto symbols = KernelSymbols::Parse(kSmall.substr(0, length));
    if (symbols.ok()) (void)symbols.value().Lookup(0xffff800080010123);
  }
}

TEST(KernelSymbols, ReadsThisMachines) {
  std::ifstream file("/proc/kallsyms");  // its size is said to be 0
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (text.empty()) GTEST_SKIP() << "no /proc/kallsyms here";
  const auto symbols = KernelSymbols::Parse(text);
  ASSERT_TRUE(symbols.ok());
  if (symbols.value().hidden()) GTEST_SKIP() << "kernel addresses are hidden here";
  EXPECT_GT(symbols.value().size(), 1000u);
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
