// SPDX-License-Identifier: Apache-2.0
//
// EventTarget: where assembled events go: into a trace file as it grows
// (WriterTarget), or into memory (the flight recorder). Ids in events are those
// of its dictionary. One thread at a time.
#pragma once

#include "base/result.h"
#include "trace/trace_writer.h"

namespace culprit::assemble {

class EventTarget {
 public:
  virtual ~EventTarget() = default;
  virtual Status Add(const trace::Event& event) = 0;
  virtual void AddInstance(const trace::Instance& instance) = 0;
  virtual trace::Dictionary& dictionary() = 0;
  virtual trace::Metadata& metadata() = 0;
};

class WriterTarget final : public EventTarget {
 public:
  // The writer outlives this object.
  explicit WriterTarget(trace::TraceWriter& writer) : writer_(writer) {}

  Status Add(const trace::Event& event) override { return writer_.Add(event); }
  void AddInstance(const trace::Instance& instance) override { writer_.AddInstance(instance); }
  trace::Dictionary& dictionary() override { return writer_.dictionary(); }
  trace::Metadata& metadata() override { return writer_.metadata(); }

 private:
  trace::TraceWriter& writer_;
};

}  // namespace culprit::assemble
