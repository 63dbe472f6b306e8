// SPDX-License-Identifier: Apache-2.0
#include "causality/wait_ledger.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace culprit::causality {
namespace {

// Of intervals in order of their begins.
template <class Intervals>
int64_t UnionNs(const Intervals& intervals) {
  int64_t sum_ns = 0;
  int64_t until_ns = INT64_MIN;
  for (const auto& interval : intervals) {
    const int64_t begin_ns = std::max(interval.begin_ns, until_ns);
    if (interval.end_ns <= begin_ns) continue;
    AddNs(sum_ns, interval.end_ns - begin_ns);
    until_ns = interval.end_ns;
  }
  return sum_ns;
}

// Components are numbered densely; those that never came up are left out.
class SumByComponent {
 public:
  ImpactTimes& At(ComponentId component) {
    if (component >= sums_.size()) {
      sums_.resize(std::max<size_t>(component + 1, 2 * sums_.size()));
      used_.resize(sums_.size());
    }
    used_[component] = 1;
    return sums_[component];
  }
  // Empty afterwards.
  void MoveTo(uint32_t scenario, std::vector<ImpactCell>& cells) {
    for (ComponentId i = 0; i < sums_.size(); ++i) {
      if (used_[i] == 0) continue;
      cells.push_back({.scenario = scenario, .component = i, .times = sums_[i]});
      sums_[i] = {};
      used_[i] = 0;
    }
  }

 private:
  std::vector<ImpactTimes> sums_;
  std::vector<uint8_t> used_;
};

}  // namespace

ImpactTimes& WaitLedger::Times(uint32_t scenario, SetId components) {
  return *times_.Insert(uint64_t{scenario} << 32 | components).first;
}

void WaitLedger::BeginInstance(uint32_t place, uint32_t scenario) {
  place_ = place;
  scenario_ = scenario;
  touched_ = kEmptySet;
}

void WaitLedger::CountWait(waitgraph::EventIndex event, SetId components, int64_t begin_ns,
                           int64_t end_ns) {
  ImpactTimes& times = Times(scenario_, components);
  ++times.waits;
  AddNs(times.wait_ns, end_ns - begin_ns);
  touched_ = sets_.Union(touched_, components);
  entries_.push_back({event, components, begin_ns, end_ns, scenario_, place_});
}

void WaitLedger::CountRun(SetId components, int64_t dur_ns) {
  if (components >= run_ns_.size()) run_ns_.resize(components + 1, -1);
  int64_t& sum_ns = run_ns_[components];
  if (sum_ns < 0) {
    run_sets_.push_back(components);
    sum_ns = 0;
  }
  AddNs(sum_ns, dur_ns);
}

void WaitLedger::EndInstance() {
  for (const SetId set : run_sets_) {
    AddNs(Times(scenario_, set).run_ns, run_ns_[set]);
    run_ns_[set] = -1;
    touched_ = sets_.Union(touched_, set);
  }
  run_sets_.clear();
  if (touched_ != kEmptySet) ++Times(scenario_, touched_).instances;
}

void WaitLedger::UniteFor(Entries entries, SetId components, uint32_t scenario) {
  ImpactTimes& times = Times(scenario, components);
  ++times.distinct_waits;
  AddNs(times.distinct_wait_ns, UnionNs(entries));
}

// All entries count for the same components, as is usual: per scenario, and all.
void WaitLedger::UniteAlike(Entries of_event) {
  const SetId components = of_event.front().components;
  UniteFor(of_event, components, kAllScenarios);
  const uint32_t scenario = of_event.front().scenario;
  if (std::ranges::all_of(of_event, [&](const Entry& e) { return e.scenario == scenario; })) {
    UniteFor(of_event, components, scenario);
    return;
  }
  std::map<uint32_t, std::vector<Entry>> by_scenario;
  for (const Entry& entry : of_event) by_scenario[entry.scenario].push_back(entry);
  for (const auto& [of, entries] : by_scenario) UniteFor(entries, components, of);
}

void WaitLedger::UniteEach(Entries of_event) {
  std::map<ComponentId, std::vector<Entry>> by_component;
  for (const Entry& entry : of_event) {
    for (const ComponentId component : sets_.Items(entry.components)) {
      by_component[component].push_back(entry);
    }
  }
  for (auto& [component, entries] : by_component) {
    const SetId set = sets_.Intern(std::span(&component, 1));
    for (Entry& entry : entries) entry.components = set;
    UniteAlike(entries);
  }
}

