// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/auto_instances.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "waitgraph/auto_instances_handlers.h"
#include "waitgraph/glob.h"
#include "waitgraph/idle_wait_activity.h"
#include "waitgraph/idle_wait_paths.h"
#include "waitgraph/role.h"

namespace culprit::waitgraph {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;

// A thread that runs more than this does something, asked or not.
constexpr int64_t kMaxHousekeepingPercent = 1;
// If this share of a thread's waits that have stacks is idle, those without are.
constexpr uint64_t kMostlyIdlePercent = 95;

std::vector<bool> StacksMatching(const trace::Dictionary& dictionary,
                                 const std::vector<std::string>& globs) {
  if (globs.empty()) return {};
  return StacksWithFrame(dictionary, FramesMatching(dictionary, globs));
}

bool Marked(const std::vector<bool>& stacks, trace::StackId stack) {
  return stack.valid() && stack.value < stacks.size() && stacks[stack.value];
}

RoleBasis BasisOf(const RoleVerdict& role) {
  RoleBasis basis = RoleBasis::kNothing;
  uint64_t most = 0;
  constexpr std::pair<WaitEvidence, RoleBasis> kBases[] = {
      {WaitEvidence::kStack, RoleBasis::kStacks},
      {WaitEvidence::kSyscall, RoleBasis::kSyscalls},
      {WaitEvidence::kWaker, RoleBasis::kWakers}};
  for (const auto& [evidence, candidate] : kBases) {
    const uint64_t waits = role.by_evidence[static_cast<size_t>(evidence)];
    if (waits <= most) continue;
    most = waits;
    basis = candidate;
  }
  // Waits without stacks are only judged in threads that have no others.
  const bool any_stack = role.by_evidence[static_cast<size_t>(WaitEvidence::kStack)] != 0;
  return any_stack ? RoleBasis::kStacks : basis;
}

// One thread's time, cut at its idle waits.
struct Cut {
  std::vector<trace::Instance> instances;  // scenario not set
  int64_t idle_ns = 0;
  int64_t run_ns = 0;
  int64_t span_ns = 0;
  bool only_idles = true;  // every wait may be idle and nobody asked for anything
  bool stirred = false;    // it ran, could have run, or is stuck on a resource
};

class Finder {
 public:
  Finder(const Timelines& timelines, const AutoInstanceOptions& options)
      : timelines_(timelines),
        trace_(timelines.trace()),
        options_(options),
        classes_(ClassifyStacks(trace_.dictionary)),
        facts_(ClassifyWaits(timelines, classes_)),
        paths_(trace_.dictionary),
        always_(StacksMatching(trace_.dictionary, options.idle)),
        never_(StacksMatching(trace_.dictionary, options.not_idle)) {}

  AutoInstances Find() {
    result_.idle_wait.resize(trace_.events.size());
    std::vector<ThreadId> threads = Candidates();
    result_.reason = WhyNone(threads);
    if (!result_.reason.empty()) return std::move(result_);
    const std::vector<ThreadActivity> activity =
        GatherActivity(timelines_, classes_, facts_, never_, paths_);
    for (const RoleVerdict& role : FindRoles(trace_.dictionary, paths_, activity, threads)) {
      FindIdleTails(role, activity);
      AddRole(role);
    }
    Finish();
    return std::move(result_);
  }

 private:
  std::vector<ThreadId> Candidates() const {
    std::vector<ThreadId> threads;
    const std::vector<trace::Thread>& all = trace_.dictionary.threads();
    for (size_t i = 0; i < all.size(); ++i) {
      const bool wanted = all[i].kind == ThreadKind::kUser ||
                          (all[i].kind == ThreadKind::kKernel && options_.kernel_threads);
      if (wanted && !timelines_.tiles(ThreadId(i)).empty()) threads.push_back(ThreadId(i));
    }
    return threads;
  }

  std::string WhyNone(const std::vector<ThreadId>& threads) const {
    if (!trace_.metadata.has_switches) {
      return "the recording has no context switches, so nothing tells when threads waited";
    }
    if (threads.empty()) return "no thread ran or waited in the recording";
    return {};
  }

  bool IsIdle(const RoleVerdict& role, EventIndex i, bool assume_without_stack) {
    const Event& wait = timelines_.event(i);
    if (Marked(never_, wait.stack)) return false;
    if (Marked(always_, wait.stack)) return true;
    const WaitFact& fact = facts_.by_event[i];
    const bool can =
        CanBeIdle(fact.purpose) || (fact.purpose == WaitPurpose::kSync && role.loop.by_sync);
    if (can && IsIdlePath(role, PathOfWait(wait, fact, facts_, paths_))) return true;
    if (!assume_without_stack) return false;
    return fact.evidence == WaitEvidence::kNone ||
           (fact.evidence == WaitEvidence::kWaker && fact.wait_class != WaitClass::kDisk);
  }

