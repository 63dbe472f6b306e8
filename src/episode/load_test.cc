// SPDX-License-Identifier: Apache-2.0
#include "episode/load.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace culprit::episode::TEST_FILE {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

struct Row {
  const char* name;
  uint64_t calls;
  int64_t dur_ns = 0;  // of all of them
};

class LoadTest : public testing::Test {
 protected:
  Load Make(std::initializer_list<Row> rows, int64_t wall_ns = 2 * kSecond) {
    Load load;
    load.wall_ns = wall_ns;
    load.has_durations = true;
    for (const Row& row : rows) {
      const Symbol symbol = symbols_.Intern(row.name);
      if (load.symbols.size() <= symbol) load.symbols.resize(symbol + size_t{1});
      load.symbols[symbol] = {.calls = row.calls, .dur_ns = row.dur_ns};
      load.calls += row.calls;
    }
    return load;
  }
  // "accept4 epoll_pwait", in the order of the rows.
  std::string Names(const std::vector<SymbolExcess>& rows) const {
    std::string names;
    for (const SymbolExcess& row : rows) {
      names += (names.empty() ? "" : " ") + std::string(symbols_.Name(row.symbol));
    }
    return names;
  }
  Comparison Against(const Load& buggy, const Load& normal) const {
    return Against(buggy, std::vector<Load>{normal});
  }
  Comparison Against(const Load& buggy, const std::vector<Load>& normals) const {
    return Compare(buggy, normals, symbols_);
  }
  static double Scale(const Comparison& comparison) {
    return static_cast<double>(comparison.scale_buggy) /
           static_cast<double>(comparison.scale_normal);
  }

  SymbolTable symbols_;
};

// Counts of a real database server: sessions begin with some thirty kinds of rare
// calls, so that most ratios are those of the sessions, not of the transactions.
TEST_F(LoadTest, ManyRareKindsOfCallsAreNotTheScale) {
  const Load normal =
      Make({{"recvfrom", 5741},    {"futex", 4060},       {"lseek", 3014},    {"sendto", 2992},
            {"epoll_pwait", 2755}, {"pwrite64", 726},     {"fdatasync", 722}, {"rt_sigaction", 84},
            {"openat", 70},        {"close", 59},         {"epoll_ctl", 36},  {"getpid", 35},
            {"brk", 30},           {"newfstatat", 24},    {"mmap", 18},       {"setitimer", 12},
            {"fcntl", 12},         {"epoll_create1", 12}, {"getrandom", 12},  {"wait4", 11}});
  const Load buggy = Make({{"recvfrom", 389},
                           {"futex", 367},
                           {"lseek", 207},
                           {"sendto", 189},
                           {"epoll_pwait", 204},
                           {"pwrite64", 31},
                           {"fdatasync", 651, 19 * kSecond / 10},
                           {"rt_sigaction", 98},
                           {"openat", 73},
                           {"close", 70},
                           {"epoll_ctl", 42},
                           {"getpid", 42},
                           {"brk", 34},
                           {"newfstatat", 28},
                           {"mmap", 21},
                           {"setitimer", 13},
                           {"fcntl", 14},
                           {"epoll_create1", 14},
                           {"getrandom", 14},
                           {"wait4", 12}});
  const Comparison comparison = Against(buggy, normal);
  EXPECT_NEAR(Scale(comparison), 0.068, 0.005);
  EXPECT_EQ(Names(comparison.calls), "fdatasync");
}

