// SPDX-License-Identifier: Apache-2.0
//
// SegmentText: how the threads, stacks and events of a trace, and the segments of
// its critical paths, are worded for people: in culprit show and in reports.
// Waits are classed once per trace. Keeps a reference to the Timelines; may be
// read by several threads.
#pragma once

#include <string>

#include "waitgraph/critical_path.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

class SegmentText {
 public:
  // `frames`: how many of a stack to name, from the leaf.
  SegmentText(const Timelines& timelines, size_t frames);

  const Timelines& timelines() const { return timelines_; }
  const trace::Dictionary& dictionary() const { return timelines_.trace().dictionary; }

  // "backend (214)", "shop/ui (7)", a device's name alone.
  std::string Thread(trace::ThreadId thread) const;
  // The frames nearest to the leaf, leaf first, those of the kernel's core
  // and the C library left out where there are others: "b!g < a!f"; empty for no stack.
  std::string Frames(trace::StackId stack) const;
  WaitClass ClassOf(EventIndex wait) const;
  // One line for a part of a critical path or of a wait graph.
  std::string Describe(const Segment& segment) const;
  std::string Describe(EventIndex event) const;

 private:
  std::string Service(const trace::Event& hardware) const;

  const Timelines& timelines_;
  size_t frames_;
  StackClasses classes_;
};

}  // namespace culprit::waitgraph
