// SPDX-License-Identifier: Apache-2.0
// The critical path against its definition, nanosecond by nanosecond.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "trace/random_trace.h"
#include "waitgraph/critical_path_conserved.h"
#include "waitgraph/timelines_random.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;

struct Owner {
  ThreadId thread;
  SegmentKind kind = SegmentKind::kUnattributed;
  SegmentNote note = SegmentNote::kNone;
  size_t depth = 0;

  bool operator==(const Owner&) const = default;
};

// Who owns one nanosecond, by the definition: from the initiating thread down
// along the waits that cover this moment. Knows nothing of ranges or walks.
class NaiveOwner {
 public:
  NaiveOwner(const trace::Trace& trace, const trace::Instance& instance)
      : trace_(trace), instance_(instance), classes_(ClassifyStacks(trace.dictionary)) {}

  Owner At(int64_t time_ns) const {
    std::vector<ThreadId> on_path = {instance_.thread};
    int64_t begin_ns = instance_.t0_ns;
    int64_t end_ns = instance_.t1_ns;
    int64_t release_ns = INT64_MAX;
    while (true) {
      const ThreadId thread = on_path.back();
      const size_t depth = on_path.size() - 1;
      const Event* tile = TileAt(thread, time_ns);
      if (tile == nullptr) {
        const bool before = depth > 0 && !ActiveIn(thread, begin_ns, time_ns);
        return {thread, SegmentKind::kUnattributed,
                before ? SegmentNote::kBeforeWaker : SegmentNote::kNone, depth};
      }
      if (tile->kind == EventKind::kRunning) return {thread, SegmentKind::kRunning, {}, depth};
      if (tile->kind == EventKind::kReady) return {thread, SegmentKind::kReady, {}, depth};
      const auto unattributed = [&](SegmentNote note) {
        return Owner{thread, SegmentKind::kUnattributed, note, depth + 1};
      };
      begin_ns = std::max(begin_ns, tile->time_ns);
      end_ns = std::min(end_ns, tile->end_ns());
      if (!tile->peer.valid() || (tile->flags & trace::kWakerLost) != 0) {
        if (depth > 0) return unattributed(SegmentNote::kWakerAsleep);
        return unattributed((tile->flags & trace::kWakerLost) != 0 ? SegmentNote::kWakerLost
                                                                   : SegmentNote::kWakerUnknown);
      }
      if (tile->end_ns() > release_ns) return unattributed(SegmentNote::kWakerAsleep);
      ThreadId waker = tile->peer;
      release_ns = tile->end_ns();
      const bool untold = Untold(*tile);
      if (untold) waker = Holder(*tile, begin_ns, end_ns, release_ns);
      const bool met = std::find(on_path.begin(), on_path.end(), waker) != on_path.end();
      if (untold && (!waker.valid() || met || IsDevice(waker))) {
        return unattributed(SegmentNote::kTimeoutUnknown);
      }
      if (IsDevice(waker)) return {waker, SegmentKind::kHardware, {}, depth + 1};
      if (met) return unattributed(SegmentNote::kCycle);
      on_path.push_back(waker);
    }
  }

 private:
  bool IsDevice(ThreadId thread) const {
    return trace_.dictionary.threads()[thread.value].kind == ThreadKind::kDevice;
  }
  const Event* TileAt(ThreadId thread, int64_t time_ns) const {
    for (const Event& e : trace_.events) {
      if (IsTile(e.kind) && e.thread == thread && e.time_ns <= time_ns && time_ns < e.end_ns()) {
        return &e;
      }
    }
    return nullptr;
  }
  bool ActiveIn(ThreadId thread, int64_t begin_ns, int64_t end_ns) const {
    for (int64_t t = begin_ns; t < end_ns; ++t) {
      if (TileAt(thread, t) != nullptr) return true;
    }
    return false;
  }
  bool IsLock(const Event& e) const {
    return e.kind == EventKind::kWait && e.stack.valid() && e.peer.valid() &&
           classes_.by_stack[e.stack.value] == WaitClass::kLock;
  }
  std::string Site(const Event& e) const {
    return trace_.dictionary.StackText(e.stack).substr(0, 5);
  }

  bool Untold(const Event& e) const {
    if (!IsLock(e)) return false;
    const std::string_view name =
        trace_.dictionary.Text(trace_.dictionary.threads()[e.peer.value].name);
    if (name == "[timer]" || name == "[interrupt]") return true;
    for (const Event& u : trace_.events) {
      if (u.kind == EventKind::kUnwait && u.time_ns == e.end_ns() && u.thread == e.peer &&
          u.peer == e.thread) {
        return trace_.dictionary.StackText(u.stack).find("complete_signal") != std::string::npos;
      }
    }
    return false;
  }

  // The next wait of the thread after this one, in order of time.
  const Event* NextWait(const Event& wait) const {
    const Event* next = nullptr;
    bool past = false;
    for (const Event& e : trace_.events) {
      if (&e == &wait) {
        past = true;
        continue;
      }
      if (e.kind != EventKind::kWait || e.thread != wait.thread) continue;
      if (e.time_ns < wait.end_ns() || (e.time_ns == wait.time_ns && !past)) continue;
      if (next == nullptr || e.time_ns < next->time_ns) next = &e;
    }
    return next;
  }