TEST_F(LoadTest, TheTwoCallsOfABusyLoopAreNotTheScale) {
  const Load normal = Make({{"read", 2350},
                            {"write", 2300},
                            {"epoll_pwait", 2300},
                            {"setsockopt", 450},
                            {"accept4", 180},
                            {"close", 100}});
  const Load buggy = Make({{"read", 1700},
                           {"write", 48'000},
                           {"epoll_pwait", 31'000},
                           {"setsockopt", 330},
                           {"accept4", 130},
                           {"close", 72}});
  const Comparison comparison = Against(buggy, normal);
  EXPECT_NEAR(Scale(comparison), 0.72, 0.02);
  EXPECT_EQ(Names(comparison.calls), "write epoll_pwait");
}

// One transaction a row: everything is done more often but taking the rows in.
TEST_F(LoadTest, WhereAlmostAllIsRepeatedWorkIsWhatComesIn) {
  const Load normal = Make({{"fcntl", 438},
                            {"newfstatat", 370},
                            {"pwrite64", 355},
                            {"fdatasync", 136},
                            {"openat", 135},
                            {"read", 66}});
  const Load buggy = Make({{"fcntl", 802},
                           {"newfstatat", 543},
                           {"pwrite64", 870},
                           {"fdatasync", 348, kSecond},
                           {"openat", 183},
                           {"read", 8}});
  const Comparison comparison = Against(buggy, normal);
  EXPECT_NEAR(Scale(comparison), 8.0 / 66, 1e-9);
  EXPECT_NE(Names(comparison.calls).find("fdatasync"), std::string::npos);
}

TEST_F(LoadTest, WhatTimersDoIsNoExcessOfASlowProgram) {
  const Load normal = Make({{"read", 4800}, {"write", 4700}, {"openat", 20}, {"close", 120}});
  const Load slow = Make({{"read", 60}, {"write", 50}, {"openat", 20}, {"close", 22}});
  const Comparison comparison = Against(slow, normal);
  EXPECT_TRUE(comparison.calls.empty());
  EXPECT_EQ(Names(comparison.slight), "close openat");
  // The same calls in a tenth of the time are no timer's.
  const Load quick =
      Make({{"read", 60}, {"write", 50}, {"openat", 20}, {"close", 22}}, kSecond / 5);
  EXPECT_EQ(Names(Against(quick, normal).calls), "close openat");
}

TEST_F(LoadTest, WaitsOfThreadsForEachOtherAreToldButNoExcess) {
  const Load normal = Make({{"read", 5000}, {"write", 5000}, {"futex(WAIT)", 40, 40'000'000}});
  // Waits for the lock of a busy interpreter, 5 ms each.
  const Load waiting = Make({{"read", 50},
                             {"write", 50},
                             {"futex(WAIT)", 800, 4 * kSecond},
                             {"futex(WAKE)", 700, 700'000}});
  const Comparison comparison = Against(waiting, normal);
  EXPECT_TRUE(comparison.calls.empty());
  EXPECT_EQ(Names(comparison.waits), "futex(WAIT) futex(WAKE)");
  // Who wakes nobody, again and again, is not answered by waits.
  const Load waking = Make({{"read", 50}, {"write", 50}, {"futex(WAKE)", 90'000, kSecond}});
  EXPECT_EQ(Names(Against(waking, normal).calls), "futex(WAKE)");
  // A loop around a wait that does not wait.
  const Load looping = Make({{"read", 50}, {"write", 50}, {"futex(WAIT)", 90'000, kSecond}});
  EXPECT_EQ(Names(Against(looping, normal).calls), "futex(WAIT)");
  EXPECT_TRUE(Against(looping, normal).waits.empty());
  // But if all functions make such calls, no one of them loops.
  std::vector<bool> of_many(symbols_.size(), true);
  const Comparison crowd = Compare(looping, {&normal, 1}, symbols_, {}, of_many);
  EXPECT_TRUE(crowd.calls.empty());
  EXPECT_EQ(Names(crowd.waits), "futex(WAIT)");
}

TEST_F(LoadTest, FewAndShortCallsAreSlightButLongOnesCount) {
  const Load normal = Make({{"read", 5000}, {"write", 5000}, {"mprotect", 2}, {"fsync", 2}});
  const Load short_ones = Make({{"read", 5000}, {"write", 5000}, {"mprotect", 90, 900'000}});
  EXPECT_TRUE(Against(short_ones, normal).calls.empty());
  EXPECT_EQ(Names(Against(short_ones, normal).slight), "mprotect");
  const Load long_ones = Make({{"read", 5000}, {"write", 5000}, {"fsync", 90, kSecond}});
  EXPECT_EQ(Names(Against(long_ones, normal).calls), "fsync");
}

TEST_F(LoadTest, TwiceTheConnectionsAreOtherWorkButThreeTimesACallIsNot) {
  const Load normal =
      Make({{"read", 4000}, {"write", 4000}, {"accept4", 250}, {"setsockopt", 500}});
  const Load churn =
      Make({{"read", 4000}, {"write", 4000}, {"accept4", 600}, {"setsockopt", 1200}});
  EXPECT_TRUE(Against(churn, normal).calls.empty());
  const Load loop = Make({{"read", 4000}, {"write", 4000}, {"accept4", 250}, {"setsockopt", 1600}});
  EXPECT_EQ(Names(Against(loop, normal).calls), "setsockopt");
}

TEST_F(LoadTest, ASleepThatWasNeverThereCountsByItsTime) {
  const Load normal = Make({{"read", 4000}, {"write", 4000}});
  const Load buggy = Make({{"read", 600}, {"write", 600}, {"clock_nanosleep", 20, kSecond}});
  EXPECT_EQ(Names(Against(buggy, normal).calls), "clock_nanosleep");
  const Load idle = Make({{"read", 4000}, {"write", 4000}, {"clock_nanosleep", 4, kSecond}});
  EXPECT_TRUE(Against(buggy, idle).calls.empty());
}

// A server that both serves pages and copies files: two kinds of healthy work.
TEST_F(LoadTest, WhatAnyNormalLoadShowsIsNormal) {
  const Load pages = Make({{"accept4", 1000}, {"read", 2000}, {"sendto", 1000}, {"close", 1000}});
  const Load files =
      Make({{"accept4", 100}, {"read", 5000}, {"sendto", 100}, {"close", 200}, {"write", 5000}});
  EXPECT_NE(Names(Against(files, pages).calls), "");
  EXPECT_EQ(Names(Against(files, {pages, files}).calls), "");
  EXPECT_EQ(Names(Against(files, {files, pages}).calls), "");
  const Load half_of_each =
      Make({{"accept4", 550}, {"read", 3500}, {"sendto", 550}, {"close", 600}, {"write", 2500}});
  EXPECT_EQ(Names(Against(half_of_each, {pages, files}).calls), "");
  EXPECT_EQ(Against(files, {pages, files}).nearest, 1U);
  EXPECT_EQ(Against(files, {pages, files}).mix_distance, 0);
}

TEST_F(LoadTest, WhatNoNormalLoadShowsIsTooMuch) {
  const Load pages = Make({{"accept4", 1000}, {"read", 2000}, {"sendto", 1000}, {"close", 1000}});
  const Load files =
      Make({{"accept4", 100}, {"read", 5000}, {"sendto", 100}, {"close", 200}, {"write", 5000}});
  const Load loop =
      Make({{"accept4", 9000}, {"read", 2000}, {"sendto", 1000}, {"close", 1000}, {"fsync", 4000}});
  const Comparison comparison = Against(loop, {pages, files});
  EXPECT_EQ(Names(comparison.calls), "accept4 fsync");
  // Each by the load that expects most of it.
  EXPECT_EQ(comparison.calls[0].expected, 1'000'000);
  EXPECT_EQ(comparison.calls[1].expected, 0);
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
