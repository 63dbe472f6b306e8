// SPDX-License-Identifier: Apache-2.0
#include "trace/breakdown.h"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace culprit::trace {
namespace {

// The instances of one thread by start, able to find those that overlap a span
// without looking at all.
class InstanceSpans {
 public:
  void Insert(int64_t t0_ns, int64_t t1_ns, uint32_t instance) {
    spans_.push_back({t0_ns, t1_ns, instance, 0});
  }

  void Prepare() {
    std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
      return a.t0_ns != b.t0_ns ? a.t0_ns < b.t0_ns : a.instance < b.instance;
    });
    int64_t latest_ns = INT64_MIN;
    for (Span& span : spans_) {
      latest_ns = std::max(latest_ns, span.t1_ns);
      span.latest_end_ns = latest_ns;
    }
  }

  // Calls visit(instance, overlap_ns) for each instance the event touches; an
  // event of no duration touches the instance it lies in.
  template <class Visit>
  void Overlaps(int64_t begin_ns, int64_t end_ns, Visit visit) const {
    auto it = std::upper_bound(spans_.begin(), spans_.end(), end_ns,
                               [](int64_t ns, const Span& span) { return ns < span.t0_ns; });
    while (it != spans_.begin()) {
      --it;
      if (it->latest_end_ns < begin_ns) break;
      const int64_t overlap_ns = std::min(end_ns, it->t1_ns) - std::max(begin_ns, it->t0_ns);
      const bool inside = begin_ns == end_ns && begin_ns >= it->t0_ns && begin_ns < it->t1_ns;
      if (overlap_ns > 0 || inside) visit(it->instance, std::max<int64_t>(0, overlap_ns));
    }
  }

 private:
  struct Span {
    int64_t t0_ns;
    int64_t t1_ns;
    uint32_t instance;
    int64_t latest_end_ns;
  };
  std::vector<Span> spans_;
};

using CostMap = std::unordered_map<StackId, StackCost>;

// Copies stacks from one dictionary into another, by the names of their frames.
class StackCopier {
 public:
  StackCopier(const Dictionary& from, Dictionary& to)
      : from_(from), to_(to), frames_(from.frames().size()), stacks_(from.stacks().size()) {}

  StackId Copy(StackId stack) {
    path_.clear();
    for (; stack.valid() && !stacks_[stack.value].valid();
         stack = from_.stacks()[stack.value].parent) {
      path_.push_back(stack);
    }
    StackId copied = stack.valid() ? stacks_[stack.value] : StackId();
    for (auto it = path_.rbegin(); it != path_.rend(); ++it) {
      copied = to_.InternStack(copied, CopyFrame(from_.stacks()[it->value].frame));
      stacks_[it->value] = copied;
    }
    return copied;
  }

 private:
  FrameId CopyFrame(FrameId frame) {
    FrameId& copied = frames_[frame.value];
    if (copied.valid()) return copied;
    const Frame& row = from_.frames()[frame.value];
    // Lines and inlining would split one function's waits; names alone stay.
    Frame plain;
    if (row.module.valid()) {
      const StringId name = to_.Intern(from_.Text(from_.modules()[row.module.value].name));
      plain.module = to_.InternModule({.name = name});
    }
    if (row.function.valid()) {
      plain.function = to_.Intern(from_.Text(row.function));
    } else {
      plain.offset = row.offset;
    }
    copied = to_.InternFrame(plain);
    return copied;
  }

  const Dictionary& from_;
  Dictionary& to_;
  std::vector<FrameId> frames_;
  std::vector<StackId> stacks_;
  std::vector<StackId> path_;
};

std::vector<StackCost> ByCost(const Dictionary& dictionary, const CostMap& map) {
  std::vector<StackCost> costs;
  costs.reserve(map.size());
  for (const auto& [stack, cost] : map) costs.push_back(cost);
  std::sort(costs.begin(), costs.end(), [&](const StackCost& a, const StackCost& b) {
    if (a.cost_ns != b.cost_ns) return a.cost_ns > b.cost_ns;
    if (a.events != b.events) return a.events > b.events;
    return dictionary.StackText(a.stack) < dictionary.StackText(b.stack);
  });
  return costs;
}

class Accountant {
 public:
  Accountant(const TraceReader& trace, BreakdownScope scope)
      : trace_(trace), spans_(Threads()), copier_(trace.dictionary(), result_.dictionary) {
    if (scope == BreakdownScope::kInstances) {
      for (const Instance& instance : trace.instances()) {
        if (instance.thread.valid()) Open(instance.thread, instance.t0_ns, instance.t1_ns);
      }
    } else {
      OpenThreads();
    }
    for (InstanceSpans& spans : spans_) spans.Prepare();
  }

  Breakdown Run() {
    std::vector<Event> events;
    for (size_t i = 0; i < trace_.blocks().size(); ++i) {
      const Status status = trace_.ReadBlock(i, events);
      if (!status.ok()) {
        result_.diagnostics.Count("events lost with a damaged block", trace_.blocks()[i].events,
                                  status.error().offset);
      }
      for (const Event& event : events) {
        result_.contents.Count(event);
        if (IsTile(event.kind) && event.thread.valid()) Charge(event);
      }
    }
    return Finish();
  }

