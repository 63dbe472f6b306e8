// SPDX-License-Identifier: Apache-2.0
#include "cli/top_rows.h"

#include <gtest/gtest.h>

#include "cli/top_text.h"
#include "trace/random_trace.h"
#include "trace/small_trace.h"

namespace culprit::cli::TEST_FILE {
namespace {

using trace::EventKind;

// A worker that waits for a lock that another holds, and runs.
trace::Trace LockTrace() {
  trace::Trace t;
  auto& d = t.dictionary;
  const trace::ProcessId process = d.AddProcess({.pid = 1, .name = d.Intern("app")});
  const trace::ThreadId worker =
      d.AddThread({.tid = 10, .process = process, .name = d.Intern("worker")});
  const trace::ThreadId holder =
      d.AddThread({.tid = 11, .process = process, .name = d.Intern("holder")});
  const auto frame = [&](std::string_view module, std::string_view function) {
    return d.InternFrame(module, function);
  };
  const trace::StackId lock =
      d.InternStack({frame("app", "main"), frame("app", "Work"),
                     frame("libc.so.6", "pthread_mutex_lock"), frame("[kernel]", "futex_wait")});
  const trace::StackId run = d.InternStack({frame("app", "main"), frame("app", "Compute")});
  const auto add = [&](int64_t time_ns, int64_t dur_ns, trace::ThreadId thread, EventKind kind,
                       trace::StackId stack, trace::ThreadId peer = {}) {
    t.events.push_back({.time_ns = time_ns,
                        .dur_ns = dur_ns,
                        .thread = thread,
                        .peer = peer,
                        .stack = stack,
                        .kind = kind});
  };
  for (int64_t i = 0; i < 10; ++i) {
    add(i * 100, 70, worker, EventKind::kWait, lock, holder);
    add(i * 100 + 70, 30, worker, EventKind::kRunning, run);
  }
  add(0, 1000, holder, EventKind::kRunning, run);
  t.metadata.begin_ns = 0;
  t.metadata.end_ns = 1000;
  t.metadata.has_switches = true;
  t.metadata.has_wakers = true;
  return t;
}

TEST(TopRows, AFunctionWaitsForALockThatAThreadReleases) {
  const TopTable table = MakeTop(LockTrace(), {.by = TopBy::kFunction});
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].what, "app!Compute");
  EXPECT_EQ(table.rows[0].cpu_ns, 1300);
  EXPECT_EQ(table.rows[1].what, "app!Work");
  EXPECT_EQ(table.rows[1].wait_ns, 700);
  EXPECT_EQ(table.rows[1].waits, 10u);
  EXPECT_EQ(table.rows[1].longest_ns, 70);
  EXPECT_EQ(table.rows[1].wait_class, "lock");
  EXPECT_EQ(table.rows[1].waker, "holder (11)");
}

TEST(TopRows, EveryKindOfRowHasItsName) {
  const trace::Trace trace = LockTrace();
  const auto first_wait = [&](TopBy by) {
    for (const TopRow& row : MakeTop(trace, {.by = by, .show = TopShow::kWaits}).rows) {
      if (row.wait_ns > 0) return row.what;
    }
    return std::string();
  };
  EXPECT_EQ(first_wait(TopBy::kComponent), "app");
  EXPECT_EQ(first_wait(TopBy::kPattern), "app: main > Work > pthread_mutex_lock");
  EXPECT_EQ(first_wait(TopBy::kThread), "app/worker (10)");
  EXPECT_EQ(first_wait(TopBy::kProcess), "app (1)");
}

TEST(TopRows, SortAndShowChooseWhatStandsFirst) {
  const trace::Trace trace = LockTrace();
  EXPECT_EQ(MakeTop(trace, {.by = TopBy::kFunction, .sort = TopSort::kCount}).rows[0].what,
            "app!Work");
  EXPECT_EQ(MakeTop(trace, {.by = TopBy::kFunction, .sort = TopSort::kLongest}).rows[0].what,
            "app!Work");
  const TopTable cpu = MakeTop(trace, {.by = TopBy::kFunction, .show = TopShow::kCpu});
  ASSERT_EQ(cpu.rows.size(), 1u);
  EXPECT_EQ(cpu.wait_ns, 700);
}

TEST(TopRows, RowsSumUpToTheTotalsInAnyTrace) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const trace::Trace trace = trace::RandomTrace({.seed = seed});
    int64_t wait_ns = 0;
    for (const trace::Event& event : trace.events) {
      const bool device =
          !event.thread.valid() ||
          trace.dictionary.threads()[event.thread.value].kind == trace::ThreadKind::kDevice;
      if (event.kind == EventKind::kWait && !device) wait_ns += event.dur_ns;
    }
    for (const bool idle : {false, true}) {
      const TopTable table = MakeTop(trace, {.by = TopBy::kFunction, .idle = idle});
      TopRow sum;
      for (const TopRow& row : table.rows) {
        sum.wait_ns += row.wait_ns;
        sum.cpu_ns += row.cpu_ns;
        sum.ready_ns += row.ready_ns;
      }
      EXPECT_EQ(sum.wait_ns, table.wait_ns) << seed;
      EXPECT_EQ(sum.cpu_ns, table.cpu_ns) << seed;
      EXPECT_EQ(sum.ready_ns, table.ready_ns) << seed;
      EXPECT_EQ(table.wait_ns + table.idle_ns, wait_ns) << seed;
    }
  }
}

TEST(TopText, TheRestIsARowAndJsonHasAllNumbers) {
  const TopOptions options = {.by = TopBy::kFunction};
  const TopTable table = MakeTop(LockTrace(), options);
  const record::LiveCost cost = {.share = 0.012, .level = "level 1: all waits"};
  TopPage page = {.table = table, .options = options, .cost = cost};
  page.target = "pid 1";
  page.rows = 1;
  const std::string text = TopText(page, 100, false);
  EXPECT_NE(text.find("culprit top: pid 1, last"), std::string::npos) << text;
  EXPECT_NE(text.find("costs 1.2 %"), std::string::npos) << text;
  EXPECT_NE(text.find("level 1"), std::string::npos);
  EXPECT_NE(text.find("(1 more)"), std::string::npos);
  const std::string json = TopJson(page);
  EXPECT_NE(json.find("\"wait_ns\":700"), std::string::npos) << json;
  EXPECT_EQ(json.back(), '\n');
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
