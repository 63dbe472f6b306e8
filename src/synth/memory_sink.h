// SPDX-License-Identifier: Apache-2.0
//
// MemorySink: keeps a simulated trace whole, in order of emission. For tests
// and for looking at small simulations.
#pragma once

#include "synth/timeline.h"
#include "trace/trace.h"

namespace culprit::synth {

class MemorySink : public EventSink {
 public:
  trace::Dictionary& dictionary() override { return trace.dictionary; }
  void Add(const trace::Event& event) override { trace.events.push_back(event); }
  void AddInstance(const trace::Instance& instance) override {
    trace.instances.push_back(instance);
  }

  trace::Trace trace;
};

}  // namespace culprit::synth