 private:
  size_t Threads() const { return trace_.dictionary().threads().size(); }

  void Open(ThreadId thread, int64_t t0_ns, int64_t t1_ns) {
    spans_[thread.value].Insert(t0_ns, t1_ns, static_cast<uint32_t>(result_.instances++));
    result_.total_ns += t1_ns - t0_ns;
  }

  void OpenThreads() {
    const Metadata& metadata = trace_.metadata();
    std::vector<bool> seen(Threads());
    for (const BlockInfo& block : trace_.blocks()) {
      for (const BlockInfo::Owner& owner : block.owners) {
        if (owner.thread.valid() && owner.thread.value < seen.size())
          seen[owner.thread.value] = true;
      }
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      const Thread& thread = trace_.dictionary().threads()[i];
      const bool real = thread.kind == ThreadKind::kUser || thread.kind == ThreadKind::kKernel;
      if (!seen[i] || !real) continue;
      const int64_t t0_ns = std::max(metadata.begin_ns, thread.start_ns);
      const int64_t end_ns = thread.end_ns == kNoTime ? metadata.end_ns : thread.end_ns;
      Open(ThreadId(i), t0_ns, std::max(t0_ns, std::min(metadata.end_ns, end_ns)));
    }
  }

  void Charge(const Event& event) {
    spans_[event.thread.value].Overlaps(
        event.time_ns, event.end_ns(),
        [&](uint32_t instance, int64_t overlap_ns) { Charge(event, instance, overlap_ns); });
  }

  void Charge(const Event& event, uint32_t instance, int64_t overlap_ns) {
    CostMap* costs = nullptr;
    if (event.kind == EventKind::kReady) {
      result_.ready_ns += overlap_ns;
    } else if (event.kind == EventKind::kWait) {
      result_.wait_ns += overlap_ns;
      costs = &waits_;
    } else if (event.flags & kNotSampled) {
      result_.not_sampled_ns += overlap_ns;
    } else {
      result_.running_ns += overlap_ns;
      costs = &running_;
    }
    if (costs == nullptr) return;
    const StackId stack = copier_.Copy(event.stack);
    StackCost& cost = (*costs)[stack];
    cost.stack = stack;
    cost.traces = 1;
    cost.cost_ns += overlap_ns;
    ++cost.events;
    const uint64_t pair = (uint64_t{stack.value} << 32) | instance;
    if (seen_[costs == &waits_].insert(pair).second) ++cost.instances;
  }

  Breakdown Finish() {
    result_.traces = 1;
    result_.contents.instances = trace_.instances().size();
    result_.diagnostics.Merge(trace_.diagnostics());
    const int64_t attributed_ns =
        result_.running_ns + result_.not_sampled_ns + result_.wait_ns + result_.ready_ns;
    result_.unattributed_ns = result_.total_ns - attributed_ns;
    result_.waits = ByCost(result_.dictionary, waits_);
    result_.running = ByCost(result_.dictionary, running_);
    return std::move(result_);
  }

  const TraceReader& trace_;
  std::vector<InstanceSpans> spans_;  // by thread
  CostMap waits_;
  CostMap running_;
  std::array<std::unordered_set<uint64_t>, 2> seen_;  // ⟨stack, instance⟩, running and waits
  Breakdown result_;
  StackCopier copier_;
};

}  // namespace

Breakdown BreakdownOf(const TraceReader& trace, BreakdownScope scope) {
  return Accountant(trace, scope).Run();
}

void BreakdownSum::Add(const Breakdown& part) {
  sum_.traces += part.traces;
  sum_.instances += part.instances;
  sum_.contents.Add(part.contents);
  sum_.total_ns += part.total_ns;
  sum_.running_ns += part.running_ns;
  sum_.not_sampled_ns += part.not_sampled_ns;
  sum_.wait_ns += part.wait_ns;
  sum_.ready_ns += part.ready_ns;
  sum_.unattributed_ns += part.unattributed_ns;
  sum_.diagnostics.Merge(part.diagnostics);
  StackCopier copier(part.dictionary, sum_.dictionary);
  const auto add = [&](const std::vector<StackCost>& from, CostMap& to) {
    for (const StackCost& cost : from) {
      const StackId stack = copier.Copy(cost.stack);
      StackCost& row = to[stack];
      row.stack = stack;
      row.cost_ns += cost.cost_ns;
      row.events += cost.events;
      row.instances += cost.instances;
      row.traces += cost.traces;
    }
  };
  add(part.waits, waits_);
  add(part.running, running_);
}

Breakdown BreakdownSum::Finish() && {
  sum_.waits = ByCost(sum_.dictionary, waits_);
  sum_.running = ByCost(sum_.dictionary, running_);
  return std::move(sum_);
}

}  // namespace culprit::trace
