// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/critical_path_holder.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/glob.h"
#include "waitgraph/name_memo.h"

namespace culprit::waitgraph {
namespace {

using trace::Event;
using trace::EventKind;
using trace::StackId;
using trace::ThreadId;
using trace::ThreadKind;

constexpr uint32_t kNoSite = UINT32_MAX;

// Where every program waits: frames of these modules do not tell one lock from
// another.
constexpr std::array<std::string_view, 19> kLibraryModules = {
    "[kernel*",    "[vdso]",      "vmlinux*",    "kernel",     "libc.so*",
    "libc-*",      "libpthread*", "ld-*",        "libc.musl*", "libstdc++*",
    "libc++*",     "ntoskrnl*",   "ntkrnlmp*",   "ntdll*",     "kernel32*",
    "kernelbase*", "wow64*",      "libsystem_*", "libSystem*",
};
constexpr std::array<std::string_view, 6> kConditionFunctions = {
    "*pthread_cond_*", "cnd_*",           "*condition_variable*",
    "*sem_*wait*",     "SleepCondition*", "*ConditionVariable*"};
constexpr std::array<std::string_view, 6> kSignalFunctions = {
    "signal_wake_up*", "complete_signal*", "*send_signal*",
    "*send_sigqueue*", "do_send_sig*",     "*zap_other_threads*"};

template <size_t N>
bool MatchesAny(const std::array<std::string_view, N>& globs, std::string_view text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](std::string_view glob) { return MatchesGlob(glob, text); });
}

struct FunctionMarks {
  bool condition = false;
  bool signal = false;
};
FunctionMarks MarksOfFunction(std::string_view function) {
  thread_local NameMemo<FunctionMarks> known;
  return known.Of(function, [](std::string_view name) {
    return FunctionMarks{.condition = MatchesAny(kConditionFunctions, name),
                         .signal = MatchesAny(kSignalFunctions, name)};
  });
}

// Names of Windows modules come in any case.
std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace

HolderInference::HolderInference(const Timelines& timelines)
    : timelines_(timelines),
      classes_(timelines.trace().dictionary),
      marks_(timelines.trace().dictionary.stacks().size()) {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  // An interrupt whose cause the recorder could not tell cannot have released a
  // lock either.
  for (const trace::Thread& thread : dictionary.threads()) {
    const bool device = thread.kind == ThreadKind::kDevice;
    const std::string name = device ? Lower(dictionary.Text(thread.name)) : std::string();
    silent_device_.push_back(name.find("timer") != std::string::npos || name == "[interrupt]");
  }
  for (const trace::Module& module : dictionary.modules()) {
    const std::string_view name = dictionary.Text(module.name);
    library_module_.push_back(MatchesAny(kLibraryModules, name) ||
                              MatchesAny(kLibraryModules, Lower(name)));
  }
}

HolderInference::StackMarks HolderInference::MarksOf(StackId stack) {
  unmarked_.clear();
  // A caller's stack has a smaller id than its callees'.
  const std::vector<trace::StackNode>& stacks = timelines_.trace().dictionary.stacks();
  uint32_t at = stack.value;
  while (at < marks_.size() && !marks_[at].known) {
    unmarked_.push_back(at);
    const uint32_t caller = stacks[at].parent.value;
    at = caller < at ? caller : UINT32_MAX;
  }
  StackMarks marks = at < marks_.size() ? marks_[at] : StackMarks();
  for (auto it = unmarked_.rbegin(); it != unmarked_.rend(); ++it) {
    marks = Below(marks, stacks[*it].frame.value);
    marks_[*it] = marks;
  }
  return marks;
}

HolderInference::StackMarks HolderInference::Below(const StackMarks& caller,
                                                   uint32_t frame_id) const {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  const trace::Frame& frame = dictionary.frames()[frame_id];
  const std::string_view function = dictionary.Text(frame.function);
  const bool library =
      (frame.flags & trace::kKernelMode) != 0 || function == trace::kTruncatedFunction ||
      (frame.module.value < library_module_.size() && library_module_[frame.module.value]);
  const FunctionMarks own = MarksOfFunction(function);
  return {.site = library ? caller.site : frame_id,
          .condition = caller.condition || own.condition,
          .signal = caller.signal || own.signal,
          .known = true};
}

bool HolderInference::TellsNothing(EventIndex wait) {
  const Event& w = timelines_.event(wait);
  if (!w.stack.valid() || !w.peer.valid()) return false;
  if (classes_.Of(w.stack).wait_class != WaitClass::kLock) return false;
  if (silent_device_[w.peer.value]) return true;
  const EventIndex unwait = timelines_.UnwaitOf(wait);
  if (unwait == kNoEvent) return false;
  const StackId stack = timelines_.event(unwait).stack;
  return stack.valid() && MarksOf(stack).signal;
}

