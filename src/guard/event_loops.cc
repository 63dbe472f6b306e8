// SPDX-License-Identifier: Apache-2.0
#include "guard/event_loops.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kMinWakes = 2;  // of one thread: it wakes again and again

bool IsExternal(wire::WaitCall call) {
  switch (call) {
    case wire::WaitCall::kCondition:
    case wire::WaitCall::kSemaphore:
    case wire::WaitCall::kFutex:
    case wire::WaitCall::kOther:
      return false;
    default:
      return true;
  }
}

using EvidenceRow = std::pair<const LoopKey, LoopEvidence>;

// All evidence of one holder.
struct LoopCandidate {
  std::vector<const EvidenceRow*> rows;
  EventLoop loop;
  uint64_t pairs = 0;
  std::set<std::pair<uint32_t, uint32_t>> threads;
  bool accepted = false;
};

// The head of the loop is the wait with the shortest way from the holder: waits
// of handlers lie deeper. Rare ones are no heads.
const EvidenceRow* Head(const std::vector<const EvidenceRow*>& rows) {
  uint64_t most = 0;
  for (const EvidenceRow* row : rows) most = std::max(most, row->second.pairs);
  const EvidenceRow* best = nullptr;
  const auto order = [](const EvidenceRow& row) {
    return std::tuple(row.second.chain.size(), UINT64_MAX - row.second.pairs);
  };
  for (const EvidenceRow* row : rows) {
    if (row->second.pairs * 10 < most) continue;
    if (best == nullptr || order(*row) < order(*best)) best = row;
  }
  return best;
}

// Other calls through the same functions head it too.
void TakeSites(LoopCandidate& candidate) {
  const EvidenceRow* head = Head(candidate.rows);
  CULPRIT_CHECK(head != nullptr);  // the most frequent row is one
  std::map<WaitSite, uint64_t> pairs;
  for (const EvidenceRow* row : candidate.rows) {
    const LoopEvidence& evidence = row->second;
    if (row != head && evidence.chain != head->second.chain) continue;
    uint64_t& most = pairs[row->first.site];
    if (evidence.pairs > most) {
      most = evidence.pairs;
      candidate.loop.sites[row->first.site] = static_cast<int32_t>(row->first.base_offset16 * 16);
    }
    candidate.pairs += evidence.pairs;
    candidate.threads.insert(evidence.threads.begin(), evidence.threads.end());
    candidate.loop.external |= IsExternal(row->first.site.call);
  }
}

// Threads that wake what the candidate's threads wait for.
std::set<std::pair<uint32_t, uint32_t>> Wakers(const LoopCandidate& candidate,
                                               const LoopScan::Wakes& wakes) {
  std::set<std::pair<uint32_t, uint32_t>> wakers;
  for (const EvidenceRow* row : candidate.rows) {
    if (!candidate.loop.sites.contains(row->first.site)) continue;
    for (const auto& object : row->second.objects) {
      const auto found = wakes.find(object);
      if (found == wakes.end()) continue;
      for (const auto& [tid, times] : found->second) {
        if (times >= kMinWakes) wakers.insert({object.first, tid});
      }
    }
  }
  return wakers;
}

bool IsNested(const LoopCandidate& candidate) {
  uint64_t inside = 0;
  uint64_t pairs = 0;
  for (const EvidenceRow* row : candidate.rows) {
    if (!candidate.loop.sites.contains(row->first.site)) continue;
    inside += row->second.inside_other;
    pairs += row->second.pairs;
  }
  return inside * 3 >= pairs * 2;
}

bool ShareThread(const EvidenceRow& x, const EvidenceRow& y) {
  return std::any_of(x.second.threads.begin(), x.second.threads.end(),
                     [&](const auto& thread) { return y.second.threads.contains(thread); });
}

// Evidence with the same holder that occurs in the same threads. A function in
// which different threads begin their life may hold the loops of all of them.
// Without a holder, a site stands alone.
std::vector<LoopCandidate> Candidates(const LoopScan& scan, uint64_t min_iterations) {
  std::map<uint32_t, std::vector<LoopCandidate>> by_holder;
  for (const EvidenceRow& row : scan.evidence()) {
    if (row.second.pairs < min_iterations || row.second.ready < min_iterations) continue;
    std::vector<LoopCandidate>& known = by_holder[row.first.holder];
    LoopCandidate made;
    made.loop.holder = row.first.holder;
    made.rows.push_back(&row);
    for (LoopCandidate& candidate : known) {
      const bool same = std::any_of(candidate.rows.begin(), candidate.rows.end(), [&](auto* other) {
        if (row.first.holder == kNoIndex) return other->first.site == row.first.site;
        return ShareThread(*other, row) || other->first.site == row.first.site;
      });
      if (!same) continue;
      made.rows.insert(made.rows.end(), candidate.rows.begin(), candidate.rows.end());
      candidate.rows.clear();
    }
    std::erase_if(known, [](const LoopCandidate& candidate) { return candidate.rows.empty(); });
    known.push_back(std::move(made));
  }
  std::vector<LoopCandidate> candidates;
  for (auto& [holder, of_holder] : by_holder) {
    for (LoopCandidate& candidate : of_holder) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// A wait call can head one loop only (that of an event library serves all who
// call it): the busiest, but with the base furthest out, so that what the others
// enter again lies below it too. Depths count from the call either way.
void ShareSites(std::vector<LoopCandidate>& candidates) {
  std::map<WaitSite, LoopCandidate*> owner;
  for (LoopCandidate& candidate : candidates) {
    if (!candidate.accepted) continue;
    for (auto site = candidate.loop.sites.begin(); site != candidate.loop.sites.end();) {
      const auto [of_site, made] = owner.try_emplace(site->first, &candidate);
      if (made) {
        ++site;
        continue;
      }
      int32_t& base = of_site->second->loop.sites[site->first];
      base = std::max(base, site->second);
      of_site->second->threads.insert(candidate.threads.begin(), candidate.threads.end());
      site = candidate.loop.sites.erase(site);
    }
    candidate.accepted = !candidate.loop.sites.empty();
  }
}

}  // namespace

std::vector<EventLoop> FindEventLoops(const LoopScan& scan, uint64_t min_iterations) {
  std::vector<LoopCandidate> candidates = Candidates(scan, min_iterations);
  for (LoopCandidate& candidate : candidates) TakeSites(candidate);
  std::erase_if(candidates, IsNested);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& x, const auto& y) { return x.pairs > y.pairs; });
  std::vector<std::set<std::pair<uint32_t, uint32_t>>> wakers;
  for (LoopCandidate& candidate : candidates) {
    wakers.push_back(Wakers(candidate, scan.wakes()));
    bool by_others = candidate.threads.size() > 1 && !wakers.back().empty();
    for (const auto& waker : wakers.back()) by_others |= !candidate.threads.contains(waker);
    candidate.accepted = candidate.loop.external || by_others;
  }
  ShareSites(candidates);
  std::vector<uint32_t> number(candidates.size(), kNoIndex);
  std::vector<EventLoop> loops;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].accepted) continue;
    number[i] = static_cast<uint32_t>(loops.size());
    loops.push_back(candidates[i].loop);
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (number[i] == kNoIndex) continue;
    for (size_t j = 0; j < candidates.size(); ++j) {
      if (i == j || number[j] == kNoIndex) continue;
      const bool wakes = std::any_of(wakers[i].begin(), wakers[i].end(), [&](const auto& waker) {
        return candidates[j].threads.contains(waker);
      });
      if (wakes) loops[number[i]].woken_by.push_back(number[j]);
    }
  }
  return loops;
}

}  // namespace culprit::guard
