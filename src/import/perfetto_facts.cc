// SPDX-License-Identifier: Apache-2.0
#include "import/perfetto_facts.h"

#include <algorithm>
#include <cstdlib>

#include "import/kernel_stacks.h"
#include "import/tracepoint_table.h"

namespace culprit::import_ {
namespace {

using assemble::WakeContext;
using Kind = PerfettoFact::Kind;

// The profiler's record of a switch and ftrace's are made by two hooks of one
// tracepoint, on two clocks, whose snapshots are off by hundreds of
// microseconds. The skew is measured; what is left is the time between hooks.
constexpr int64_t kMaxSkewNs = 2'000'000;
constexpr int64_t kSameSwitchNs = 100'000;
constexpr int64_t kSameForkNs = 1'000'000;

bool IsAboutNames(Kind kind) { return kind == Kind::kName || kind == Kind::kProcess; }

}  // namespace

void PerfettoFacts::Add(const PerfettoFact& fact) {
  facts_.push_back(fact);
  any_waking_ = any_waking_ || fact.kind == Kind::kWaking;
  any_switch_ = any_switch_ || fact.kind == Kind::kSwitch;
  if (IsAboutNames(fact.kind)) return;
  last_ns_ = std::max(last_ns_, fact.time_ns);
  active_.insert(fact.tid);
  const bool second =
      fact.kind == Kind::kSwitch || fact.kind == Kind::kWaking || fact.kind == Kind::kWakeup;
  if (second) active_.insert(static_cast<int32_t>(fact.a));
}

void PerfettoFacts::AddName(int64_t time_ns, int32_t tid, int64_t pid, std::string_view name) {
  if (tid <= 0) return;
  const StringId text = name.empty() ? StringId() : Text(name);
  const auto [it, is_new] = names_.try_emplace(tid, text, pid);
  const bool same_name = it->second.first == text || !text.valid();
  if (!is_new && same_name && (pid < 0 || it->second.second == pid)) return;
  if (text.valid()) it->second.first = text;
  if (pid >= 0) it->second.second = pid;
  Add({.time_ns = time_ns, .a = pid, .tid = tid, .text = text, .kind = Kind::kName});
}

PerfettoFacts::CpuState& PerfettoFacts::Cpu(uint16_t cpu) {
  if (cpus_.size() <= cpu) cpus_.resize(cpu + size_t{1});
  return cpus_[cpu];
}

void PerfettoFacts::FillRunning() {
  for (PerfettoFact& fact : facts_) {
    const bool is_switch = fact.kind == Kind::kSwitch;
    if (fact.cpu == assemble::kNoCpu || (!is_switch && fact.kind != Kind::kWaking)) continue;
    CpuState& cpu = Cpu(fact.cpu);
    if (fact.tid == PerfettoFact::kRunningThread) fact.tid = cpu.running;
    if (is_switch) cpu.running = static_cast<int32_t>(fact.a);
  }
}

// How much later ftrace's clock stands than the profiler's: the difference that
// most pairs of a sample and a switch of its thread on its CPU have.
int64_t PerfettoFacts::SampleSkew(const std::vector<size_t>& samples,
                                  const SwitchesOf& switches) const {
  constexpr int64_t kBinNs = 10'000;
  constexpr int64_t kBins = kMaxSkewNs / kBinNs;
  constexpr size_t kMaxPairs = 64;  // of one sample
  std::vector<uint32_t> counts(2 * kBins + 1);
  for (const size_t sample : samples) {
    const PerfettoFact& fact = facts_[sample];
    const auto of_thread = switches.find(fact.tid);
    if (of_thread == switches.end()) continue;
    const std::vector<size_t>& list = of_thread->second;
    auto it = std::partition_point(list.begin(), list.end(), [&](size_t index) {
      return facts_[index].time_ns < fact.time_ns - kMaxSkewNs;
    });
    for (size_t n = 0; it != list.end() && n < kMaxPairs; ++it, ++n) {
      const int64_t skew_ns = facts_[*it].time_ns - fact.time_ns;
      if (skew_ns > kMaxSkewNs) break;
      if (facts_[*it].cpu == fact.cpu) ++counts[static_cast<size_t>(skew_ns / kBinNs + kBins)];
    }
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  return *most == 0 ? 0 : (most - counts.begin() - kBins) * kBinNs;
}

void PerfettoFacts::JoinSwitchStacks(Diagnostics& diagnostics) {
  SwitchesOf switches;
  std::vector<size_t> samples;
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (facts_[i].kind == Kind::kSwitch) switches[facts_[i].tid].push_back(i);
    if (facts_[i].kind == Kind::kSwitchSample) samples.push_back(i);
  }
  if (samples.empty()) return;
  const int64_t skew_ns = SampleSkew(samples, switches);
  uint64_t lost = 0;
  uint64_t lost_at = UINT64_MAX;
  for (const size_t sample : samples) {
    const PerfettoFact& fact = facts_[sample];
    const int64_t time_ns = fact.time_ns + skew_ns;
    const std::vector<size_t>& list = switches[fact.tid];
    const auto distance = [&](size_t index) { return std::abs(facts_[index].time_ns - time_ns); };
    auto it = std::partition_point(list.begin(), list.end(),
                                   [&](size_t index) { return facts_[index].time_ns < time_ns; });
    if (it == list.end() || (it != list.begin() && distance(*std::prev(it)) < distance(*it))) {
      if (it != list.begin()) --it;
    }
    if (it != list.end() && distance(*it) <= kSameSwitchNs && !facts_[*it].stack.valid()) {
      facts_[*it].stack = fact.stack;
    } else {
      ++lost;
      lost_at = std::min(lost_at, fact.offset);
    }
  }
  if (lost != 0) diagnostics.Count("stack of a switch that is not in the trace", lost, lost_at);
}

Status PerfettoFacts::Feed(assemble::Assembler& assembler, Diagnostics& diagnostics) {
  std::stable_sort(facts_.begin(), facts_.end(), [](const PerfettoFact& a, const PerfettoFact& b) {
    return a.time_ns < b.time_ns;
  });
  FillRunning();
  if (any_switch_) JoinSwitchStacks(diagnostics);
  cpus_.clear();
  TraceMarks marks(assembler, diagnostics);
  for (const PerfettoFact& fact : facts_) {
    CULPRIT_TRY(FeedOne(fact, assembler, marks));
  }
  facts_ = {};
  return {};
}

Status PerfettoFacts::FeedOne(const PerfettoFact& fact, assemble::Assembler& assembler,
                              TraceMarks& marks) {
  const std::string_view text = texts_.Get(fact.text);
  switch (fact.kind) {
    case Kind::kName:
      // A process list names every thread of the machine.
      if (!active_.contains(fact.tid)) return {};
      assembler.Name(fact.a, fact.tid, text);
      if (IsKernelThreadName(text)) assembler.Kind(fact.tid, trace::ThreadKind::kKernel);
      return {};
    case Kind::kProcess:
      assembler.ProcessName(fact.a, text, texts_.Get(StringId(static_cast<size_t>(fact.b))));
      return {};
    case Kind::kSwitch:
      return FeedSwitch(fact, assembler);
    case Kind::kWakeup:
      if (any_waking_) return {};
      return FeedWaking(fact, assembler);
    case Kind::kWaking:
    case Kind::kWakeupNew:
      return FeedWaking(fact, assembler);
    case Kind::kFork: {
      // task_newtask and sched_process_fork tell of one and the same child.
      const auto child = static_cast<int32_t>(fact.a);
      const auto [it, is_new] = forked_.try_emplace(child, fact.time_ns);
      if (!is_new && fact.time_ns - it->second < kSameForkNs) return {};
      it->second = fact.time_ns;
      assembler.Fork(fact.time_ns, fact.tid, fact.b, child);
      return {};
    }
    case Kind::kExit:
      assembler.Exit(fact.time_ns, fact.tid);
      return {};
    case Kind::kEnter:
      return assembler.SyscallEnter(fact.time_ns, fact.cpu, fact.tid, fact.a);
    case Kind::kReturn:
      return assembler.SyscallExit(fact.time_ns, fact.cpu, fact.tid, fact.a, fact.b);
    case Kind::kIssue:
    case Kind::kComplete:
      return FeedBlock(fact, assembler);
    case Kind::kIrqEntry:
    case Kind::kIrqExit:
      if (fact.cpu != assemble::kNoCpu) Cpu(fact.cpu).irq = fact.text;
      return {};
    case Kind::kSoftirqEntry:
    case Kind::kSoftirqExit:
      if (fact.cpu != assemble::kNoCpu) {
        Cpu(fact.cpu).softirq = fact.kind == Kind::kSoftirqEntry ? fact.a : -1;
      }
      return {};
    case Kind::kMark: {
      CULPRIT_TRY(marks.Feed(fact.time_ns, fact.tid, text, fact.offset));
      return {};
    }
    case Kind::kSliceBegin:
      return assembler.SliceBegin(fact.time_ns, fact.tid, text);
    case Kind::kSliceEnd:
      return assembler.SliceEnd(fact.time_ns, fact.tid, text);
    case Kind::kInstance:
      assembler.Instance(text, fact.tid, fact.time_ns, fact.a);
      return {};
    case Kind::kSwitchSample:
      if (any_switch_) return {};
      [[fallthrough]];
    case Kind::kSample:
      return assembler.Sample({.time_ns = fact.time_ns,
                               .cpu = fact.cpu,
                               .tid = fact.tid,
                               .period_ns = fact.b,
                               .stack = fact.stack});
  }
  return {};
}

Status PerfettoFacts::FeedSwitch(const PerfettoFact& fact, assemble::Assembler& assembler) {
  if (fact.cpu != assemble::kNoCpu) Cpu(fact.cpu) = {};
  const auto state = static_cast<uint64_t>(fact.b);
  return assembler.Switch({.time_ns = fact.time_ns,
                           .cpu = fact.cpu,
                           .prev_tid = fact.tid,
                           .next_tid = fact.a,
                           .prev_runnable = (state & states_.blocked) == 0,
                           .prev_exiting = (state & states_.dead) != 0,
                           .prev_stack = fact.stack});
}

Status PerfettoFacts::FeedWaking(const PerfettoFact& fact, assemble::Assembler& assembler) {
  assemble::WakingFact waking{.time_ns = fact.time_ns,
                              .cpu = fact.cpu,
                              .waker_tid = fact.tid,
                              .wakee_tid = fact.a,
                              .stack = fact.stack};
  if (fact.b >= 0) waking.context = JudgeWaking(static_cast<uint64_t>(fact.b), {}).context;
  if (fact.cpu != assemble::kNoCpu) {
    const CpuState& cpu = Cpu(fact.cpu);
    const bool inside = cpu.irq.valid() || cpu.softirq >= 0;
    if (inside && fact.kind != Kind::kWakeupNew) {
      waking.context = WakeContext::kInterrupt;
      waking.device =
          cpu.irq.valid() ? DeviceOfIrq(texts_.Get(cpu.irq)) : DeviceOfSoftirq(cpu.softirq);
    }
  }
  return assembler.Waking(waking);
}

Status PerfettoFacts::FeedBlock(const PerfettoFact& fact, assemble::Assembler& assembler) {
  const assemble::BlockFact block{.time_ns = fact.time_ns,
                                  .device = texts_.Get(fact.text),
                                  .sector = static_cast<uint64_t>(fact.a),
                                  .bytes = fact.b,
                                  .operation = fact.flags,
                                  .tid = fact.tid};
  return fact.kind == Kind::kIssue ? assembler.BlockIssue(block) : assembler.BlockComplete(block);
}

}  // namespace culprit::import_
