// SPDX-License-Identifier: Apache-2.0
#include "import/tracepoint_facts.h"

#include <algorithm>

#include "import/importer.h"
#include "import/tracepoint_table.h"

namespace culprit::import_ {
namespace {

using assemble::kNoTid;
using assemble::WakeContext;
using Kind = TracepointFacts::Kind;

constexpr size_t kMaxEventId = UINT16_MAX;
constexpr int64_t kKthreadd = 2;

}  // namespace

TracepointFacts::TracepointFacts(trace::TraceWriter& writer, assemble::Assembler& assembler,
                                 Diagnostics& diagnostics, const symbol::KernelSymbols* symbols,
                                 ByteOrder order, size_t long_bytes)
    : writer_(writer),
      assembler_(assembler),
      diagnostics_(diagnostics),
      order_(order),
      long_bytes_(long_bytes == 4 ? 4 : 8),
      kernel_(writer.dictionary(), symbols),
      marks_(assembler, diagnostics) {}

void TracepointFacts::AddFormat(EventFormat format) {
  if (format.id > kMaxEventId) return;
  if (handlers_.size() <= format.id) handlers_.resize(format.id + size_t{1});
  if (handlers_[format.id] != nullptr) return;
  handlers_[format.id] = std::make_unique<Handler>();
  Handler& handler = *handlers_[format.id];
  handler.format = std::make_unique<EventFormat>(std::move(format));
  const EventFormat& known = *handler.format;
  const TracepointRow row = RowOf(known.system, known.name);
  handler.kind = row.kind;
  for (size_t i = 0; i < kFields; ++i) handler.fields[i] = known.Find(row.fields[i]);
  if ((row.kind == Kind::kEnter || row.kind == Kind::kExitCall) && handler.fields[0] == nullptr) {
    handler.fields[0] = known.Find("nr");  // what __syscall_nr was called before 4.6
  }
  if (row.kind == Kind::kEnter) handler.fields[1] = OperationField(known);
  handler.pid = known.Find("common_pid");
  handler.flags = known.Find("common_flags");
  if (row.kind == Kind::kSwitch) states_ = TaskStates::FromPrint(known.print);
  if (row.kind == Kind::kKernelStack) kernel_stack_ = &handler;
  if (row.kind == Kind::kUserStack) user_stack_ = &handler;
  ++format_count_;
}

Kind TracepointFacts::KindOf(std::string_view data) const {
  const uint64_t id = LoadUnsigned(data, 0, 2, order_);
  if (data.size() < 2 || id >= handlers_.size() || handlers_[id] == nullptr) return Kind::kNone;
  return handlers_[id]->kind;
}

Status TracepointFacts::Feed(const TracepointRecord& record) {
  const Kind kind = KindOf(record.data);
  if (kind == Kind::kNone) {
    diagnostics_.Count("record of an event without a format", 1, record.offset);
    return {};
  }
  first_ns_ = records_ == 0 ? record.time_ns : std::min(first_ns_, record.time_ns);
  last_ns_ = records_ == 0 ? record.time_ns : std::max(last_ns_, record.time_ns);
  ++records_;
  if (record.cpu < kMaxCpus && cpus_.size() <= record.cpu) cpus_.resize(record.cpu + size_t{1});
  const Handler& handler = *handlers_[LoadUnsigned(record.data, 0, 2, order_)];
  return Dispatch(handler, RecordView(record.data, order_), record);
}

Status TracepointFacts::Dispatch(const Handler& handler, const RecordView& view,
                                 const TracepointRecord& record) {
  const Fields& f = handler.fields;
  const int64_t tid = view.Signed(handler.pid);
  if (const auto listed = listed_names_.extract(tid); !listed.empty()) {
    Name(tid, listed.mapped());
  }
  switch (handler.kind) {
    case Kind::kSwitch:
      return Switch(f, view, record);
    case Kind::kWaking:
      any_waking_ = true;
      return Waking(handler, view, record, tid, view.Signed(f[1]));
    case Kind::kWakeup:
      if (any_waking_ || (f[2] != nullptr && view.Signed(f[2]) == 0)) return {};
      return Waking(handler, view, record, tid, view.Signed(f[1]));
    case Kind::kWakeupNew:
      return Waking(handler, view, record, tid, view.Signed(f[1]));
    case Kind::kFork:
      Fork(f, view, record);
      return {};
    case Kind::kExit:
      assembler_.Exit(record.time_ns, view.Signed(f[1]));
      threads_.erase(view.Signed(f[1]));
      return {};
    case Kind::kExec:
    case Kind::kRename:
      Name(view.Signed(f[1]), ShortName(view.Text(f[0])));
      return {};
    case Kind::kNewTask:
      new_task_ = view.Signed(f[1]);
      new_task_is_thread_ = (view.Unsigned(f[2]) & kCloneThread) != 0;
      return {};
    case Kind::kRawEnter:
    case Kind::kEnter:
      any_raw_syscall_ = any_raw_syscall_ || handler.kind == Kind::kRawEnter;
      if (any_raw_syscall_ && handler.kind == Kind::kEnter) return {};
      return assembler_.SyscallEnter(
          record.time_ns, record.cpu, tid,
          EnteredCall(view, f[0], f[1], trace::SyscallAbiOf(writer_.metadata().arch)),
          StackOf(record));
    case Kind::kRawExit:
    case Kind::kExitCall:
      any_raw_syscall_ = any_raw_syscall_ || handler.kind == Kind::kRawExit;
      if (any_raw_syscall_ && handler.kind == Kind::kExitCall) return {};
      return assembler_.SyscallExit(record.time_ns, record.cpu, tid, view.Signed(f[0]),
                                    view.Signed(f[1]));
    case Kind::kBlockIssue:
    case Kind::kBlockComplete:
      return Block(handler, view, record, tid);
    case Kind::kIrqEntry:
    case Kind::kIrqExit:
    case Kind::kSoftirqEntry:
    case Kind::kSoftirqExit:
      Interrupt(handler, view, record.cpu);
      return {};
    case Kind::kPrint: {
      CULPRIT_ASSIGN(const bool mark,
                     marks_.Feed(record.time_ns, tid, view.Text(f[0]), record.offset));
      if (!mark) ++unused_;
      return {};
    }
    case Kind::kFunction:
      return Function(f, view, record, tid);
    case Kind::kGraphEntry:
      return GraphEntry(view.Unsigned(f[0]), record, tid);
    case Kind::kGraphExit:
      return GraphExit(view.Unsigned(f[0]), record, tid);
    case Kind::kKernelStack:
    case Kind::kUserStack:
      diagnostics_.Count("stack that follows no event", 1, record.offset);
      return {};
    case Kind::kNone:
    case Kind::kUnused:
      ++unused_;
      return {};
  }
  return {};
}

// Names are in every switch; only a changed one is passed on.
void TracepointFacts::Name(int64_t tid, std::string_view name) {
  if (tid <= 0 || name.empty()) return;
  const auto [it, is_new] = threads_.try_emplace(tid);
  const size_t hash = std::hash<std::string_view>()(name);
  if (!is_new && it->second.name_hash == hash) return;
  it->second.name_hash = hash;
  assembler_.Name(it->second.pid, tid, name);
  if (IsKernelThreadName(name)) assembler_.Kind(tid, trace::ThreadKind::kKernel);
}

Status TracepointFacts::Switch(const Fields& fields, const RecordView& view,
                               const TracepointRecord& record) {
  const int64_t prev = view.Signed(fields[1]);
  const int64_t next = view.Signed(fields[4]);
  Name(prev, view.Text(fields[0]));
  Name(next, view.Text(fields[3]));
  const uint64_t state = view.Unsigned(fields[2]);
  if (record.cpu < cpus_.size()) cpus_[record.cpu] = {};
  return assembler_.Switch({.time_ns = record.time_ns,
                            .cpu = record.cpu,
                            .prev_tid = prev,
                            .next_tid = next,
                            .prev_runnable = (state & states_.blocked) == 0,
                            .prev_exiting = (state & states_.dead) != 0,
                            .prev_stack = StackOf(record)});
}

Status TracepointFacts::Waking(const Handler& handler, const RecordView& view,
                               const TracepointRecord& record, int64_t waker_tid,
                               int64_t wakee_tid) {
  Name(wakee_tid, view.Text(handler.fields[0]));
  ReadStack(record.kernel_stack, Kind::kKernelStack);
  traits_.clear();
  for (const trace::FrameId frame : frames_) traits_.push_back(kernel_.traits(frame));
  const WakeVerdict verdict = JudgeWaking(view.Unsigned(handler.flags), traits_);
  assemble::WakingFact fact{.time_ns = record.time_ns,
                            .cpu = record.cpu,
                            .waker_tid = waker_tid,
                            .wakee_tid = wakee_tid,
                            .context = verdict.context};
  if (verdict.context == WakeContext::kInterrupt) {
    fact.device = verdict.device.empty() ? DeviceOn(record.cpu) : verdict.device;
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(verdict.first_frame));
    fact.stack = writer_.dictionary().InternStack(frames_);
  } else {
    fact.stack = StackOf(record);
  }
  return assembler_.Waking(fact);
}

