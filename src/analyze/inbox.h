// SPDX-License-Identifier: Apache-2.0
//
// Inbox: the findings of a corpus as a person wants them in the morning: what
// came back that was fixed, what is new, what is known, each with its cost, its
// share of the slow instances, and since when and in which versions it has been
// seen. Findings nobody has named get a name in the store (status new), so that
// tomorrow they are the same item. What a signature says is ignored is left out.
// A function of the analysis and the traces' rows; RememberInbox writes the store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/findings.h"
#include "base/result.h"
#include "corpus/catalog.h"
#include "stackmine/signature.h"

namespace culprit::analyze {

enum class Standing : uint8_t { kRegressed, kNew, kKnown };
std::string_view Name(Standing standing);

struct InboxItem {
  Standing standing = Standing::kNew;
  Finding finding;
  stackmine::Signature signature;  // with the sightings of this corpus
  bool named_now = false;          // nobody had named it
  int64_t time_ns = 0;
  uint64_t instances = 0;
  std::vector<std::string> chain;  // the stack that costs slow instances most, caller first
  std::string scenario;            // in which it costs most
  uint64_t slow_instances = 0;     // of the slow ones of that scenario, those that have it
  uint64_t all_slow = 0;
  int64_t slow_ns = 0;      // its time in slow instances of all scenarios
  bool unrecorded = false;  // no code of the program: time left out, or our own
  std::string first_day;    // over all versions
  std::string last_day;
};

// Regressed ones first, then new ones, then known ones; within, by rank. Where
// traces were written because of slow units (corpus/slow_unit_labels.h), these are
// the slow instances, and the time in them is the rank; elsewhere slow is above the
// 90th percentile of its scenario. What names no code comes last.
std::vector<InboxItem> MakeInbox(const Analysis& analysis,
                                 const std::vector<corpus::TraceRow>& traces, size_t most);

// Adds new names and sightings to the store.
Status RememberInbox(const std::vector<InboxItem>& items, const std::string& store);

// "2026-03-01" of a Unix time; empty for 0.
std::string DayOf(int64_t unix_ns);

}  // namespace culprit::analyze
