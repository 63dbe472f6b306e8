// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_facts.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <set>
#include <utility>

#include "import/tracepoint_table.h"

namespace culprit::import_ {
namespace {

using assemble::kNoCpu;
using assemble::kNoTid;
using assemble::WakeContext;
using Kind = CtfEventKind;

// Bits of LTTng's numeric rwbs.
constexpr int64_t kWriteBit = 1 << 0;
constexpr int64_t kDiscardBit = 1 << 1;
constexpr int64_t kFlushBits = 1 << 8 | 1 << 10;
constexpr int64_t kSectorBytes = 512;
constexpr int64_t kKernelThreadType = 1;

// "4.18.14-arch1" -> 418.
int ReleaseNumber(const CtfSchema& schema) {
  for (const std::string_view key : {"kernel_release", "release"}) {
    const auto it = schema.environment.find(key);
    if (it == schema.environment.end()) continue;
    const std::string& text = it->second;
    int major = 0;
    int minor = 0;
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') continue;
    std::from_chars(first.ptr + 1, end, minor);
    if (major > 0 && major < 100 && minor >= 0) return major * 100 + std::min(minor, 99);
  }
  return 0;
}

bool RecordsAllInterrupts(const CtfSchema& schema) {
  bool handlers = false;
  bool softirqs = false;
  bool timers = false;
  for (const CtfEventClass& event : schema.events) {
    const Kind kind = MeaningOf(event.name).kind;
    handlers |= kind == Kind::kIrqEntry;
    softirqs |= kind == Kind::kSoftirqEntry;
    timers |= kind == Kind::kTimerEntry;
  }
  return handlers && softirqs && timers;
}

bool MakesThreads(std::string_view name) {
  return name == "clone" || name == "clone3" || name == "fork" || name == "vfork";
}

std::string DeviceName(uint64_t dev) {
  return std::to_string((dev & UINT32_MAX) >> 20) + ":" + std::to_string(dev & 0xfffff);
}

}  // namespace

std::string_view CtfFacts::Given::Text(CtfSlot slot) const {
  const std::string_view bytes = Has(slot) ? fields[slot].bytes : std::string_view();
  return bytes.substr(0, bytes.find('\0'));
}

CtfFacts::CtfFacts(const CtfSchema& schema, trace::TraceWriter& writer,
                   assemble::Assembler& assembler, const symbol::KernelSymbols* kernel,
                   symbol::Symbolizer* symbolizer, Diagnostics& diagnostics)
    : assembler_(assembler),
      diagnostics_(diagnostics),
      syscalls_(schema),
      stacks_(writer.dictionary(), kernel, symbolizer),
      calls_(
          writer, assembler,
          [this](trace::StackId caller, int64_t pid, uint64_t address) {
            return stacks_.FunctionOn(caller, pid, address);
          },
          diagnostics),
      interrupts_(RecordsAllInterrupts(schema)),
      has_kernel_names_(kernel != nullptr),
      kernel_release_(ReleaseNumber(schema)) {
  for (const CtfEventClass& event : schema.events) {
    const CtfEventMeaning meaning = MeaningOf(event.name);
    Meaning& kept = meanings_.emplace_back();
    kept.kind = meaning.kind;
    kept.name = meaning.name;
    if (meaning.kind == Kind::kEnter || meaning.kind == Kind::kLeave) {
      kept.number = syscalls_.Number(meaning.name);
      kept.makes_threads = MakesThreads(meaning.name);
    }
  }
  FindSlices(schema);
}

void CtfFacts::FindSlices(const CtfSchema& schema) {
  const auto domain = schema.environment.find("domain");
  if (domain == schema.environment.end() || domain->second != "ust") return;
  std::set<std::string_view> begun;
  std::set<std::string_view> ended;
  for (const CtfEventClass& event : schema.events) {
    const CtfEventMeaning slice = SliceOf(event.name);
    if (slice.kind == Kind::kSliceBegin) begun.insert(slice.name);
    if (slice.kind == Kind::kSliceEnd) ended.insert(slice.name);
  }
  for (size_t i = 0; i < schema.events.size(); ++i) {
    const CtfEventMeaning slice = SliceOf(schema.events[i].name);
    const bool paired = begun.contains(slice.name) && ended.contains(slice.name);
    if (!paired || meanings_[i].kind != Kind::kUnused) continue;
    meanings_[i].kind = slice.kind;
    meanings_[i].name = slice.name;
  }
}

void CtfFacts::Running(uint16_t cpu, int64_t tid) {
  if (cpu == kNoCpu) return;
  if (cpu >= running_.size()) running_.resize(cpu + size_t{1}, kNoTid);
  running_[cpu] = tid;
}

// A kernel of unknown age is taken for a recent one. Bits above the states'
// say that the thread was preempted; 512 was such a bit until 3.9 made it
// "parked", which 4.14 moved below 256 again.
bool CtfFacts::IsRunnable(int64_t state) const {
  if (state == 512 && kernel_release_ >= 309 && kernel_release_ < 414) return false;
  return (state & 0xff) == 0;
}

bool CtfFacts::IsDead(int64_t state) const {
  const bool old = kernel_release_ != 0 && kernel_release_ < 414;
  return (state & (old ? 0x10 | 0x20 | 0x40 : 0x10 | 0x20)) != 0;
}

void CtfFacts::Name(int64_t pid, int64_t tid, std::string_view name) {
  if (tid <= 0) return;
  Task& task = tasks_[tid];
  const uint64_t hash = std::hash<std::string_view>()(name);
  const bool new_pid = pid > 0 && pid != task.pid;
  const bool new_name = !name.empty() && (hash != task.name_hash || name != task.name);
  if (!new_pid && !new_name) return;
  if (new_pid) task.pid = pid;
  if (new_name) {
    task.name = name;
    task.name_hash = hash;
  }
  assembler_.Name(task.pid, tid, task.name);
  const bool kernel = task.kernel || IsKernelThreadName(task.name);
  if (kernel && !task.kernel) assembler_.Kind(tid, trace::ThreadKind::kKernel);
  task.kernel = kernel;
}

void CtfFacts::Identify(Given& given) {
  const int64_t perf_cpu = given.Number(kSlotPerfCpu);
  if (perf_cpu >= 0 && perf_cpu < kNoCpu) given.cpu = static_cast<uint16_t>(perf_cpu);
  given.pid = given.Number(kSlotPerfPid, given.Number(kSlotContextPid));
  given.tid = given.Number(kSlotPerfTid, given.Number(kSlotContextTid));
  if (given.tid < 0 && given.cpu < running_.size()) given.tid = running_[given.cpu];
  if (given.tid < 0) given.tid = given.Number(kSlotContextVtid);
  if (given.pid < 0 && given.Has(kSlotContextVpid)) given.pid = given.Number(kSlotContextVpid);
  if (given.pid > 0 || given.Has(kSlotContextName)) {
    Name(given.pid, given.tid, given.Text(kSlotContextName));
  }
  const auto known = given.pid < 0 ? tasks_.find(given.tid) : tasks_.end();
  if (known != tasks_.end()) given.pid = known->second.pid;
}

Status CtfFacts::Feed(const CtfStreamFile& file) {
  const Meaning& meaning = meanings_[file.event_class()];
  const int64_t time_ns = file.time_ns();
  first_ns_ = events_ == 0 ? time_ns : std::min(first_ns_, time_ns);
  last_ns_ = events_ == 0 ? time_ns : std::max(last_ns_, time_ns);
  ++events_;
  if (meaning.kind == Kind::kUnused) {
    ++unused_;
    return {};
  }
  Given given = {.meaning = meaning,
                 .fields = file.fields(),
                 .time_ns = time_ns,
                 .cpu = file.cpu(),
                 .offset = file.offset()};
  Identify(given);
  return Dispatch(given);
}

Status CtfFacts::Dispatch(const Given& given) {
  switch (given.meaning.kind) {
    case Kind::kUnused:
      return {};
    case Kind::kSwitch:
      return Switch(given);
    case Kind::kWaking:
    case Kind::kWakeup:
      return Waking(given);
    case Kind::kFork:
      Fork(given);
      return {};
    case Kind::kExit:
      assembler_.Exit(given.time_ns, given.Number(kSlotTid, given.tid));
      return {};
    case Kind::kExec:
      Exec(given);
      return {};
    case Kind::kEnter:
    case Kind::kLeave:
    case Kind::kRawEnter:
    case Kind::kRawLeave:
      return SyscallEvent(given);
    case Kind::kIssue:
    case Kind::kComplete:
      return Block(given);
    case Kind::kVectorEntry:
    case Kind::kVectorExit:
      interrupts_.Event(given.cpu, given.meaning.kind, given.meaning.name, kNoTid);
      return {};
    case Kind::kIrqEntry:
    case Kind::kIrqExit:
    case Kind::kSoftirqRaise:
    case Kind::kSoftirqEntry:
    case Kind::kSoftirqExit:
    case Kind::kTimerEntry:
    case Kind::kTimerExit:
      interrupts_.Event(given.cpu, given.meaning.kind, given.Text(kSlotName),
                        given.Number(kSlotNumber));
      return {};
    case Kind::kProcessState:
      ProcessState(given);
      return {};
    case Kind::kSample:
      return Sample(given);
    case Kind::kSliceBegin:
    case Kind::kSliceEnd:
    case Kind::kFunctionEntry:
    case Kind::kFunctionExit:
      return UserEvent(given);
    case Kind::kModule:
      Module(given);
      return {};
    case Kind::kBuildId:
      if (given.Has(kSlotName)) {
        stacks_.AddBuildId(given.pid, static_cast<uint64_t>(given.Number(kSlotAddress, 0)),
                           given.fields[kSlotName].bytes);
      }
      return {};
  }
  return {};
}

Status CtfFacts::UserEvent(const Given& given) {
  if (given.tid < 0) {
    diagnostics_.Count("user-space event without its thread (record with the vtid context)", 1,
                       given.offset);
    return {};
  }
  const EntryExitFact call = {.time_ns = given.time_ns,
                              .address = static_cast<uint64_t>(given.Number(kSlotAddress, 0)),
                              .pid = given.pid,
                              .tid = given.tid,
                              .cpu = given.cpu,
                              .offset = given.offset};
  const std::string& name = given.meaning.name;
  switch (given.meaning.kind) {
    case Kind::kSliceBegin:
      return assembler_.SliceBegin(given.time_ns, given.tid, name);
    case Kind::kSliceEnd:
      return assembler_.SliceEnd(given.time_ns, given.tid, name);
    case Kind::kFunctionExit:
      return calls_.Exit(call);
    default:
      calls_.Entry(call);
      return {};
  }
}

trace::StackId CtfFacts::Stack(const Given& given) {
  if (given.Has(kSlotPerfChain)) return stacks_.FromChain(given.pid, given.fields[kSlotPerfChain]);
  if (!given.Has(kSlotKernelStack) && !given.Has(kSlotUserStack)) return {};
  return stacks_.FromContexts(given.pid, given.fields[kSlotKernelStack],
                              given.fields[kSlotUserStack]);
}

Status CtfFacts::Switch(const Given& given) {
  assemble::SwitchFact fact = {.time_ns = given.time_ns, .cpu = given.cpu};
  fact.prev_tid = given.Number(kSlotTid);
  fact.next_tid = given.Number(kSlotNextTid);
  const int64_t state = given.Number(kSlotState, 1);
  fact.prev_runnable = IsRunnable(state);
  fact.prev_exiting = IsDead(state);
  fact.prev_stack = Stack(given);
  Name(kNoTid, fact.prev_tid, given.Text(kSlotName));
  Name(kNoTid, fact.next_tid, given.Text(kSlotNextName));
  if (fact.next_tid > 0) tasks_[fact.next_tid].woken = false;
  interrupts_.Switch(given.cpu);
  Running(given.cpu, fact.next_tid);
  return assembler_.Switch(fact);
}

Status CtfFacts::Waking(const Given& given) {
  assemble::WakingFact fact = {.time_ns = given.time_ns, .cpu = given.cpu};
  fact.waker_tid = given.tid;
  fact.wakee_tid = given.Number(kSlotTid);
  if (fact.wakee_tid <= 0) return {};
  Name(kNoTid, fact.wakee_tid, given.Text(kSlotName));
  // A waking and the wakeup that completes it are one.
  Task& wakee = tasks_[fact.wakee_tid];
  const bool completes = given.meaning.kind == Kind::kWakeup && wakee.woken;
  wakee.woken = given.meaning.kind == Kind::kWaking;
  if (completes) return {};
  fact.stack = Stack(given);
  JudgeWaker(given, fact);
  return assembler_.Waking(fact);
}

// The flags of perf and a stack with names tell most; else what was recorded
// about interrupts. Of an interrupt's stack only the kernel's part is its own.
void CtfFacts::JudgeWaker(const Given& given, assemble::WakingFact& fact) {
  const auto waker = tasks_.find(given.tid);
  const CtfInterrupts::Verdict recorded = interrupts_.Judge(
      given.cpu, waker == tasks_.end() ? std::string_view() : std::string_view(waker->second.name));
  const std::span<const uint8_t> traits = has_kernel_names_ && fact.stack.valid()
                                              ? std::span<const uint8_t>(stacks_.kernel_traits())
                                              : std::span<const uint8_t>();
  size_t first_frame = 0;
  if (given.Has(kSlotPerfFlags) || !traits.empty()) {
    const WakeVerdict verdict =
        JudgeWaking(static_cast<uint64_t>(given.Number(kSlotPerfFlags, 0)), traits);
    fact.context = verdict.context;
    fact.device = verdict.device;
    first_frame = verdict.first_frame;
  }
  if (fact.context != WakeContext::kInterrupt && !given.Has(kSlotPerfFlags) &&
      (recorded.context != WakeContext::kUnknown || traits.empty())) {
    fact.context = recorded.context;
  }
  if (fact.context != WakeContext::kInterrupt) return;
  if (fact.device.empty()) fact.device = recorded.device;
  if (fact.stack.valid()) fact.stack = stacks_.KernelPart(first_frame);
}

Status CtfFacts::SyscallEvent(const Given& given) {
  const Meaning& meaning = given.meaning;
  if (given.tid < 0) {
    diagnostics_.Count("system call of a thread that is not known yet", 1, given.offset);
    return {};
  }
  int64_t number = meaning.number;
  if (number == trace::kNoSyscall) number = given.Number(kSlotNumber, trace::kNoSyscall);
  Task& task = tasks_[given.tid];
  if (meaning.kind == Kind::kEnter || meaning.kind == Kind::kRawEnter) {
    if (number == trace::kNoSyscall) {
      diagnostics_.Count("system call whose name has no number: " + meaning.name, 1, given.offset);
    }
    task.open_call = number;
    return assembler_.SyscallEnter(given.time_ns, given.cpu, given.tid, number, Stack(given));
  }
  const int64_t result = given.Number(kSlotResult, 0);
  const int64_t open = std::exchange(task.open_call, trace::kNoSyscall);
  // A new thread's life begins with the exit of the call that made it.
  if (meaning.makes_threads && result == 0 && open == trace::kNoSyscall) return {};
  if (number == trace::kNoSyscall) number = open;
  return assembler_.SyscallExit(given.time_ns, given.cpu, given.tid, number, result);
}

Status CtfFacts::Block(const Given& given) {
  const std::string device = DeviceName(static_cast<uint64_t>(given.Number(kSlotDevice, 0)));
  const int64_t sectors = given.Number(kSlotSectors, 0) & UINT32_MAX;
  assemble::BlockFact fact = {.time_ns = given.time_ns, .device = device};
  fact.sector = static_cast<uint64_t>(given.Number(kSlotSector, 0));
  fact.bytes = sectors * kSectorBytes;
  if (given.Number(kSlotBytes, 0) > 0) fact.bytes = given.Number(kSlotBytes);
  if (given.Has(kSlotFlags) && !given.fields[kSlotFlags].bytes.empty()) {
    fact.operation = BlockOperation(given.Text(kSlotFlags));
  } else {
    const int64_t bits = given.Number(kSlotFlags, 0);
    if ((bits & kDiscardBit) != 0) {
      fact.operation = 3;
    } else if ((bits & kFlushBits) != 0 && fact.bytes == 0) {
      fact.operation = 2;
    } else {
      fact.operation = (bits & kWriteBit) != 0 ? 1 : 0;
    }
  }
  if (given.meaning.kind == Kind::kComplete) return assembler_.BlockComplete(fact);
  fact.tid = given.Number(kSlotTid, given.tid);
  fact.stack = Stack(given);
  return assembler_.BlockIssue(fact);
}

Status CtfFacts::Sample(const Given& given) {
  assemble::SampleFact fact = {.time_ns = given.time_ns, .cpu = given.cpu, .tid = given.tid};
  const bool is_time = given.meaning.name.ends_with("-clock");
  if (is_time) fact.period_ns = given.Number(kSlotPeriod, 0);
  CtfValue chain = given.fields[kSlotPerfChain];
  uint64_t address = static_cast<uint64_t>(given.Number(kSlotAddress, 0));
  if (!chain.seen && address != 0) {
    chain.bytes = {reinterpret_cast<const char*>(&address), sizeof(address)};
    chain.element_bits = 64;
    chain.big_endian = std::endian::native == std::endian::big;
    chain.seen = true;
  }
  fact.stack = stacks_.FromChain(given.pid, chain);
  return assembler_.Sample(fact);
}

void CtfFacts::Fork(const Given& given) {
  int64_t tid = given.Number(kSlotTid);
  int64_t pid = given.Number(kSlotPid);
  if (tid < 0) std::swap(tid, pid);  // perf: the child's only number is its tid
  if (tid <= 0) return;
  const int64_t parent = given.Number(kSlotParent, given.tid);
  tasks_[tid] = {};
  assembler_.Fork(given.time_ns, parent, pid, tid);
  Name(pid, tid, given.Text(kSlotName));
}

void CtfFacts::Exec(const Given& given) {
  const int64_t tid = given.Number(kSlotTid, given.tid);
  const std::string_view path = given.Text(kSlotName);
  if (tid <= 0 || path.empty()) return;
  const int64_t pid = tasks_[tid].pid > 0 ? tasks_[tid].pid : tid;
  Name(pid, tid, ShortName(path));
  assembler_.ProcessName(pid, ShortName(path), path);
}

void CtfFacts::ProcessState(const Given& given) {
  const int64_t tid = given.Number(kSlotTid);
  if (tid <= 0) return;
  Name(given.Number(kSlotPid), tid, given.Text(kSlotName));
  if (given.Number(kSlotType, 0) != kKernelThreadType) return;
  tasks_[tid].kernel = true;
  assembler_.Kind(tid, trace::ThreadKind::kKernel);
}

// The program among the modules is the one that is no library; it names its
// process where no context does.
void CtfFacts::Module(const Given& given) {
  const std::string_view path = given.Text(kSlotName);
  stacks_.AddModule(given.pid, static_cast<uint64_t>(given.Number(kSlotAddress, 0)),
                    static_cast<uint64_t>(given.Number(kSlotSize, 0)), path);
  const bool is_program = !path.empty() && path.find(".so") == std::string_view::npos &&
                          !path.starts_with('[') && given.pid > 0;
  if (!is_program || !tasks_[given.pid].name.empty()) return;
  Name(given.pid, given.pid, ShortName(path));
  assembler_.ProcessName(given.pid, ShortName(path), path);
}

Status CtfFacts::Finish() { return calls_.Finish(last_ns_); }

}  // namespace culprit::import_