bool HolderInference::EndsUntold(ThreadId thread, size_t position) {
  return TellsNothing(timelines_.tiles(thread)[position]);
}

// Rows may be long, and a path may go through all their waits: what is found holds
// for everyone between here and there.
EventIndex HolderInference::LastOfRow(ThreadId thread, size_t position) {
  const std::span<const EventIndex> tiles = timelines_.tiles(thread);
  const std::span<const Timelines::Tile> facts = timelines_.facts(thread);
  const StackId stack = timelines_.event(tiles[position]).stack;
  std::vector<EventIndex> row;
  EventIndex last = kNoEvent;
  for (size_t i = position; i < tiles.size(); ++i) {
    if (facts[i].kind != EventKind::kWait) continue;
    const Event& wait = timelines_.event(tiles[i]);
    if (wait.stack != stack) break;
    const auto known = last_of_row_.find(tiles[i]);
    if (known != last_of_row_.end()) {
      last = known->second;
      break;
    }
    if (!TellsNothing(tiles[i])) {
      if (wait.peer.valid()) last = tiles[i];
      break;
    }
    row.push_back(tiles[i]);
  }
  for (const EventIndex wait : row) last_of_row_[wait] = last;
  return last;
}

uint32_t HolderInference::ImageOf(ThreadId thread) const {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  const trace::ProcessId process = dictionary.threads()[thread.value].process;
  return process.valid() ? dictionary.processes()[process.value].name.value : UINT32_MAX;
}

void HolderInference::FindReleases() {
  if (std::exchange(releases_known_, true)) return;
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  for (EventIndex i = 0; i < timelines_.trace().events.size(); ++i) {
    const Event& w = timelines_.event(i);
    if (w.kind != EventKind::kWait || !w.stack.valid() || !w.peer.valid()) continue;
    if (classes_.Of(w.stack).wait_class != WaitClass::kLock || TellsNothing(i)) continue;
    const ThreadKind kind = dictionary.threads()[w.peer.value].kind;
    if (kind == ThreadKind::kDevice || kind == ThreadKind::kIdle || !w.thread.valid()) continue;
    const uint32_t site = MarksOf(w.stack).site;
    if (site == kNoSite) continue;
    releases_.push_back(
        {.site = site, .image = ImageOf(w.thread), .time_ns = w.end_ns(), .waker = w.peer});
  }
  std::sort(releases_.begin(), releases_.end());
}

HolderInference::Holder HolderInference::HolderOf(ThreadId thread, size_t position,
                                                  int64_t begin_ns, int64_t end_ns) {
  const EventIndex again = LastOfRow(thread, position);
  if (again != kNoEvent) {
    const Event& last = timelines_.event(again);
    return {.thread = last.peer, .release_ns = last.end_ns(), .note = SegmentNote::kReentered};
  }
  FindReleases();
  const Event& w = timelines_.event(timelines_.tiles(thread)[position]);
  const uint32_t site = MarksOf(w.stack).site;
  if (site == kNoSite) return {};
  const Release after = {
      .site = site, .image = ImageOf(w.thread), .time_ns = w.end_ns(), .waker = ThreadId(0)};
  const auto next = std::lower_bound(releases_.begin(), releases_.end(), after);
  if (next == releases_.end() || next->site != site || next->image != after.image) return {};
  if (!WasBusy(next->waker, site, begin_ns, end_ns)) return {};
  return {.thread = next->waker, .release_ns = next->time_ns, .note = SegmentNote::kInferredHolder};
}

// Busy for at least half of the window: running, ready, or blocked in a way that
// a holder may be (a disk, another lock), not asleep for want of work.
bool HolderInference::WasBusy(ThreadId thread, uint32_t site, int64_t begin_ns, int64_t end_ns) {
  const std::span<const EventIndex> tiles = timelines_.tiles(thread);
  const Timelines::Range range = timelines_.TilesIn(thread, begin_ns, end_ns);
  int64_t busy_ns = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Event& e = timelines_.event(tiles[i]);
    if (e.kind == EventKind::kWait) {
      const WaitClass c = e.stack.valid() ? classes_.Of(e.stack).wait_class : WaitClass::kOther;
      const StackMarks marks = c == WaitClass::kLock ? MarksOf(e.stack) : StackMarks();
      const bool holder_may = c == WaitClass::kDisk || c == WaitClass::kFault ||
                              c == WaitClass::kMemory ||
                              (c == WaitClass::kLock && marks.site != site && !marks.condition);
      if (!holder_may || !e.peer.valid()) continue;
    }
    busy_ns += std::min(end_ns, timelines_.TileEnd(thread, i)) - std::max(begin_ns, e.time_ns);
  }
  return busy_ns > (end_ns - begin_ns) / 2;
}

}  // namespace culprit::waitgraph