  ThreadId Holder(const Event& wait, int64_t begin_ns, int64_t end_ns, int64_t& release_ns) const {
    const Event* at = &wait;
    while (true) {
      const Event* next = NextWait(*at);
      if (next == nullptr || next->stack != wait.stack) break;
      if (!Untold(*next)) {
        if (!next->peer.valid()) break;
        release_ns = next->end_ns();
        return next->peer;
      }
      at = next;
    }
    const Event* release = nullptr;
    for (const Event& e : trace_.events) {
      if (!IsLock(e) || Untold(e) || IsDevice(e.peer) || Site(e) != Site(wait)) continue;
      if (e.end_ns() < wait.end_ns()) continue;
      if (release == nullptr ||
          std::pair(e.end_ns(), e.peer) < std::pair(release->end_ns(), release->peer)) {
        release = &e;
      }
    }
    if (release == nullptr) return {};
    int64_t busy_ns = 0;
    for (int64_t t = begin_ns; t < end_ns; ++t) {
      const Event* tile = TileAt(release->peer, t);
      if (tile == nullptr) continue;
      const bool holder_may = tile->kind != EventKind::kWait ||
                              (tile->peer.valid() && tile->stack.valid() &&
                               (classes_.by_stack[tile->stack.value] == WaitClass::kDisk ||
                                (IsLock(*tile) && Site(*tile) != Site(wait))));
      busy_ns += holder_may ? 1 : 0;
    }
    if (busy_ns <= (end_ns - begin_ns) / 2) return {};
    release_ns = release->end_ns();
    return release->peer;
  }

  const trace::Trace& trace_;
  const trace::Instance& instance_;
  StackClasses classes_;
};

trace::Instance RandomInstance(const trace::Trace& trace, std::mt19937_64& random) {
  const auto end_ns = static_cast<uint64_t>(std::max<int64_t>(1, trace.metadata.end_ns));
  trace::Instance instance;
  instance.thread = ThreadId(random() % 3);
  instance.t0_ns = static_cast<int64_t>(random() % end_ns);
  instance.t1_ns = instance.t0_ns + 1 + static_cast<int64_t>(random() % end_ns);
  return instance;
}

TEST(CriticalPath, EveryNanosecondHasTheOwnerOfTheDefinition) {
  std::array<uint64_t, kSegmentNotes> notes = {};
  uint64_t deep = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    trace::Trace trace =
        RandomSchedule({.seed = seed, .threads = 3 + seed % 4, .steps = 40 + seed % 120}).Make();
    std::erase_if(trace.events, [](const Event& e) { return e.kind == EventKind::kHardware; });
    // Holes at the begin and end of threads' lives.
    if (seed % 3 == 0 && !trace.events.empty()) trace.events.erase(trace.events.begin() + 1);
    const Timelines timelines(trace);
    std::mt19937_64 random(seed);
    const trace::Instance instance = RandomInstance(trace, random);
    const CriticalPath path = FindCriticalPath(timelines, instance);
    ExpectConserved(path, instance);
    const NaiveOwner naive(trace, instance);
    for (size_t i = 0; i < path.segments.size(); ++i) {
      const Segment& s = path.segments[i];
      ++notes[static_cast<size_t>(s.note)];
      if (s.kind == SegmentKind::kWait) continue;
      for (int64_t t = s.begin_ns; t < s.end_ns; ++t) {
        const Owner owner = {s.thread, s.kind, s.note, DepthOf(path, i)};
        ASSERT_EQ(owner.depth, naive.At(t).depth) << seed << " at " << t;
        ASSERT_EQ(owner, naive.At(t)) << seed << " at " << t;
      }
      deep = std::max<uint64_t>(deep, DepthOf(path, i));
    }
  }
  EXPECT_GE(deep, 3U);
  for (const SegmentNote note :
       {SegmentNote::kWakerUnknown, SegmentNote::kWakerLost, SegmentNote::kWakerAsleep,
        SegmentNote::kTimeoutUnknown, SegmentNote::kInferredHolder, SegmentNote::kReentered}) {
    EXPECT_GT(notes[static_cast<size_t>(note)], 10U) << Name(note);
  }
}

TEST(CriticalPath, AnyTraceConservesTime) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const trace::Trace trace =
        seed % 10 == 0 ? trace::RandomTrace({.seed = seed, .wild = seed % 20 == 0})
                       : RandomSchedule({.seed = seed, .steps = 150, .faulty = true}).Make();
    const Timelines timelines(trace);
    PathFinder finder(timelines, {.max_depth = seed % 2 == 0 ? 2U : 1000U});
    CriticalPath path;
    std::mt19937_64 random(seed);
    std::vector<trace::Instance> instances = trace.instances;
    for (int i = 0; i < 3; ++i) instances.push_back(RandomInstance(trace, random));
    for (const trace::Instance& instance : instances) {
      finder.Find(instance, path);
      ASSERT_NO_FATAL_FAILURE(ExpectConserved(path, instance)) << seed;
    }
  }
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