  bool IsIdlePath(const RoleVerdict& role, PathId path) {
    const auto [it, added] = idle_path_.try_emplace(path);
    if (added)
      it->second = paths_.Truncated(path) ? IsIdleTail(role, path) : role.IsIdle(paths_, path);
    return it->second;
  }

  // A stack without its callers is idle if it ends as an idle one does.
  bool IsIdleTail(const RoleVerdict& role, PathId path) const {
    return role.IsIdle(paths_, path) ||
           std::any_of(idle_tails_.begin(), idle_tails_.end(),
                       [&](PathId whole) { return paths_.IsTailOf(path, whole); });
  }

  // The whole paths at which this role idles.
  void FindIdleTails(const RoleVerdict& role, const std::vector<ThreadActivity>& activity) {
    idle_tails_.clear();
    for (const ThreadId thread : role.threads) {
      for (const auto& [path, counts] : activity[thread.value].activity) {
        const bool idles = counts.idle != 0 || (counts.sync != 0 && role.loop.by_sync);
        if (idles && !paths_.Truncated(path) && role.IsIdle(paths_, path)) {
          idle_tails_.push_back(path);
        }
      }
    }
    std::sort(idle_tails_.begin(), idle_tails_.end());
    idle_tails_.erase(std::unique(idle_tails_.begin(), idle_tails_.end()), idle_tails_.end());
  }

  // Waits of which nothing is known are most likely what nearly all others of the
  // thread are. With nothing known about any, calling them delays would drown
  // those that are.
  bool MostlyIdles(const RoleVerdict& role, ThreadId thread) {
    const bool has_stacks = role.by_evidence[static_cast<size_t>(WaitEvidence::kStack)] != 0;
    const WaitEvidence least = has_stacks ? WaitEvidence::kStack : WaitEvidence::kWaker;
    uint64_t known = 0;
    uint64_t idle = 0;
    for (const EventIndex i : timelines_.tiles(thread)) {
      const Event& event = timelines_.event(i);
      if (event.kind != EventKind::kWait) continue;
      if (facts_.by_event[i].evidence < least) continue;
      ++known;
      idle += IsIdle(role, i, false) ? 1 : 0;
    }
    return idle * 100 >= known * kMostlyIdlePercent;
  }

  // A wait that may be idle, or of which nothing is known, and that nobody ended
  // but a timer.
  bool IsHousekeeping(EventIndex i) const {
    const Event& wait = timelines_.event(i);
    const WaitFact& fact = facts_.by_event[i];
    const bool may_idle = CanBeIdle(fact.purpose) || fact.purpose == WaitPurpose::kSync ||
                          fact.evidence == WaitEvidence::kNone;
    if (!may_idle) return false;
    if (!trace_.metadata.has_wakers) return fact.purpose == WaitPurpose::kTimer;
    return !wait.peer.valid() || EndedByTimer(trace_.dictionary, wait);
  }

  // A thread that never ran in the recording tells nothing, unless it is stuck.
  bool IsStuck(EventIndex i) const {
    const WaitFact& fact = facts_.by_event[i];
    if (Marked(never_, timelines_.event(i).stack)) return true;
    return fact.wait_class != WaitClass::kChild &&
           (fact.purpose == WaitPurpose::kWork || fact.purpose == WaitPurpose::kStall);
  }

  int64_t WithinRecording(int64_t time_ns) const {
    const trace::Metadata& metadata = trace_.metadata;
    if (metadata.begin_ns >= metadata.end_ns) return time_ns;
    return std::clamp(time_ns, metadata.begin_ns, metadata.end_ns);
  }

  Cut CutThread(const RoleVerdict& role, ThreadId thread) {
    const std::span<const EventIndex> tiles = timelines_.tiles(thread);
    const bool assume = MostlyIdles(role, thread);
    Cut cut;
    const int64_t begin_ns = WithinRecording(timelines_.event(tiles.front()).time_ns);
    int64_t from_ns = begin_ns;
    int64_t end_ns = begin_ns;
    const auto close = [&](int64_t at_ns) {
      if (at_ns > from_ns) cut.instances.push_back({{}, thread, from_ns, at_ns});
    };
    for (size_t i = 0; i < tiles.size(); ++i) {
      const Event& tile = timelines_.event(tiles[i]);
      const int64_t tile_begin_ns = std::max(end_ns, WithinRecording(tile.time_ns));
      const int64_t tile_end_ns =
          std::max(tile_begin_ns, WithinRecording(timelines_.TileEnd(thread, i)));
      if (tile.kind == EventKind::kRunning) cut.run_ns += tile_end_ns - tile_begin_ns;
      cut.stirred = cut.stirred || tile.kind != EventKind::kWait || IsStuck(tiles[i]);
      if (tile.kind == EventKind::kWait) {
        if (IsIdle(role, tiles[i], assume)) {
          result_.idle_wait[tiles[i]] = true;
          close(tile_begin_ns);
          cut.idle_ns += tile_end_ns - tile_begin_ns;
          from_ns = tile_end_ns;
        }
        cut.only_idles = cut.only_idles && IsHousekeeping(tiles[i]);
      }
      end_ns = tile_end_ns;
    }
    close(end_ns);
    cut.span_ns = end_ns - begin_ns;
    return cut;
  }

