// SPDX-License-Identifier: Apache-2.0
//
// TraceViews: a trace in memory, and what is worked out from it alone and wanted
// by several collectors (collector.h): each made on first use and shared. A view
// is any class that is made from `const trace::Trace&`. Views live as long as this
// does, the trace must live longer. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <typeindex>

#include "trace/trace.h"

namespace culprit::corpus {

class TraceViews {
 public:
  explicit TraceViews(const trace::Trace& trace) : trace_(trace) {}
  TraceViews(const TraceViews&) = delete;
  TraceViews& operator=(const TraceViews&) = delete;

  const trace::Trace& trace() const { return trace_; }

  template <class View>
  const View& Of() {
    std::shared_ptr<const void>& view = views_[typeid(View)];
    if (!view) view = std::make_shared<const View>(trace_);
    return *static_cast<const View*>(view.get());
  }

 private:
  const trace::Trace& trace_;
  std::map<std::type_index, std::shared_ptr<const void>> views_;
};

}  // namespace culprit::corpus
