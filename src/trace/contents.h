// SPDX-License-Identifier: Apache-2.0
//
// Contents: what a trace or corpus holds, by kind of event, and from that what
// can be analysed with it. Plain sums, so contents of several traces add up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"

namespace culprit::trace {

struct KindTotals {
  uint64_t events = 0;
  uint64_t with_stack = 0;
  int64_t dur_ns = 0;
};

struct Contents {
  std::array<KindTotals, kEventKinds> kinds = {};
  uint64_t waits_with_waker = 0;
  uint64_t instances = 0;

  const KindTotals& of(EventKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  void Count(const Event& event);
  void Add(const Contents& other);
};

// One analysis, whether the data allows it, and if not, what is missing.
struct Capability {
  std::string_view analysis;
  bool possible = false;
  std::string reason;
};

std::vector<Capability> Capabilities(const Contents& contents);

}  // namespace culprit::trace
