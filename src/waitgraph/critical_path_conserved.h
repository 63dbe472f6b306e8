// SPDX-License-Identifier: Apache-2.0
//
// ExpectConserved: what must hold of every critical path, whatever the trace.
// For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "waitgraph/critical_path.h"

namespace culprit::waitgraph {

// The leaves tile the instance, children tile their wait, parents come first.
inline void ExpectConserved(const CriticalPath& path, const trace::Instance& instance) {
  const auto& segments = path.segments;
  std::vector<int64_t> cursor(segments.size());
  std::vector<bool> leaf(segments.size(), true);
  int64_t top_ns = instance.t0_ns;
  int64_t leaves_ns = instance.t0_ns;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& s = segments[i];
    ASSERT_GT(s.dur_ns(), 0);
    cursor[i] = s.begin_ns;
    int64_t& expected_ns = s.parent == UINT32_MAX ? top_ns : cursor[s.parent];
    ASSERT_EQ(s.begin_ns, expected_ns);
    expected_ns = s.end_ns;
    if (s.parent != UINT32_MAX) {
      ASSERT_LT(s.parent, i);
      ASSERT_EQ(segments[s.parent].kind, SegmentKind::kWait);
      leaf[s.parent] = false;
    }
    if (s.kind == SegmentKind::kWait) continue;
    ASSERT_EQ(s.begin_ns, leaves_ns);
    leaves_ns = s.end_ns;
  }
  ASSERT_EQ(top_ns, std::max(instance.t0_ns, instance.t1_ns));
  ASSERT_EQ(leaves_ns, std::max(instance.t0_ns, instance.t1_ns));
  for (size_t i = 0; i < segments.size(); ++i) {
    ASSERT_EQ(leaf[i], segments[i].kind != SegmentKind::kWait);
    if (!leaf[i]) {
      ASSERT_EQ(cursor[i], segments[i].end_ns);
    }
  }
}

// How many waits stand over a segment.
inline size_t DepthOf(const CriticalPath& path, size_t segment) {
  size_t depth = 0;
  for (; path.segments[segment].parent != UINT32_MAX; segment = path.segments[segment].parent) {
    ++depth;
  }
  return depth;
}

}  // namespace culprit::waitgraph
