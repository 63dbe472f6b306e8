// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/critical_path_holder.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/glob.h"
#include "waitgraph/glob.h"
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
FunctionMarks MarksOf(std::string_view function) {
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
    : timelines_(timelines), classes_(ClassifyStacks(timelines.trace().dictionary)) {
  MarkFrames();
  MarkStacks();
  FindUntold();
  if (!untold_.empty()) FindReleases();
}

void HolderInference::MarkFrames() {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  for (const trace::Thread& thread : dictionary.threads()) {
    const std::string name = Lower(dictionary.Text(thread.name));
    // An interrupt whose cause the recorder could not tell cannot have released a
    // lock either.
    silent_device_.push_back(thread.kind == ThreadKind::kDevice &&
                             (name.find("timer") != std::string::npos || name == "[interrupt]"));
  }
  std::vector<bool> library;
  for (const trace::Module& module : dictionary.modules()) {
    const std::string_view name = dictionary.Text(module.name);
    library.push_back(MatchesAny(kLibraryModules, name) ||
                      MatchesAny(kLibraryModules, Lower(name)));
  }
  for (const trace::Frame& frame : dictionary.frames()) {
    const std::string_view function = dictionary.Text(frame.function);
    const bool known = frame.module.value < library.size();
    library_frame_.push_back((frame.flags & trace::kKernelMode) != 0 ||
                             (known && library[frame.module.value]) ||
                             function == trace::kTruncatedFunction);
    const FunctionMarks marks = MarksOf(function);
    condition_frame_.push_back(marks.condition);
    signal_frame_.push_back(marks.signal);
  }
}

void HolderInference::MarkStacks() {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  condition_stack_ = StacksWithFrame(dictionary, condition_frame_);
  signal_stack_ = StacksWithFrame(dictionary, signal_frame_);
  for (const trace::StackNode& node : dictionary.stacks()) {
    const bool is_site =
        node.frame.value < library_frame_.size() && !library_frame_[node.frame.value];
    const uint32_t above = node.parent.value < site_.size() ? site_[node.parent.value] : kNoSite;
    site_.push_back(is_site ? node.frame.value : above);
  }
}

bool HolderInference::TellsNothing(EventIndex wait) const {
  const Event& w = timelines_.event(wait);
  if (!w.stack.valid() || !w.peer.valid()) return false;
  if (classes_.by_stack[w.stack.value] != WaitClass::kLock) return false;
  if (silent_device_[w.peer.value]) return true;
  const EventIndex unwait = timelines_.UnwaitOf(wait);
  if (unwait == kNoEvent) return false;
  const StackId stack = timelines_.event(unwait).stack;
  return stack.valid() && signal_stack_[stack.value];
}

// Backwards, so that the last wait of a row is known before the first.
void HolderInference::FindUntold() {
  const size_t threads = timelines_.trace().dictionary.threads().size();
  const bool signals =
      std::find(signal_stack_.begin(), signal_stack_.end(), true) != signal_stack_.end();
  for (size_t t = 0; t < threads; ++t) {
    const std::span<const EventIndex> tiles = timelines_.tiles(ThreadId(t));
    const std::span<const Timelines::Tile> facts = timelines_.facts(ThreadId(t));
    EventIndex next = kNoEvent;
    for (size_t i = tiles.size(); i-- > 0;) {
      const EventIndex wait = tiles[i];
      if (facts[i].kind != EventKind::kWait) continue;
      const ThreadId peer = facts[i].peer;
      const bool may = signals || (peer.valid() && silent_device_[peer.value]);
      if (may && TellsNothing(wait)) {
        const Event& w = timelines_.event(wait);
        const bool again = next != kNoEvent && timelines_.event(next).stack == w.stack;
        const auto row = again ? untold_.find(next) : untold_.end();
        EventIndex last = kNoEvent;
        if (row != untold_.end()) {
          last = row->second;
        } else if (again && timelines_.event(next).peer.valid()) {
          last = next;
        }
        untold_[wait] = last;
      }
      next = wait;
    }
  }
}

uint32_t HolderInference::ImageOf(ThreadId thread) const {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  const trace::ProcessId process = dictionary.threads()[thread.value].process;
  return process.valid() ? dictionary.processes()[process.value].name.value : UINT32_MAX;
}

void HolderInference::FindReleases() {
  const trace::Dictionary& dictionary = timelines_.trace().dictionary;
  for (EventIndex i = 0; i < timelines_.trace().events.size(); ++i) {
    const Event& w = timelines_.event(i);
    if (w.kind != EventKind::kWait || !w.stack.valid() || !w.peer.valid()) continue;
    if (classes_.by_stack[w.stack.value] != WaitClass::kLock || EndsUntold(i)) continue;
    const ThreadKind kind = dictionary.threads()[w.peer.value].kind;
    if (kind == ThreadKind::kDevice || kind == ThreadKind::kIdle || !w.thread.valid()) continue;
    const uint32_t site = site_[w.stack.value];
    if (site == kNoSite) continue;
    releases_.push_back(
        {.site = site, .image = ImageOf(w.thread), .time_ns = w.end_ns(), .waker = w.peer});
  }
  std::sort(releases_.begin(), releases_.end());
}

HolderInference::Holder HolderInference::HolderOf(EventIndex wait, int64_t begin_ns,
                                                  int64_t end_ns) const {
  const Event& w = timelines_.event(wait);
  const auto row = untold_.find(wait);
  if (row == untold_.end()) return {};
  if (row->second != kNoEvent) {
    const Event& last = timelines_.event(row->second);
    return {.thread = last.peer, .release_ns = last.end_ns(), .note = SegmentNote::kReentered};
  }
  const uint32_t site = site_[w.stack.value];
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
bool HolderInference::WasBusy(ThreadId thread, uint32_t site, int64_t begin_ns,
                              int64_t end_ns) const {
  const std::span<const EventIndex> tiles = timelines_.tiles(thread);
  const Timelines::Range range = timelines_.TilesIn(thread, begin_ns, end_ns);
  int64_t busy_ns = 0;
  for (size_t i = range.begin; i < range.end; ++i) {
    const Event& e = timelines_.event(tiles[i]);
    if (e.kind == EventKind::kWait) {
      const WaitClass c = e.stack.valid() ? classes_.by_stack[e.stack.value] : WaitClass::kOther;
      const bool holder_may = c == WaitClass::kDisk || c == WaitClass::kFault ||
                              c == WaitClass::kMemory ||
                              (c == WaitClass::kLock && site_[e.stack.value] != site &&
                               !condition_stack_[e.stack.value]);
      if (!holder_may || !e.peer.valid()) continue;
    }
    busy_ns += std::min(end_ns, timelines_.TileEnd(thread, i)) - std::max(begin_ns, e.time_ns);
  }
  return busy_ns > (end_ns - begin_ns) / 2;
}

}  // namespace culprit::waitgraph
