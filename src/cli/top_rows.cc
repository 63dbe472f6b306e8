// SPDX-License-Identifier: Apache-2.0
#include "cli/top_rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "assemble/fused_assembler.h"
#include "waitgraph/auto_instances.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::cli {
namespace {

using trace::Event;
using trace::EventKind;
using trace::StackId;
using waitgraph::EventIndex;

constexpr size_t kPatternFrames = 3;
constexpr std::string_view kNoSample = "[not sampled]";

// What every thread's stack ends in says nothing about the program.
bool IsTopPlumbing(std::string_view module) {
  constexpr std::array<std::string_view, 8> kBegins = {
      "libc.so", "libc-", "libpthread", "ld-linux", "libstdc++", "libc++", "[vdso]", "libgcc_s"};
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return module.starts_with(begin); });
}

class TopNames {
 public:
  TopNames(const trace::Dictionary& dictionary, TopBy by) : dictionary_(dictionary), by_(by) {}

  std::string Of(const Event& event) {
    if (by_ == TopBy::kThread) return dictionary_.ThreadLabel(event.thread);
    if (by_ == TopBy::kProcess) return Process(event.thread);
    if (!event.stack.valid()) {
      const bool running = event.kind == EventKind::kRunning;
      return Program(event.thread) + (running ? " " + std::string(kNoSample) : std::string());
    }
    const auto [it, is_new] = by_stack_.try_emplace(event.stack.value);
    if (is_new) it->second = OfStack(event.stack);
    return it->second.empty() ? Program(event.thread) : it->second;
  }

 private:
  const trace::Frame& FrameOf(StackId stack) const {
    return dictionary_.frames()[dictionary_.stacks()[stack.value].frame.value];
  }
  std::string_view Module(const trace::Frame& frame) const {
    return frame.module.valid() ? dictionary_.Text(dictionary_.modules()[frame.module.value].name)
                                : std::string_view();
  }
  bool IsKernel(const trace::Frame& frame) const {
    return (frame.flags & trace::kKernelMode) != 0 || Module(frame).starts_with("[kernel");
  }
  bool Tells(const trace::Frame& frame) const {
    // What was inlined is mostly the C++ library's.
    return !IsKernel(frame) && !IsTopPlumbing(Module(frame)) && frame.module.valid() &&
           (frame.flags & trace::kInlined) == 0;
  }

  // The leaf-most frame of the program itself, else of any library, else the leaf.
  StackId Telling(StackId stack) const {
    StackId user;
    for (StackId s = stack; s.valid(); s = dictionary_.stacks()[s.value].parent) {
      if (Tells(FrameOf(s))) return s;
      if (!user.valid() && !IsKernel(FrameOf(s)) && FrameOf(s).module.valid()) user = s;
    }
    return user.valid() ? user : stack;
  }

  std::string OfStack(StackId stack) const {
    const StackId telling = Telling(stack);
    if (by_ == TopBy::kComponent) {
      const std::string_view module = Module(FrameOf(telling));
      return module.empty() ? dictionary_.FrameName(dictionary_.stacks()[telling.value].frame)
                            : std::string(module);
    }
    if (by_ == TopBy::kFunction) {
      return dictionary_.FrameName(dictionary_.stacks()[telling.value].frame);
    }
    return Pattern(stack);
  }

  // The frames that tell, caller first, and what they end in.
  std::string Pattern(StackId stack) const {
    std::vector<std::string> frames = {
        std::string(dictionary_.Text(FrameOf(Telling(stack)).function))};
    if (!FrameOf(Telling(stack)).function.valid()) {
      frames = {dictionary_.FrameName(dictionary_.stacks()[Telling(stack).value].frame)};
    }
    StackId s = dictionary_.stacks()[Telling(stack).value].parent;
    for (; s.valid() && frames.size() < kPatternFrames; s = dictionary_.stacks()[s.value].parent) {
      if (Tells(FrameOf(s)) && FrameOf(s).function.valid()) {
        frames.emplace_back(dictionary_.Text(FrameOf(s).function));
      }
    }
    std::string text(Module(FrameOf(Telling(stack))));
    if (!text.empty()) text += ": ";
    for (size_t i = frames.size(); i > 0; --i) {
      text += (i < frames.size() ? " > " : "") + frames[i - 1];
    }
    if (Telling(stack) != stack) {
      text += " > " + std::string(dictionary_.Text(FrameOf(Entered(stack)).function));
    }
    return text;
  }