void WaitLedger::KeepShared(Entries of_event) {
  SharedWait wait;
  wait.event = of_event.front().event;
  std::vector<Entry> of_set;
  for (const Entry& entry : of_event) {
    if (!sets_.Has(entry.components, kWholeSet)) continue;
    of_set.push_back(entry);
    ++wait.instances;
    AddNs(wait.charged_ns, entry.end_ns - entry.begin_ns);
    wait.places.push_back(entry.place);
  }
  wait.distinct_ns = UnionNs(of_set);
  if (wait.instances < 2 || wait.charged_ns == wait.distinct_ns) return;
  std::sort(wait.places.begin(), wait.places.end());
  if (wait.places.size() > kMaxNamedInstances) wait.places.resize(kMaxNamedInstances);
  shared_.push_back(std::move(wait));
  // Cut now and then, so that a convoy's many stay few.
  if (shared_.size() < 4 * kMaxPropagatedWaits) return;
  const auto beyond = [](const SharedWait& w) { return w.charged_ns - w.distinct_ns; };
  std::sort(shared_.begin(), shared_.end(), [&](const SharedWait& a, const SharedWait& b) {
    return beyond(a) != beyond(b) ? beyond(a) > beyond(b) : timelines_.IsBefore(a.event, b.event);
  });
  shared_.resize(kMaxPropagatedWaits);
}

void WaitLedger::Unite(Entries of_event) {
  if (of_event.size() == 1) {
    const Entry& entry = of_event.front();
    UniteFor(of_event, entry.components, entry.scenario);
    UniteFor(of_event, entry.components, kAllScenarios);
    return;
  }
  const bool alike = std::all_of(of_event.begin(), of_event.end(), [&](const Entry& entry) {
    return entry.components == of_event.front().components;
  });
  if (alike) {
    UniteAlike(of_event);
  } else {
    UniteEach(of_event);
  }
}

std::vector<ImpactCell> WaitLedger::Close() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.event, a.begin_ns, a.end_ns, a.place) <
           std::tie(b.event, b.begin_ns, b.end_ns, b.place);
  });
  std::vector<Entries> of_several;
  for (size_t begin = 0; begin < entries_.size();) {
    size_t end = begin + 1;
    while (end < entries_.size() && entries_[end].event == entries_[begin].event) ++end;
    const Entries of_event = Entries(entries_).subspan(begin, end - begin);
    Unite(of_event);
    if (of_event.size() > 1) of_several.push_back(of_event);
    begin = end;
  }
  // By time, wherever in the trace they stand: names are numbered in this order.
  const auto before = [&](Entries a, Entries b) {
    return timelines_.IsBefore(a.front().event, b.front().event);
  };
  std::sort(of_several.begin(), of_several.end(), before);
  for (const Entries of_event : of_several) KeepShared(of_event);
  entries_.clear();
  return OpenSets();
}

// A scenario's sets at a time, added up by component.
std::vector<ImpactCell> WaitLedger::OpenSets() {
  std::vector<uint64_t> keys;
  times_.ForEach([&](uint64_t key, const ImpactTimes&) { keys.push_back(key); });
  std::sort(keys.begin(), keys.end());
  std::vector<ImpactCell> cells;
  SumByComponent of_all;
  SumByComponent of_scenario;
  for (size_t begin = 0; begin < keys.size();) {
    const auto scenario = static_cast<uint32_t>(keys[begin] >> 32);
    SumByComponent& sums = scenario == kAllScenarios ? of_all : of_scenario;
    size_t end = begin;
    for (; end < keys.size() && keys[end] >> 32 == scenario; ++end) {
      const ImpactTimes& times = *times_.Find(keys[end]);
      for (const ComponentId component : sets_.Items(static_cast<SetId>(keys[end]))) {
        sums.At(component).Add(times);
      }
    }
    const size_t first = cells.size();
    of_scenario.MoveTo(scenario, cells);
    for (size_t i = first; i < cells.size(); ++i) {
      // A wait that several scenarios share is one: what is distinct was found out of all.
      ImpactTimes everywhere = cells[i].times;
      everywhere.distinct_wait_ns = 0;
      everywhere.distinct_waits = 0;
      of_all.At(cells[i].component).Add(everywhere);
    }
    begin = end;
  }
  of_all.MoveTo(kAllScenarios, cells);
  return cells;
}

}  // namespace culprit::causality
