// SPDX-License-Identifier: Apache-2.0
//
// What `culprit top` shows: the waiting and running time of a trace, by
// component, function, pattern, thread or process, with what most of a row's
// waits were for and who ended them. Waits count where they are somebody's delay:
// inside the instances that SPEC §3 finds, so not the idle waits of event loops;
// with `idle` all of them. Rows and totals are conserved: the rows' times are the
// totals, and counted and idle waiting is all waiting. Pure; deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace culprit::cli {

enum class TopBy { kComponent, kFunction, kPattern, kThread, kProcess };
enum class TopShow { kBoth, kWaits, kCpu };
enum class TopSort { kTime, kCount, kLongest };
std::string_view Name(TopBy by);
std::string_view Name(TopShow show);
std::string_view Name(TopSort sort);

struct TopOptions {
  TopBy by = TopBy::kComponent;
  TopShow show = TopShow::kBoth;
  TopSort sort = TopSort::kTime;
  bool idle = false;
};

struct TopRow {
  std::string what;
  int64_t wait_ns = 0;
  int64_t cpu_ns = 0;
  int64_t ready_ns = 0;
  uint64_t waits = 0;
  int64_t longest_ns = 0;
  std::string wait_class;  // most of wait_ns; empty: no waits
  std::string waker;       // who ended most of it; empty: not known
};

struct TopTable {
  std::vector<TopRow> rows;  // as `sort` has it
  int64_t dur_ns = 0;
  int64_t wait_ns = 0;
  int64_t cpu_ns = 0;
  int64_t ready_ns = 0;
  int64_t idle_ns = 0;      // waiting that is nobody's delay
  int64_t left_out_ns = 0;  // of wait_ns: waits known only as sums
  size_t threads = 0;       // that ran or waited
};

TopTable MakeTop(const trace::Trace& trace, const TopOptions& options);

}  // namespace culprit::cli