  static bool IsLeftOut(const Cut& cut) {
    if (cut.instances.empty() || !cut.stirred) return true;
    return cut.only_idles && cut.idle_ns != 0 &&
           cut.run_ns * 100 <= cut.span_ns * kMaxHousekeepingPercent;
  }

  void AddRole(const RoleVerdict& verdict) {
    idle_path_.clear();
    Role role;
    role.process = verdict.image;
    role.scenario = ScenarioOf(verdict);
    if (!verdict.loop.loops.empty()) {
      role.loop_frame = paths_.Name(paths_.function(verdict.loop.loops.front()));
    }
    role.idle_frame = paths_.Name(verdict.loop.idle);
    role.basis = BasisOf(verdict);
    role.by_sync = verdict.loop.by_sync;
    std::vector<trace::Instance> instances;
    for (const ThreadId thread : verdict.threads) {
      const Cut cut = CutThread(verdict, thread);
      if (IsLeftOut(cut)) {
        ++role.left_out_threads;
        role.left_out_ns += cut.span_ns;
        continue;
      }
      ++role.threads;
      role.instances += cut.instances.size();
      role.idle_ns += cut.idle_ns;
      role.instance_ns += cut.span_ns - cut.idle_ns;
      instances.insert(instances.end(), cut.instances.begin(), cut.instances.end());
    }
    NameInstances(verdict, role.scenario, instances);
    result_.roles.push_back(std::move(role));
  }

  void NameInstances(const RoleVerdict& verdict, const std::string& scenario,
                     std::vector<trace::Instance>& instances) {
    const std::vector<FunctionId> handlers =
        FindHandlers(timelines_, paths_, verdict.loop, result_.idle_wait, instances);
    for (size_t i = 0; i < instances.size(); ++i) {
      const std::string handler = paths_.ShortName(handlers[i]);
      instances[i].scenario = ScenarioId(handler.empty() ? scenario : scenario + " > " + handler);
      result_.instances.push_back(instances[i]);
    }
  }

  StringId ScenarioId(const std::string& name) {
    const auto [it, added] = scenario_ids_.try_emplace(name, StringId(result_.scenarios.size()));
    if (added) result_.scenarios.push_back(name);
    return it->second;
  }

  void Finish() {
    std::sort(result_.instances.begin(), result_.instances.end(),
              [](const trace::Instance& a, const trace::Instance& b) {
                return a.t0_ns != b.t0_ns ? a.t0_ns < b.t0_ns : a.thread < b.thread;
              });
    std::stable_sort(result_.roles.begin(), result_.roles.end(),
                     [](const Role& a, const Role& b) { return a.instance_ns > b.instance_ns; });
    for (const Role& role : result_.roles) {
      result_.idle_ns += role.idle_ns;
      result_.left_out_ns += role.left_out_ns;
      result_.left_out_threads += role.left_out_threads;
    }
    if (result_.instances.empty()) {
      result_.reason = "every thread only waits to be asked, and nobody asked";
    }
  }

  const Timelines& timelines_;
  const trace::Trace& trace_;
  const AutoInstanceOptions& options_;
  StackClasses classes_;
  WaitFacts facts_;
  FunctionPaths paths_;
  std::vector<bool> always_;
  std::vector<bool> never_;
  std::unordered_map<PathId, bool> idle_path_;  // of the role at hand
  std::vector<PathId> idle_tails_;              // of the role at hand
  std::unordered_map<std::string, StringId> scenario_ids_;
  AutoInstances result_;
};

}  // namespace

std::string_view Name(RoleBasis basis) {
  switch (basis) {
    case RoleBasis::kNothing:
      return "nothing";
    case RoleBasis::kWakers:
      return "wakers";
    case RoleBasis::kSyscalls:
      return "system calls";
    case RoleBasis::kStacks:
      return "stacks";
  }
  return "nothing";
}

AutoInstances FindInstances(const Timelines& timelines, const AutoInstanceOptions& options) {
  return Finder(timelines, options).Find();
}

}  // namespace culprit::waitgraph