void TracepointFacts::Fork(const Fields& fields, const RecordView& view,
                           const TracepointRecord& record) {
  const int64_t parent = view.Signed(fields[0]);
  const int64_t child = view.Signed(fields[1]);
  const auto known = threads_.find(parent);
  const int64_t parent_pid = known == threads_.end() ? kNoTid : known->second.pid;
  // Only task_newtask tells a thread from a process.
  int64_t pid = kNoTid;
  if (new_task_ == child) pid = new_task_is_thread_ ? parent_pid : child;
  threads_.erase(child);
  threads_[child].pid = pid;
  assembler_.Fork(record.time_ns, parent, pid, child);
  Name(child, view.Text(fields[2]));
  if (parent == kKthreadd) assembler_.Kind(child, trace::ThreadKind::kKernel);
  new_task_ = kNoTid;
}

Status TracepointFacts::Block(const Handler& handler, const RecordView& view,
                              const TracepointRecord& record, int64_t tid) {
  const Fields& f = handler.fields;
  const uint64_t dev = view.Unsigned(f[0]);
  const std::string device = std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff);
  const uint64_t sectors = std::min<uint64_t>(view.Unsigned(f[2]), UINT32_MAX);
  const uint64_t bytes = std::min<uint64_t>(view.Unsigned(f[3]), UINT32_MAX);
  assemble::BlockFact fact{.time_ns = record.time_ns,
                           .device = device,
                           .sector = view.Unsigned(f[1]),
                           .bytes = static_cast<int64_t>(bytes != 0 ? bytes : sectors * 512),
                           .operation = BlockOperation(view.Text(f[4]))};
  if (handler.kind == Kind::kBlockComplete) return assembler_.BlockComplete(fact);
  // A request issued from an interrupt is not the interrupted thread's.
  const uint64_t flags = view.Unsigned(handler.flags);
  if ((flags & (kHardInterruptFlags | kSoftInterruptFlag)) == 0) {
    fact.tid = tid;
    fact.stack = StackOf(record);
  }
  return assembler_.BlockIssue(fact);
}

void TracepointFacts::Interrupt(const Handler& handler, const RecordView& view, uint16_t cpu) {
  if (cpu >= cpus_.size()) return;
  CpuState& state = cpus_[cpu];
  if (handler.kind == Kind::kIrqEntry) state.irq = view.Text(handler.fields[0]);
  if (handler.kind == Kind::kIrqExit) state.irq.clear();
  if (handler.kind == Kind::kSoftirqEntry) state.softirq = view.Signed(handler.fields[0]);
  if (handler.kind == Kind::kSoftirqExit) state.softirq = -1;
}

std::string_view TracepointFacts::DeviceOn(uint16_t cpu) const {
  if (cpu >= cpus_.size()) return {};
  const CpuState& state = cpus_[cpu];
  if (!state.irq.empty()) return DeviceOfIrq(state.irq);
  return DeviceOfSoftirq(state.softirq);
}

}  // namespace culprit::import_
