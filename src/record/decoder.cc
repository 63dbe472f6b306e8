// SPDX-License-Identifier: Apache-2.0
#include "record/decoder.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "import/trace_mark.h"
#include "record/machine.h"
#include "record/remote_stack.h"
#include "trace/syscall_operation.h"

namespace culprit::record {
namespace {

using assemble::kNoTid;
using assemble::WakeContext;

constexpr size_t kMaxOperations = 100'000;
constexpr size_t kMaxSeenMarks = 1000;
constexpr uint32_t kMaxBlockOperation = 255;
constexpr int64_t kKthreadd = 2;
constexpr uint16_t kNoCpu = assemble::kNoCpu;

// REQ_OP_* of the kernel to the model's operations.
int64_t OperationOf(uint32_t request_operation) {
  switch (request_operation & kMaxBlockOperation) {
    case 0:
      return 0;
    case 2:
      return 2;
    case 3:
    case 5:
    case 9:
      return 3;
    default:
      return 1;
  }
}

template <class T>
T Load(std::string_view bytes) {
  T value;
  memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

size_t SizeOf(uint8_t type) {
  switch (type) {
    case kWaitRecord:
      return sizeof(WaitRecord);
    case kLeftOutRecord:
      return sizeof(LeftOutRecord);
    case kSampleRecord:
      return sizeof(SampleRecord);
    case kGoneRecord:
      return sizeof(GoneRecord);
    case kStackRecord:
      return offsetof(StackRecord, addresses);
    case kSyscallRecord:
      return sizeof(SyscallRecord);
    case kBlockRecord:
      return sizeof(BlockRecord);
    case kMarkRecord:
      return sizeof(MarkRecord);
    case kOpenRecord:
      return sizeof(OpenRecord);
    case kProbeRecord:
      return sizeof(ProbeRecord);
    default:
      return SIZE_MAX;
  }
}

std::string DiskName(uint32_t device) {
  return "disk " + std::to_string(device >> 20) + ":" + std::to_string(device & 0xfffff);
}

int64_t Time(uint64_t time_ns) {
  return static_cast<int64_t>(std::min<uint64_t>(time_ns, uint64_t{1} << 61));
}

}  // namespace

Decoder::Decoder(assemble::FusedAssembler& assembler, StackTable& stacks, Diagnostics& diagnostics)
    : assembler_(assembler), abi_(OwnSyscallAbi()), stacks_(stacks), diagnostics_(diagnostics) {}

void Decoder::Know(const ProcessEntry& process) {
  assembler_.ProcessName(process.pid, process.name, process.command_line);
  assembler_.Cgroup(process.pid, process.cgroup);
  for (const ThreadEntry& thread : process.threads) {
    assembler_.Name(process.pid, thread.tid, thread.name);
    if (process.is_kernel_thread) {
      assembler_.Kind(thread.tid, trace::ThreadKind::kKernel);
    }
    threads_.insert(thread.tid);
  }
  if (process.maps.empty()) return;
  mapped_.insert(process.pid);
  for (const MapEntry& map : process.maps) {
    stacks_.Map(process.pid, map.start, map.end - map.start, map.file_offset, map.path, {});
  }
}

void Decoder::KnowThread(int64_t tid) {
  if (tid <= 0) return;
  int64_t& met = met_threads_[static_cast<size_t>(tid) % met_threads_.size()];
  if (met == tid) return;
  met = tid;
  if (!threads_.insert(tid).second) return;
  const std::optional<ThreadOwner> owner = FindThread(tid);
  if (!owner) return;
  assembler_.Name(owner->pid, tid, owner->name);
  if (owner->is_kernel_thread) assembler_.Kind(tid, trace::ThreadKind::kKernel);
}

void Decoder::KnowMaps(int64_t pid) {
  if (pid <= 0 || !mapped_.insert(pid).second) return;
  if (const std::optional<ProcessEntry> process = ScanProcess(pid, true)) Know(*process);
}

void Decoder::Apply(const LifeEvent& event) {
  switch (event.kind) {
    case LifeEvent::Kind::kFork:
      assembler_.Fork(event.time_ns, event.parent_tid, event.pid, event.tid);
      threads_.insert(event.tid);
      if (event.parent_pid == kKthreadd) {
        assembler_.Kind(event.tid, trace::ThreadKind::kKernel);
      }
      if (event.pid != event.parent_pid) {
        stacks_.Fork(event.parent_pid, event.pid);
        if (mapped_.contains(event.parent_pid)) {
          mapped_.insert(event.pid);
        } else {
          mapped_.erase(event.pid);
        }
      }
      break;
    case LifeEvent::Kind::kExit:
      // It stays known: its last records are still to come, and by now /proc may
      // show another thread under its id. A fork makes that one known.
      assembler_.Exit(event.time_ns, event.tid);
      break;
    case LifeEvent::Kind::kExec:
      stacks_.Forget(event.pid);
      mapped_.insert(event.pid);
      if (const auto process = ScanProcess(event.pid, false)) {
        assembler_.ProcessName(event.pid, event.text, process->command_line);
        assembler_.Cgroup(event.pid, process->cgroup);
      } else {
        assembler_.ProcessName(event.pid, event.text);
      }
      [[fallthrough]];
    case LifeEvent::Kind::kName:
      assembler_.Name(event.pid, event.tid, event.text);
      threads_.insert(event.tid);
      break;
    case LifeEvent::Kind::kMap:
      stacks_.Map(event.pid, event.start, event.size, event.file_offset, event.text, {});
      break;
    case LifeEvent::Kind::kCgroup:
      break;
    case LifeEvent::Kind::kLost:
      diagnostics_.Count("life event lost for want of room", event.start);
      break;
  }
}

Status Decoder::Feed(const std::string& records, const std::vector<LifeEvent>& life,
                     Breather* breather) {
  auto next = life.begin();
  std::string_view rest = records;
  while (rest.size() >= sizeof(uint32_t)) {
    const size_t size = Load<uint32_t>(rest);
    rest.remove_prefix(sizeof(uint32_t));
    const std::string_view record = rest.substr(0, size);
    rest.remove_prefix(record.size());
    if (record.size() < sizeof(RecordHead)) continue;
    const int64_t time_ns = Time(Load<RecordHead>(record).time_ns);
    while (next != life.end() && next->time_ns <= time_ns) Apply(*next++);
    CULPRIT_TRY(Record(record));
    if (breather != nullptr) breather->Step();
  }
  while (next != life.end()) Apply(*next++);
  return {};
}

void Decoder::Define(std::string_view record) {
  StackRecord stack = {};
  memcpy(&stack, record.data(), std::min(record.size(), sizeof(stack)));
  const size_t present = (record.size() - offsetof(StackRecord, addresses)) / sizeof(uint64_t);
  const size_t count = std::min<size_t>({stack.count, present, kMaxStackFrames});
  if (stack.tgid != 0) KnowMaps(stack.tgid);
  stacks_.Define(stack.id, stack.tgid, {stack.addresses, count});
}

int64_t Decoder::CallOf(uint32_t number, uint32_t operation) const {
  if (!abi_) return number;
  return trace::PackCallWith(number, *abi_, [&](size_t) { return uint64_t{operation}; });
}

Status Decoder::Record(std::string_view record) {
  const auto head = Load<RecordHead>(record);
  if (record.size() < SizeOf(head.type)) {
    diagnostics_.Count("record of the kernel programs that makes no sense");
    return {};
  }
  switch (head.type) {
    case kStackRecord:
      Define(record);
      return {};
    case kOpenRecord:
      open_.emplace_back(record);
      return {};
    default:
      return Dispatch(record);
  }
}

Status Decoder::Dispatch(std::string_view record) {
  const auto head = Load<RecordHead>(record);
  const int64_t time_ns = Time(head.time_ns);
  KnowThread(head.tid);
  if (remembers_recorded_ || !scenarios_.empty()) recorded_.insert(head.tid);
  switch (head.type) {
    case kWaitRecord:
      return Wait(Load<WaitRecord>(record));
    case kLeftOutRecord: {
      const auto left = Load<LeftOutRecord>(record);
      return assembler_.LeftOut({.tid = head.tid,
                                 .end_ns = time_ns,
                                 .run_ns = Time(left.run_ns),
                                 .wait_ns = Time(left.wait_ns),
                                 .ready_ns = Time(left.ready_ns),
                                 .count = left.count,
                                 .waits = left.waits,
                                 .cpu = head.cpu,
                                 .stack = stacks_.Stack(left.user_stack, left.kernel_stack)});
    }
    case kSampleRecord: {
      const auto sample = Load<SampleRecord>(record);
      return assembler_.Sample(
          time_ns, head.cpu, head.tid,
          stacks_.StackBelow(sample.user_callers, sample.user_leaf, sample.kernel_stack));
    }
    case kGoneRecord:
      return assembler_.Gone(time_ns, head.tid);
    case kSyscallRecord: {
      const auto call = Load<SyscallRecord>(record);
      return assembler_.Syscall(Time(call.enter_ns), time_ns, head.cpu, head.tid,
                                CallOf(call.number, call.operation), call.result,
                                stacks_.Stack(call.user_stack, 0));
    }
    case kBlockRecord:
      return Block(Load<BlockRecord>(record));
    case kMarkRecord: {
      const auto mark = Load<MarkRecord>(record);
      const size_t length = std::min<size_t>(mark.length, kMaxMarkBytes);
      return Mark(time_ns, mark.tgid, head.tid, {mark.text, length});
    }
    case kProbeRecord: {
      const auto probe = Load<ProbeRecord>(record);
      Probe({.time_ns = time_ns, .pid = probe.tgid, .tid = head.tid, .cookie = probe.cookie});
      return {};
    }
    default:
      return {};
  }
}

assemble::OffCpuFact Decoder::OffCpuOf(const WaitRecord& record, uint64_t user_stack) {
  const uint8_t flags = record.head.flags;
  const trace::StackId stack =
      (flags & kLeafApart) != 0
          ? stacks_.StackBelow(user_stack, record.user_leaf, record.kernel_stack)
          : stacks_.Stack(user_stack, record.kernel_stack);
  assemble::OffCpuFact fact{.tid = record.head.tid,
                            .out_ns = Time(record.out_ns),
                            .in_ns = Time(record.head.time_ns),
                            .in_cpu = record.head.cpu,
                            .out_cpu = record.out_cpu,
                            .runnable = (flags & kWasRunnable) != 0,
                            .is_new = (flags & kNewThread) != 0,
                            .since_begin = (flags & kSinceBegin) != 0,
                            .out_lost = (flags & kSwitchOutLost) != 0,
                            .holder_tid = record.holder_tid,
                            .stack = stack};
  KnowThread(record.holder_tid);
  if (record.wake_ns == 0 || fact.runnable) return fact;
  const import_::PerfWaker waker =
      stacks_.Waker(record.waker_user_stack, record.waker_kernel_stack, (flags & kWakeHardIrq) != 0,
                    (flags & kWakeSoftIrq) != 0);
  if (waker.context != WakeContext::kInterrupt) KnowThread(record.waker_tid);
  std::string_view device = waker.device;
  if (device == "disk" && record.wake_device != 0) {
    device_ = DiskName(record.wake_device);
    device = device_;
  }
  fact.wake = {.time_ns = Time(record.wake_ns),
               .waker_tid = record.waker_tid,
               .context = waker.context,
               .device = device,
               .stack = waker.stack,
               .cpu = record.waker_cpu};
  return fact;
}

Status Decoder::Wait(const WaitRecord& record) {
  const assemble::OffCpuFact fact = OffCpuOf(record, record.user_stack);
  if (!fact.runnable && !fact.since_begin && fact.in_ns - fact.out_ns > seen_.longest_wait_ns) {
    seen_.longest_wait_ns = fact.in_ns - fact.out_ns;
    seen_.longest_wait_tid = fact.tid;
  }
  return assembler_.OffCpu(fact);
}

Status Decoder::Block(const BlockRecord& record) {
  const std::string device = DiskName(record.device);
  return assembler_.Request({.issue_ns = Time(record.issue_ns),
                             .dur_ns = Time(record.head.time_ns) - Time(record.issue_ns),
                             .device = device,
                             .bytes = record.bytes,
                             .operation = OperationOf(record.operation),
                             .tid = record.head.tid,
                             .stack = stacks_.Stack(record.user_stack, record.kernel_stack)});
}

void Decoder::Probe(const ProbeHit& hit) {
  const uint64_t index = hit.cookie / 2;
  if (index >= scenarios_.size()) return;
  const std::pair<int64_t, uint64_t> key = {hit.tid, index};
  if (hit.cookie % 2 == 0) {
    if (probes_.size() >= kMaxOperations) return;
    OpenProbe& open = probes_[key];
    if (open.depth++ == 0) open.time_ns = hit.time_ns;
    if (seen_.marks.size() < kMaxSeenMarks) seen_.marks.push_back(scenarios_[index]);
    return;
  }
  const auto it = probes_.find(key);
  if (it == probes_.end()) {
    diagnostics_.Count("probe at an end without its begin");
    return;
  }
  if (--it->second.depth > 0) return;
  KnowThread(hit.tid);
  assembler_.Instance(scenarios_[index], hit.tid, it->second.time_ns, hit.time_ns);
  probes_.erase(it);
}

Status Decoder::Mark(int64_t time_ns, int64_t pid, int64_t tid, std::string_view text) {
  const std::optional<import_::TraceMark> mark = import_::ParseTraceMark(text);
  if (!mark) return {};
  // A mark in the name of another process is that one's first thread's.
  if (mark->pid > 0 && mark->pid != pid) tid = mark->pid;
  KnowThread(tid);
  if (seen_.marks.size() < kMaxSeenMarks) seen_.marks.emplace_back(mark->name);
  switch (mark->phase) {
    case 'B':
      return assembler_.SliceBegin(time_ns, tid, mark->name);
    case 'E':
      return assembler_.SliceEnd(time_ns, tid);
    default:
      break;
  }
  const std::string key =
      std::to_string(mark->pid) + "|" + std::string(mark->name) + "|" + std::string(mark->cookie);
  if (mark->phase == 'S') {
    if (operations_.size() < kMaxOperations) operations_[key] = {.tid = tid, .time_ns = time_ns};
    return {};
  }
  const auto it = operations_.find(key);
  if (it == operations_.end()) {
    diagnostics_.Count("end of an asynchronous mark without its begin");
    return {};
  }
  assembler_.Instance(mark->name, it->second.tid, it->second.time_ns, time_ns);
  operations_.erase(it);
  return {};
}

// A thread that sleeps at the end: its user stack was never taken if only long
// waits have one, so it is read from its memory now.
Status Decoder::Open(const OpenRecord& record, int64_t end_ns) {
  const int64_t tid = record.wait.head.tid;
  KnowThread(tid);
  if (record.syscall_enter_ns != 0) {
    CULPRIT_TRY(assembler_.Syscall(Time(record.syscall_enter_ns), end_ns, kNoCpu, tid,
                                   CallOf(record.syscall_number, record.syscall_operation), 0, {},
                                   trace::kUnfinished));
  }
  if ((record.flags & kOpenOnCpu) != 0) {
    return assembler_.OpenRunning(tid, Time(record.wait.out_ns), kNoCpu);
  }
  assemble::OffCpuFact fact = OffCpuOf(record.wait, OpenUserStack(record));
  fact.in_ns = end_ns;
  return assembler_.Open(fact);
}

// Of a thread that sleeps: if it was not taken, or is forgotten, it is read from its memory now.
uint64_t Decoder::OpenUserStack(const OpenRecord& record) {
  const int64_t tid = record.wait.head.tid;
  uint64_t user_stack = record.wait.user_stack;
  const bool has_leaf_apart = (record.wait.head.flags & kLeafApart) != 0;
  if (!has_leaf_apart && !stacks_.Knows(user_stack) && record.program_counter != 0) {
    const std::vector<uint64_t> addresses =
        walk_sleeper_ ? walk_sleeper_(record)
                      : ReadRemoteStack(tid, record.program_counter, record.frame_pointer);
    if (!addresses.empty()) {
      // As the kernel side names them: what it has of the same thread later is another one.
      user_stack =
          XXH3_64bits_withSeed(addresses.data(), addresses.size() * sizeof(uint64_t), record.tgid) |
          1;
      KnowMaps(record.tgid);
      stacks_.Define(user_stack, record.tgid, addresses);
    }
  }
  return user_stack;
}

std::vector<trace::Event> Decoder::OpenTiles(int64_t end_ns) {
  std::vector<trace::Event> tiles;
  for (const std::string& bytes : open_) {
    const auto record = Load<OpenRecord>(bytes);
    KnowThread(record.wait.head.tid);
    if ((record.flags & kOpenOnCpu) != 0) {
      assembler_.PeekRunning(record.wait.head.tid, Time(record.wait.out_ns), end_ns, tiles);
      continue;
    }
    assemble::OffCpuFact fact = OffCpuOf(record.wait, OpenUserStack(record));
    fact.in_ns = end_ns;
    assembler_.Peek(fact, tiles);
  }
  return tiles;
}

Status Decoder::Finish(int64_t end_ns) {
  for (const std::string& record : open_) CULPRIT_TRY(Open(Load<OpenRecord>(record), end_ns));
  open_.clear();
  if (!probes_.empty()) diagnostics_.Count("probe at a begin without its end", probes_.size());
  if (!operations_.empty()) {
    diagnostics_.Count("asynchronous mark without its end", operations_.size());
  }
  return assembler_.Finish(end_ns);
}

Seen Decoder::TakeSeen() { return std::exchange(seen_, {}); }

}  // namespace culprit::record