  // What the program called: the frame below the one that tells.
  StackId Entered(StackId stack) const {
    const StackId telling = Telling(stack);
    StackId below = stack;
    for (StackId s = stack; s.valid() && s != telling; s = dictionary_.stacks()[s.value].parent) {
      if (FrameOf(s).function.valid()) below = s;
    }
    return below;
  }

  std::string Program(trace::ThreadId thread) const {
    const trace::Thread& row = dictionary_.threads()[thread.value];
    if (row.process.valid()) {
      const auto name = dictionary_.Text(dictionary_.processes()[row.process.value].name);
      if (!name.empty()) return std::string(name);
    }
    return std::string(dictionary_.Text(row.name));
  }
  std::string Process(trace::ThreadId thread) const {
    const trace::Thread& row = dictionary_.threads()[thread.value];
    if (!row.process.valid()) return Program(thread);
    return Program(thread) + " (" + std::to_string(dictionary_.processes()[row.process.value].pid) +
           ")";
  }

  const trace::Dictionary& dictionary_;
  TopBy by_;
  std::unordered_map<uint32_t, std::string> by_stack_;
};

// A row while it is added up.
struct Sum {
  TopRow row;
  std::map<waitgraph::WaitClass, int64_t> classes;
  std::map<uint32_t, int64_t> wakers;
};

