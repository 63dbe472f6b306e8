// SPDX-License-Identifier: Apache-2.0
//
// WaitLedger: the top-level waits counted for the instances of one trace, and what
// they come to: D_wait, D_run, and D_waitdist, in which every nanosecond of a wait
// event counts once however many instances it delayed (003 §3.2). Parts of one
// event that were clipped by different instances are united, not added. Sums are
// kept per set of components and opened into components at the end.
//
// One thread at a time. 32 bytes a counted wait until Close().
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "causality/evidence.h"
#include "causality/set_table.h"
#include "waitgraph/timelines.h"

namespace culprit::causality {

// A wait event that delayed several instances, for the whole set.
struct SharedWait {
  waitgraph::EventIndex event = waitgraph::kNoEvent;
  uint64_t instances = 0;
  int64_t charged_ns = 0;
  int64_t distinct_ns = 0;
  std::vector<uint32_t> places;  // of those instances, as given, at most kMaxNamedInstances
};

class WaitLedger {
 public:
  // Both must outlive it.
  WaitLedger(const waitgraph::Timelines& timelines, SetTable& sets)
      : timelines_(timelines), sets_(sets) {}

  void BeginInstance(uint32_t place, uint32_t scenario);
  // `components` not empty; the wait clipped to the instance.
  void CountWait(waitgraph::EventIndex event, SetId components, int64_t begin_ns, int64_t end_ns);
  void CountRun(SetId components, int64_t dur_ns);
  void EndInstance();

  // Unites the waits. Cells: ⟨scenario, component⟩ and ⟨all, component⟩, ascending.
  std::vector<ImpactCell> Close();
  // After Close(): those that cost most beyond once, at most kMaxPropagatedWaits.
  const std::vector<SharedWait>& shared() const { return shared_; }

 private:
  struct Entry {
    waitgraph::EventIndex event = 0;
    SetId components = kEmptySet;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    uint32_t scenario = 0;
    uint32_t place = 0;
  };
  using Entries = std::span<const Entry>;

  ImpactTimes& Times(uint32_t scenario, SetId components);
  void Unite(Entries of_event);
  void UniteFor(Entries entries, SetId components, uint32_t scenario);
  void UniteAlike(Entries of_event);
  void UniteEach(Entries of_event);
  void KeepShared(Entries of_event);
  std::vector<ImpactCell> OpenSets();

  const waitgraph::Timelines& timelines_;
  SetTable& sets_;
  std::vector<Entry> entries_;
  FlatMap<uint64_t, ImpactTimes> times_;  // by scenario << 32 | set
  std::vector<int64_t> run_ns_;           // by set, of the current instance
  std::vector<SetId> run_sets_;
  SetId touched_ = kEmptySet;  // components with anything in the current instance
  uint32_t place_ = 0;
  uint32_t scenario_ = 0;
  std::vector<SharedWait> shared_;
};

}  // namespace culprit::causality
