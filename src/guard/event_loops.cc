// SPDX-License-Identifier: Apache-2.0
#include "guard/event_loops.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kMinWakes = 2;      // of one thread: it wakes again and again
constexpr uint64_t kMinMoves = 4;      // to another source of input, to be no chance...
constexpr uint64_t kMovesToStays = 9;  // ...and so often for each time that it is the same
constexpr uint64_t kMinRounds = 3;     // of the loop inside, each time
// Waits of the holder in fewer iterations are no part of what it does for any of them.
constexpr uint64_t kSeldom = 64;

using EvidenceRow = std::pair<const LoopKey, LoopEvidence>;

using ThreadKey = std::pair<uint32_t, uint32_t>;  // process, thread

// All evidence of one holder.
struct LoopCandidate {
  std::vector<const EvidenceRow*> rows;
  EventLoop loop;
  uint64_t pairs = 0;
  std::set<ThreadKey> threads;
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

// Other calls through the same functions head it too. It turns where the holder calls
// what leads to the wait; nowhere, if that is in the holder itself.
void TakeSites(LoopCandidate& candidate, const LoopScan& scan) {
  const EvidenceRow* head = Head(candidate.rows);
  CULPRIT_CHECK(head != nullptr);  // the most frequent row is one
  std::map<WaitSite, uint64_t> pairs;
  std::set<Context> turns;
  bool reads = false;  // what comes at once into a reader's buffer is one thing to do
  for (const EvidenceRow* row : candidate.rows) {
    const LoopEvidence& evidence = row->second;
    if (row != head && evidence.chain != head->second.chain) continue;
    uint64_t& most = pairs[row->first.site];
    if (evidence.pairs > most) {
      most = evidence.pairs;
      candidate.loop.sites[row->first.site] = static_cast<int32_t>(row->first.base_offset16 * 16);
    }
    candidate.loop.holder_unwound &= evidence.holder_unwound;
    candidate.pairs += evidence.pairs;
    candidate.threads.insert(evidence.threads.begin(), evidence.threads.end());
    candidate.loop.external |= ReceivesFromOutside(row->first.site.call);
    reads |= row->first.site.call == wire::WaitCall::kRead;
    if (evidence.chain.size() > 1 && scan.WasEntered(evidence.chain[1])) {
      turns.insert({evidence.chain[1], evidence.callee_depth});
    }
  }
  if (candidate.loop.hand_over || reads) return;
  candidate.loop.turns.assign(turns.begin(), turns.end());
}

bool AnyTwoOfOneProcess(const std::set<ThreadKey>& threads) {
  return std::adjacent_find(threads.begin(), threads.end(), [](const auto& a, const auto& b) {
           return a.first == b.first;
         }) != threads.end();
}

// Threads that serve one connection after the other wait in between to be given the
// next; often training ends before any of them does. What the loop's function waits for
// itself in its iterations would be seen.
bool Parks(const LoopCandidate& candidate, const std::set<LoopKey>& hand_overs) {
  const EventLoop& loop = candidate.loop;
  if (loop.holder == kNoIndex || !loop.holder_unwound || loop.hand_over ||
      !AnyTwoOfOneProcess(candidate.threads) ||
      !std::all_of(loop.sites.begin(), loop.sites.end(),
                   [](const auto& site) { return ReceivesFromOutside(site.first.call); })) {
    return false;
  }
  uint64_t waits = 0;
  for (const EvidenceRow* row : candidate.rows) {
    for (const auto& wait : row->second.across_in_holder) {
      const bool gives_work =
          std::any_of(hand_overs.begin(), hand_overs.end(),
                      [&](const LoopKey& key) { return key.site == wait.first; });
      if (!gives_work) waits += wait.second;
    }
  }
  return waits * kSeldom <= candidate.pairs;
}

// Threads that wake what the candidate's threads wait for.
std::set<ThreadKey> Wakers(const LoopCandidate& candidate, const LoopScan::Wakes& wakes) {
  std::set<ThreadKey> wakers;
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

uint64_t PairsInside(const LoopEvidence& evidence, const LoopKey& outer) {
  const auto found = evidence.inside.find(outer);
  return found == evidence.inside.end() ? 0 : found->second;
}

bool IsNested(const LoopCandidate& candidate, const std::set<LoopKey>& hand_overs) {
  uint64_t inside = 0;
  uint64_t pairs = 0;
  for (const EvidenceRow* row : candidate.rows) {
    if (!candidate.loop.sites.contains(row->first.site)) continue;
    pairs += row->second.pairs;
    for (const auto& [outer, times] : row->second.inside) {
      if (!hand_overs.contains(outer)) inside += times;
    }
  }
  return !candidate.loop.hand_over && inside * 3 >= pairs * 2;
}

bool ShareThread(const EvidenceRow& x, const EvidenceRow& y) {
  return std::any_of(x.second.threads.begin(), x.second.threads.end(),
                     [&](const auto& thread) { return y.second.threads.contains(thread); });
}

// Waits within the process after which a thread nearly always has another source
// of input than before, and without which it seldom has another (after a wait that
// is rare any source is another one), and waits for that from outside again and
// again before it comes back: inside of them, or beside them in one function.
std::set<LoopKey> FindHandOvers(const LoopScan& scan) {
  std::set<LoopKey> hand_overs;
  for (const EvidenceRow& outer : scan.evidence()) {
    const auto& [key, evidence] = outer;
    if (ReceivesFromOutside(key.site.call) || key.holder == kNoIndex ||
        evidence.moved < kMinMoves || evidence.moved < kMovesToStays * evidence.stayed) {
      continue;
    }
    uint64_t changes = 0;
    for (const auto& thread : evidence.threads) changes += scan.SourceChanges(thread);
    if (2 * evidence.moved < changes) continue;
    uint64_t rounds = 0;
    for (const EvidenceRow& inner : scan.evidence()) {
      if (!ReceivesFromOutside(inner.first.site.call) || inner.first.holder == kNoIndex) continue;
      rounds = std::max(rounds, PairsInside(inner.second, key));
      if (inner.first.holder == key.holder && ShareThread(inner, outer)) {
        rounds = std::max(rounds, inner.second.pairs);
      }
    }
    if (rounds >= kMinRounds * evidence.pairs) hand_overs.insert(key);
  }
  return hand_overs;
}

// It only seems to be a loop: between its waits lies the way over a hand-over.
bool LeadsAcross(const EvidenceRow& row, const std::set<LoopKey>& hand_overs) {
  return std::any_of(hand_overs.begin(), hand_overs.end(), [&](const LoopKey& hand_over) {
    const auto found = row.second.across.find(hand_over.site);
    return hand_over.holder == row.first.holder && found != row.second.across.end() &&
           10 * found->second >= 9 * row.second.pairs;
  });
}

// Evidence with the same holder that occurs in the same threads. A function in
// which different threads begin their life may hold the loops of all of them.
// Without a holder, a site stands alone.
std::vector<LoopCandidate> Candidates(const LoopScan& scan, const std::set<LoopKey>& hand_overs,
                                      uint64_t min_iterations) {
  std::map<uint32_t, std::vector<LoopCandidate>> by_holder;
  for (const EvidenceRow& row : scan.evidence()) {
    if (hand_overs.contains(row.first) || LeadsAcross(row, hand_overs) ||
        row.second.pairs < min_iterations || row.second.ready < min_iterations)
      continue;
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
  for (const EvidenceRow& row : scan.evidence()) {
    if (!hand_overs.contains(row.first)) continue;
    LoopCandidate& made = candidates.emplace_back();
    made.loop.holder = row.first.holder;
    made.loop.hand_over = true;
    made.rows.push_back(&row);
  }
  for (auto& [holder, of_holder] : by_holder) {
    for (LoopCandidate& candidate : of_holder) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace

std::vector<EventLoop> FindEventLoops(const LoopScan& scan, uint64_t min_iterations) {
  const std::set<LoopKey> hand_overs = FindHandOvers(scan);
  std::vector<LoopCandidate> candidates = Candidates(scan, hand_overs, min_iterations);
  for (LoopCandidate& candidate : candidates) TakeSites(candidate, scan);
  std::erase_if(candidates,
                [&](const LoopCandidate& candidate) { return IsNested(candidate, hand_overs); });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& x, const auto& y) { return x.pairs > y.pairs; });
  std::vector<std::set<ThreadKey>> wakers;
  for (LoopCandidate& candidate : candidates) {
    wakers.push_back(Wakers(candidate, scan.wakes()));
    bool by_others = candidate.threads.size() > 1 && !wakers.back().empty();
    for (const auto& waker : wakers.back()) by_others |= !candidate.threads.contains(waker);
    candidate.loop.parks = Parks(candidate, hand_overs);
    candidate.accepted = candidate.loop.external || candidate.loop.hand_over || by_others;
  }
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