template <class Map>
typename Map::key_type Largest(const Map& map) {
  return std::max_element(map.begin(), map.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

class TopMaker {
 public:
  TopMaker(const trace::Trace& trace, const TopOptions& options)
      : options_(options),
        trace_(trace),
        timelines_(trace),
        facts_(waitgraph::ClassifyWaits(timelines_, waitgraph::ClassifyStacks(trace.dictionary))),
        instances_(waitgraph::FindInstances(timelines_)),
        names_(trace.dictionary, options.by) {}

  TopTable Make();

 private:
  void AddTiles();
  void AddWaits();
  void AddWait(EventIndex index, int64_t dur_ns);
  void FinishRows();
  std::string ShortLabel(trace::ThreadId thread) const;
  bool IsDevice(trace::ThreadId thread) const {
    return trace_.dictionary.threads()[thread.value].kind == trace::ThreadKind::kDevice;
  }
  bool IsLeftOut(const Event& event) const {
    return (event.flags & trace::kInferred) != 0 && event.stack.valid() &&
           trace_.dictionary.StackText(event.stack) == assemble::kLeftOutFunction;
  }

  const TopOptions& options_;
  const trace::Trace& trace_;
  waitgraph::Timelines timelines_;
  waitgraph::WaitFacts facts_;
  waitgraph::AutoInstances instances_;
  TopNames names_;
  std::map<std::string, Sum> sums_;
  TopTable table_;
};

void TopMaker::AddTiles() {
  std::vector<bool> seen(trace_.dictionary.threads().size());
  for (const EventIndex index : timelines_.all_tiles()) {
    const Event& event = timelines_.event(index);
    if (IsDevice(event.thread)) continue;
    seen[event.thread.value] = true;
    if (event.kind == EventKind::kWait) {
      table_.idle_ns += event.dur_ns;
      if (options_.idle) AddWait(index, event.dur_ns);
      continue;
    }
    const bool running = event.kind == EventKind::kRunning;
    (running ? table_.cpu_ns : table_.ready_ns) += event.dur_ns;
    if (options_.show == TopShow::kWaits || (!running && options_.show == TopShow::kCpu)) continue;
    TopRow& row = sums_[names_.Of(event)].row;
    (running ? row.cpu_ns : row.ready_ns) += event.dur_ns;
  }
  table_.threads = static_cast<size_t>(std::count(seen.begin(), seen.end(), true));
}

void TopMaker::AddWait(EventIndex index, int64_t dur_ns) {
  const Event& event = timelines_.event(index);
  table_.idle_ns -= dur_ns;
  table_.wait_ns += dur_ns;
  if (IsLeftOut(event)) table_.left_out_ns += dur_ns;
  if (options_.show == TopShow::kCpu) return;
  Sum& sum = sums_[names_.Of(event)];
  sum.row.wait_ns += dur_ns;
  sum.row.waits += 1;
  sum.row.longest_ns = std::max(sum.row.longest_ns, dur_ns);
  sum.classes[facts_.by_event[index].wait_class] += dur_ns;
  if (event.peer.valid()) sum.wakers[event.peer.value] += dur_ns;
}

// Instances of one thread do not overlap, so no wait counts twice.
void TopMaker::AddWaits() {
  for (const trace::Instance& instance : instances_.instances) {
    const auto range = timelines_.TilesIn(instance.thread, instance.t0_ns, instance.t1_ns);
    const auto tiles = timelines_.tiles(instance.thread);
    for (size_t i = range.begin; i < range.end; ++i) {
      const Event& event = timelines_.event(tiles[i]);
      if (event.kind != EventKind::kWait || instances_.idle_wait[tiles[i]]) continue;
      const int64_t begin_ns = std::max(event.time_ns, instance.t0_ns);
      const int64_t end_ns = std::min(event.end_ns(), instance.t1_ns);
      if (end_ns > begin_ns) AddWait(tiles[i], end_ns - begin_ns);
    }
  }
}

// "mariadbd (12)", "[disk 8:0]": a thread that is called like its process, once.
std::string TopMaker::ShortLabel(trace::ThreadId thread) const {
  const trace::Thread& row = trace_.dictionary.threads()[thread.value];
  if (row.kind == trace::ThreadKind::kDevice) return trace_.dictionary.ThreadLabel(thread);
  std::string_view name = trace_.dictionary.Text(row.name);
  if (name.empty()) return trace_.dictionary.ThreadLabel(thread);
  return std::string(name) + " (" + std::to_string(row.tid) + ")";
}

void TopMaker::FinishRows() {
  for (auto& [what, sum] : sums_) {
    TopRow& row = sum.row;
    row.what = what;
    if (!sum.classes.empty()) row.wait_class = Name(Largest(sum.classes));
    if (!sum.wakers.empty()) {
      row.waker = ShortLabel(trace::ThreadId(Largest(sum.wakers)));
    }
    table_.rows.push_back(std::move(row));
  }
  const auto key = [&](const TopRow& row) -> int64_t {
    if (options_.sort == TopSort::kCount) return static_cast<int64_t>(row.waits);
    if (options_.sort == TopSort::kLongest) return row.longest_ns;
    return row.wait_ns + row.cpu_ns + row.ready_ns;
  };
  std::stable_sort(table_.rows.begin(), table_.rows.end(),
                   [&](const TopRow& a, const TopRow& b) { return key(a) > key(b); });
}

TopTable TopMaker::Make() {
  table_.dur_ns = trace_.metadata.end_ns - trace_.metadata.begin_ns;
  AddTiles();
  if (!options_.idle) AddWaits();
  FinishRows();
  return std::move(table_);
}

}  // namespace

std::string_view Name(TopBy by) {
  constexpr std::array<std::string_view, 5> kNames = {"component", "function", "pattern", "thread",
                                                      "process"};
  return kNames[static_cast<size_t>(by)];
}

std::string_view Name(TopShow show) {
  constexpr std::array<std::string_view, 3> kNames = {"waits and CPU", "waits", "CPU"};
  return kNames[static_cast<size_t>(show)];
}

std::string_view Name(TopSort sort) {
  constexpr std::array<std::string_view, 3> kNames = {"time", "number of waits", "longest wait"};
  return kNames[static_cast<size_t>(sort)];
}

TopTable MakeTop(const trace::Trace& trace, const TopOptions& options) {
  return TopMaker(trace, options).Make();
}

}  // namespace culprit::cli
