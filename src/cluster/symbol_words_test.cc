// SPDX-License-Identifier: Apache-2.0
#include "cluster/symbol_words.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::cluster::TEST_FILE {
namespace {

using Words = std::vector<std::string>;

TEST(SplitWordsTest, CutsAtCaseChangesDigitsAndUnderscores) {
  EXPECT_EQ(SplitWords("GetShortPathName"), (Words{"get", "short", "path", "name"}));
  EXPECT_EQ(SplitWords("hashTable_lookup"), (Words{"hash", "table", "lookup"}));
  EXPECT_EQ(SplitWords("XMLParser"), (Words{"xml", "parser"}));
  EXPECT_EQ(SplitWords("_XFoo"), SplitWords("XFoo"));
  EXPECT_EQ(SplitWords("wow64QueryAttr"), (Words{"wow", "64", "query", "attr"}));
  EXPECT_EQ(SplitWords("sha256_update"), (Words{"sha", "256", "update"}));
  EXPECT_EQ(SplitWords("__do_sys_openat2"), (Words{"do", "sys", "openat", "2"}));
  EXPECT_EQ(SplitWords("App_main"), (Words{"app", "main"}));
  EXPECT_EQ(SplitWords("java.util.HashMap.get"), (Words{"java", "util", "hash", "map", "get"}));
}

TEST(SplitWordsTest, StripsParametersQualifiersAndReturnTypes) {
  EXPECT_EQ(SplitWords("Foo::Bar(int, char const*) const"), (Words{"foo", "bar"}));
  EXPECT_EQ(SplitWords("void Foo::Bar<int>(long) &"), (Words{"foo", "bar", "int"}));
  EXPECT_EQ(SplitWords("std::map<int, Key> const& Find<Key>(Key)"), (Words{"find", "key"}));
  EXPECT_EQ(SplitWords("decltype(auto) visit(int)"), (Words{"visit"}));
  EXPECT_EQ(SplitWords("(anonymous namespace)::run(int)"),
            (Words{"anonymous", "namespace", "run"}));
  EXPECT_EQ(SplitWords("run(int)::{lambda(char)#2}::operator()(char) const"),
            (Words{"run", "lambda", "2", "operator", "()"}));
  EXPECT_EQ(SplitWords("name[abi:cxx11](int) [clone .cold]"), (Words{"name"}));
  EXPECT_EQ(SplitWords("void (*pick(int))(char)"), (Words{"pick"}));
}

TEST(SplitWordsTest, TellsOperatorsApart) {
  EXPECT_EQ(SplitWords("operator new(unsigned long)"), (Words{"operator", "new"}));
  EXPECT_EQ(SplitWords("Foo::operator unsigned int() const"),
            (Words{"foo", "operator", "unsigned", "int"}));
  EXPECT_EQ(SplitWords("bool operator<(Foo const&, Foo const&)"), (Words{"operator", "<"}));
  EXPECT_EQ(SplitWords("Foo::operator->() const"), (Words{"foo", "operator", "->"}));
  EXPECT_EQ(SplitWords("std::ostream& std::operator<< <char>(char)"),
            (Words{"std", "operator", "<<", "char"}));
  EXPECT_EQ(SplitWords("cooperators_run"), (Words{"cooperators", "run"}));
  EXPECT_NE(SplitWords("Foo::operator+=(int)"), SplitWords("Foo::operator-=(int)"));
}

TEST(SplitWordsTest, ForgetsCopiesThatCompilersMake) {
  EXPECT_EQ(SplitWords("do_wait.isra.0"), (Words{"do", "wait"}));
  EXPECT_EQ(SplitWords("do_wait.part.3.cold"), (Words{"do", "wait"}));
  EXPECT_EQ(SplitWords("core::ptr::drop_in_place::h0123456789abcdef"),
            (Words{"core", "ptr", "drop", "in", "place"}));
  EXPECT_EQ(SplitWords("<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
            (Words{"alloc", "vec", "vec", "t", "as", "core", "ops", "drop", "drop"}));
}

TEST(SplitWordsTest, HalfANameKeepsItsWords) {
  EXPECT_EQ(SplitWords("Foo::Bar(int, "), (Words{"foo", "bar", "int"}));
  EXPECT_EQ(SplitWords("Foo<int"), (Words{"foo", "int"}));
  EXPECT_EQ(SplitWords(">>)"), Words{});
  EXPECT_EQ(SplitWords("operator"), (Words{"operator"}));
  EXPECT_EQ(SplitWords(""), Words{});
}

TEST(SplitWordsTest, TakesAnyBytesAndLongNames) {
  constexpr std::string_view kSigns = "()<>[]{}:_ -&*aZ9.operator~\x80";
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string name;
    for (size_t length = random() % 24; length > 0; --length) {
      name += random() % 9 == 0 ? "operator" : std::string(1, kSigns[random() % kSigns.size()]);
    }
    for (const std::string& word : SplitWords(name)) ASSERT_FALSE(word.empty()) << name;
  }
  const std::string open(1'000'000, '(');
  EXPECT_TRUE(SplitWords(open).empty());
  EXPECT_EQ(SplitWords(open + "Foo" + std::string(1'000'000, ')')), Words{});
}

TEST(SymbolWordsTest, SubstitutionIsTheShareOfWordsNotInCommon) {
  SymbolWords words;
  const Symbol swap = words.AddNamed("SwapKernelStack");
  const Symbol expand = words.AddNamed("ExpandKernelStack");
  const Symbol main = words.AddNamed("App_main");
  EXPECT_EQ(words.Substitution(swap, expand), kOne / 3);  // 1 - 2 * 2 / 6
  EXPECT_EQ(words.Substitution(expand, swap), kOne / 3);
  EXPECT_EQ(words.Substitution(swap, main), kOne);
  EXPECT_EQ(words.Substitution(swap, swap), 0U);
}

TEST(SymbolWordsTest, WordsInCommonAreCountedAsMultisets) {
  SymbolWords words;
  const Symbol twice = words.AddNamed("FooFoo");
  const Symbol once = words.AddNamed("FooBar");
  const Symbol thrice = words.AddNamed("FooFooFoo");
  EXPECT_EQ(words.Substitution(twice, once), kOne / 2);
  EXPECT_EQ(words.Substitution(twice, thrice), kOne / 5);
}

TEST(SymbolWordsTest, EqualWordsAreOneClass) {
  SymbolWords words;
  const Symbol a = words.AddNamed("_XFoo");
  const Symbol b = words.AddNamed("XFoo");
  const Symbol c = words.AddNamed("FooX");
  const Symbol other = words.AddNamed("Foo");
  EXPECT_EQ(words.Substitution(a, b), 0U);
  EXPECT_EQ(words.ClassOf(b), a);
  EXPECT_EQ(words.ClassOf(c), a);
  EXPECT_NE(words.ClassOf(other), a);
}

TEST(SymbolWordsTest, WithoutWordsASymbolMatchesOnlyItself) {
  SymbolWords words;
  const Symbol a = words.AddUnnamed();
  const Symbol b = words.AddUnnamed();
  const Symbol c = words.AddNamed("??");
  const Symbol named = words.AddNamed("Foo");
  EXPECT_EQ(words.Substitution(a, a), 0U);
  EXPECT_EQ(words.Substitution(a, b), kOne);
  EXPECT_EQ(words.Substitution(a, c), kOne);
  EXPECT_EQ(words.Substitution(a, named), kOne);
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
