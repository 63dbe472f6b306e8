// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_facts.h"

#include <algorithm>
#include <cstring>

#include "import/kernel_stacks.h"

namespace culprit::import_ {
namespace {

using assemble::kNoCpu;
using assemble::kNoTid;

constexpr size_t kMaxDeferredBytes = 32 << 20;
constexpr size_t kMaxCgroups = 1 << 16;
constexpr uint16_t kMiscCommExec = 1 << 13;
constexpr uint64_t kMaxTime = uint64_t{1} << 61;
constexpr uint64_t kKsymbolUnregister = 1;
constexpr uint32_t kProtectionExec = 4;

uint16_t CpuOf(const PerfSample& sample) {
  return sample.cpu < kNoCpu ? static_cast<uint16_t>(sample.cpu) : kNoCpu;
}

}  // namespace

PerfDataFacts::PerfDataFacts(const PerfSession& session, const ImportOptions& options,
                             trace::TraceWriter& writer, assemble::Assembler& assembler,
                             Diagnostics& diagnostics)
    : session_(session),
      writer_(writer),
      assembler_(assembler),
      diagnostics_(diagnostics),
      order_(session.big ? ByteOrder::kBig : ByteOrder::kLittle),
      abi_(trace::SyscallAbiOf(session.arch)),
      stacks_(session, options, writer.dictionary(), diagnostics),
      calls_(
          writer, assembler,
          [this](trace::StackId caller, int64_t pid, uint64_t address) {
            return FunctionOn(caller, pid, address);
          },
          diagnostics) {
  Plan(options);
}

bool PerfDataFacts::IsRecorded(int64_t tid) const {
  if (!partial_ || tid <= 0) return !partial_;
  const Known* known = threads_.Find(tid);
  return known != nullptr && known->pid > 0;
}

int64_t PerfDataFacts::TimeOf(uint64_t time) const {
  if (timeless_) return made_up_ns_;
  return static_cast<int64_t>(std::min(time, kMaxTime));
}

void PerfDataFacts::Preview(const PerfRecordView& record) {
  if (record.type != kRecordCallchainDeferred) return;
  FieldReader in(record.body, session_.big);
  const uint64_t cookie = in.U64();
  const uint64_t count = in.U64();
  if (in.failed()) return;
  const std::string_view chain = in.Bytes(std::min<uint64_t>(count, in.remaining() / 8) * 8);
  deferred_bytes_ += chain.size() + 64;
  if (deferred_bytes_ > kMaxDeferredBytes) {
    deferred_.clear();
    deferred_bytes_ = 0;
  }
  deferred_[cookie] = chain;
}

Status PerfDataFacts::Feed(uint64_t time, const PerfRecordView& record) {
  if (record.type == kRecordSample) return Sample(time, record);
  const bool timed = time != 0 && !timeless_;
  const int64_t time_ns = TimeOf(time);
  switch (record.type) {
    case kRecordMmap:
    case kRecordMmap2:
      Mmap(record);
      break;
    case kRecordComm:
      Comm(record);
      break;
    case kRecordFork:
      Fork(time_ns, timed, record);
      break;
    case kRecordExit:
      Exit(time_ns, timed, record);
      break;
    case kRecordLost:
    case kRecordLostSamples:
      Lost(record);
      break;
    case kRecordThrottle:
      diagnostics_.Count("sampling throttled by the kernel", 1, record.offset);
      break;
    case kRecordSwitch:
    case kRecordSwitchCpuWide: {
      if (!switch_records_ || !timed) break;
      const PerfAttr& attr =
          session_.attrs.all()[session_.attrs.OfRecord(record.body, session_.big)];
      return SwitchRecord(time_ns, record, ParsePerfSampleId(attr, record.body, session_.big));
    }
    case kRecordKsymbol:
      Ksymbol(record);
      break;
    case kRecordCgroup: {
      FieldReader in(record.body, session_.big);
      const uint64_t id = in.U64();
      if (cgroups_.size() < kMaxCgroups) cgroups_[id] = in.CString();
      break;
    }
    default:
      break;
  }
  return {};
}

Status PerfDataFacts::Sample(uint64_t time, const PerfRecordView& record) {
  const size_t index = session_.attrs.OfSample(record.body, session_.big);
  const PerfAttr& attr = session_.attrs.all()[index];
  Event& event = events_[index];
  PerfSample sample;
  ++samples_;
  if (!ParsePerfSample(attr, record.body, session_.big, sample)) {
    diagnostics_.Count("sample shorter than its description", 1, record.offset);
    return {};
  }
  if (event.role == Role::kUnused) {
    ++event.unused;
    return {};
  }
  Belongs(sample.pid, sample.tid);
  if (attr.Has(kSampleCgroup) && sample.pid > 0) {
    uint64_t& current = cgroup_of_[sample.pid];
    const auto path = cgroups_.find(sample.cgroup);
    if (current != sample.cgroup && path != cgroups_.end()) {
      current = sample.cgroup;
      assembler_.Cgroup(sample.pid, path->second);
    }
  }
  Moment moment = {.time_ns = TimeOf(time),
                   .cpu = CpuOf(sample),
                   .tid = sample.tid,
                   .chain = {.addresses = sample.chain,
                             .deferred = {},
                             .pid = sample.pid,
                             .misc = record.misc,
                             .max_stack = attr.max_stack}};
  if (sample.user_abi != 0) stacks_.Unwind(attr, sample, record.offset, moment.chain);
  if (!moment.chain.unwound && sample.chain.size() >= 16) {
    const char* end = sample.chain.data() + sample.chain.size();
    if (LoadInteger<uint64_t>(end - 16, session_.big) == kContextUserDeferred) {
      const auto user = deferred_.find(LoadInteger<uint64_t>(end - 8, session_.big));
      if (user != deferred_.end()) moment.chain.deferred = user->second;
    }
  }
  switch (event.role) {
    case Role::kRunning:
      return Running(event, sample, moment);
    case Role::kRuntime: {
      const RecordView view(sample.raw, order_);
      const int64_t runtime_ns = view.Signed(event.fields[1]);
      if (runtime_ns <= 0) return {};
      return assembler_.Sample({.time_ns = moment.time_ns,
                                .cpu = moment.cpu,
                                .tid = view.Signed(event.fields[0]),
                                .period_ns = runtime_ns,
                                .stack = stacks_.Stack(moment.chain)});
    }
    case Role::kSwitchStack:
      if (sample.tid > 0) switch_stacks_[sample.tid] = stacks_.Stack(moment.chain);
      if (switch_records_) return {};
      return assembler_.Switch({.time_ns = moment.time_ns,
                                .cpu = moment.cpu,
                                .prev_tid = sample.tid,
                                .prev_stack = stacks_.Stack(moment.chain)});
    case Role::kTracepoint:
      return Tracepoint(event, sample.raw, moment);
    case Role::kFunctionEntry:
    case Role::kFunctionReturn:
      return Probe(event, sample.raw, moment);
    case Role::kUnused:
      break;
  }
  return {};
}

Status PerfDataFacts::Running(const Event& event, const PerfSample& sample, const Moment& moment) {
  int64_t period_ns = event.period_ns;
  if (event.period_is_ns && sample.period != 0 && sample.period < kMaxTime) {
    period_ns = static_cast<int64_t>(sample.period);
  }
  PerfChain chain = moment.chain;
  if (chain.addresses.empty() && chain.deferred.empty()) chain.addresses = sample.leaf;
  const assemble::SampleFact fact = {.time_ns = moment.time_ns,
                                     .cpu = moment.cpu,
                                     .tid = moment.tid,
                                     .period_ns = period_ns,
                                     .stack = stacks_.Stack(chain)};
  if (timeless_ && made_up_ns_ < static_cast<int64_t>(kMaxTime)) made_up_ns_ += period_ns;
  return assembler_.Sample(fact);
}

Status PerfDataFacts::Tracepoint(const Event& event, std::string_view raw, const Moment& moment) {
  const RecordView view(raw, order_);
  const auto& f = event.fields;
  switch (event.kind) {
    case Kind::kSwitch:
      return Switch(event, view, moment);
    case Kind::kWakeup:
      if (f[2] != nullptr && view.Signed(f[2]) == 0) return {};
      return Waking(event, view, moment);
    case Kind::kWaking:
    case Kind::kWakeupNew:
      return Waking(event, view, moment);
    case Kind::kRawEnter:
    case Kind::kEnter:
      CULPRIT_TRY(assembler_.SyscallEnter(moment.time_ns, moment.cpu, moment.tid,
                                          EnteredCall(view, f[0], f[1], abi_),
                                          stacks_.Stack(moment.chain)));
      // Without exits a call is the moment it was made.
      if (call_exits_) return {};
      return assembler_.SyscallExit(moment.time_ns, moment.cpu, moment.tid, kNoTid, 0);
    case Kind::kRawExit:
    case Kind::kExitCall:
      return assembler_.SyscallExit(moment.time_ns, moment.cpu, moment.tid, view.Signed(f[0]),
                                    view.Signed(f[1]));
    case Kind::kBlockIssue:
    case Kind::kBlockComplete:
      return Block(event, view, moment);
    case Kind::kFork:
      threads_.Erase(view.Signed(f[1]));
      assembler_.Fork(moment.time_ns, view.Signed(f[0]), kNoTid, view.Signed(f[1]));
      Name(view.Signed(f[1]), view.Text(f[2]));
      return {};
    case Kind::kExit:
      threads_.Erase(view.Signed(f[1]));
      assembler_.Exit(moment.time_ns, view.Signed(f[1]));
      return {};
    case Kind::kExec:
    case Kind::kRename:
      Name(view.Signed(f[1]), ShortName(view.Text(f[0])));
      return {};
    default:
      return {};
  }
}

Status PerfDataFacts::Probe(const Event& event, std::string_view raw, const Moment& moment) {
  const RecordView view(raw, order_);
  const EntryExitFact fact = {.time_ns = moment.time_ns,
                              .address = view.Unsigned(event.fields[0]),
                              .pid = moment.chain.pid,
                              .tid = moment.tid,
                              .cpu = moment.cpu};
  if (moment.tid <= 0 || fact.address == 0) return {};
  last_probe_ns_ = std::max(last_probe_ns_, moment.time_ns);
  if (event.role == Role::kFunctionReturn) return calls_.Exit(fact);
  calls_.Entry(fact);
  return {};
}

// Code that is inlined at a function's very begin is no function of its own here.
trace::StackId PerfDataFacts::FunctionOn(trace::StackId caller, int64_t pid, uint64_t address) {
  char bytes[8];
  for (size_t i = 0; i < sizeof(bytes); ++i) {
    bytes[session_.big ? 7 - i : i] = static_cast<char>(address >> 8 * i & 0xff);
  }
  const trace::StackId place = stacks_.Stack({.addresses = std::string_view(bytes, sizeof(bytes)),
                                              .deferred = {},
                                              .pid = pid,
                                              .misc = kMiscUser});
  const std::vector<trace::FrameId> frames = writer_.dictionary().StackFrames(place);
  if (frames.empty()) return caller;
  return writer_.dictionary().InternStack(caller, frames.front());
}

Status PerfDataFacts::Switch(const Event& event, const RecordView& view, const Moment& moment) {
  const auto& f = event.fields;
  const int64_t prev = view.Signed(f[1]);
  const int64_t next = IsRecorded(view.Signed(f[4])) ? view.Signed(f[4]) : kNoTid;
  NameOf(prev, view, f[0]);
  NameOf(next, view, f[3]);
  const uint64_t state = view.Unsigned(f[2]);
  return assembler_.Switch({.time_ns = moment.time_ns,
                            .cpu = moment.cpu,
                            .prev_tid = prev,
                            .next_tid = next,
                            .prev_runnable = (state & states_.blocked) == 0,
                            .prev_exiting = (state & states_.dead) != 0,
                            .prev_stack = stacks_.Stack(moment.chain)});
}

Status PerfDataFacts::Waking(const Event& event, const RecordView& view, const Moment& moment) {
  const int64_t wakee = view.Signed(event.fields[1]);
  if (!IsRecorded(wakee)) return {};
  NameOf(wakee, view, event.fields[0]);
  const PerfWaker waker = stacks_.Waker(moment.chain, view.Unsigned(event.flags));
  const uint64_t target = view.Unsigned(event.target_cpu);
  const bool known = event.target_cpu != nullptr && target < kNoCpu;
  return assembler_.Waking({.time_ns = moment.time_ns,
                            .cpu = moment.cpu,
                            .waker_tid = moment.tid,
                            .wakee_tid = wakee,
                            .context = waker.context,
                            .device = waker.device,
                            .stack = waker.stack,
                            .target_cpu = known ? static_cast<uint16_t>(target) : kNoCpu});
}

Status PerfDataFacts::Block(const Event& event, const RecordView& view, const Moment& moment) {
  const auto& f = event.fields;
  const uint64_t dev = view.Unsigned(f[0]);
  const std::string device = std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff);
  const uint64_t sectors = std::min<uint64_t>(view.Unsigned(f[2]), UINT32_MAX);
  const uint64_t bytes = std::min<uint64_t>(view.Unsigned(f[3]), UINT32_MAX);
  assemble::BlockFact fact = {.time_ns = moment.time_ns,
                              .device = device,
                              .sector = view.Unsigned(f[1]),
                              .bytes = static_cast<int64_t>(bytes != 0 ? bytes : sectors * 512),
                              .operation = BlockOperation(view.Text(f[4]))};
  if (event.kind == Kind::kBlockComplete) return assembler_.BlockComplete(fact);
  // A request issued from an interrupt is not the interrupted thread's.
  if ((view.Unsigned(event.flags) & (kHardInterruptFlags | kSoftInterruptFlag)) == 0) {
    fact.tid = moment.tid;
    fact.stack = stacks_.Stack(moment.chain);
  }
  return assembler_.BlockIssue(fact);
}

Status PerfDataFacts::SwitchRecord(int64_t time_ns, const PerfRecordView& record,
                                   const PerfSample& id) {
  Belongs(id.pid, id.tid);
  assemble::SwitchFact fact = {.time_ns = time_ns, .cpu = CpuOf(id)};
  if ((record.misc & kMiscSwitchOut) == 0) {
    fact.next_tid = id.tid;
    return assembler_.Switch(fact);
  }
  fact.prev_tid = id.tid;
  fact.prev_runnable = (record.misc & kMiscSwitchOutPreempt) != 0;
  if (record.type == kRecordSwitchCpuWide) {
    FieldReader in(record.body, session_.big);
    in.Skip(4);
    const int64_t next = in.I32();
    fact.next_tid = IsRecorded(next) ? next : kNoTid;
  }
  const auto stack = switch_stacks_.find(id.tid);
  if (stack != switch_stacks_.end()) {
    fact.prev_stack = stack->second;
    switch_stacks_.erase(stack);
  }
  return assembler_.Switch(fact);
}

namespace {

// Size, three zeros, the id, zeros. Where another reader asked for build-ids, kernels
// mark records so that hold the device's major and minor numbers, the inode and its
// generation in that place: an id of eight bytes that begins like a minor number is none.
std::string BuildIdOfMap(std::string_view identity) {
  constexpr size_t kHead = 4;
  if (identity.size() < kHead) return "";
  const size_t length = static_cast<uint8_t>(identity[0]);
  const auto is_zero = [](std::string_view bytes) {
    return bytes.find_first_not_of('\0') == std::string_view::npos;
  };
  if (length > identity.size() - kHead || !is_zero(identity.substr(1, kHead - 1)) ||
      !is_zero(identity.substr(kHead + length)) ||
      (length < 16 && is_zero(identity.substr(kHead + 2, 2)))) {
    return "";
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : identity.substr(kHead, length)) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return text;
}

}  // namespace

void PerfDataFacts::Mmap(const PerfRecordView& record) {
  FieldReader in(record.body, session_.big);
  const int64_t pid = in.I32();
  in.Skip(4);
  const uint64_t start = in.U64();
  const uint64_t size = in.U64();
  const uint64_t file_offset = in.U64();
  std::string build_id;
  bool code = (record.misc & kMiscMmapData) == 0;
  if (record.type == kRecordMmap2) {
    const std::string_view identity = in.Bytes(24);
    if ((record.misc & kMiscMmapBuildId) != 0) build_id = BuildIdOfMap(identity);
    code = (in.U32() & kProtectionExec) != 0;
    in.Skip(4);
  }
  const std::string_view path = in.CString();
  if (in.failed()) {
    diagnostics_.Count("map record cut short", 1, record.offset);
    return;
  }
  const uint16_t mode = record.misc & kMiscCpuModeMask;
  if (mode == kMiscKernel || pid == -1) {
    if (mode != kMiscGuestKernel) stacks_.MapKernel(start, size, file_offset, path);
  } else if (code || session_.file_symbols.Has(path)) {
    stacks_.Map(pid, start, size, file_offset, path, build_id);
  }
}

void PerfDataFacts::Comm(const PerfRecordView& record) {
  FieldReader in(record.body, session_.big);
  const int64_t pid = in.I32();
  const int64_t tid = in.I32();
  const std::string_view name = in.CString();
  if (in.failed() || tid <= 0) return;
  if ((record.misc & kMiscCommExec) != 0) stacks_.spaces().Forget(pid);
  // Who lists the kernel's threads records all processes, asked or not.
  if (pid == 2 && name == "kthreadd") partial_ = false;
  Belongs(pid, tid);
  Name(tid, name);
}

void PerfDataFacts::Fork(int64_t time_ns, bool timed, const PerfRecordView& record) {
  FieldReader in(record.body, session_.big);
  const int64_t pid = in.I32();
  const int64_t parent_pid = in.I32();
  const int64_t tid = in.I32();
  const int64_t parent_tid = in.I32();
  if (in.failed() || tid <= 0) return;
  // perf writes such records without a time for what existed before.
  if (!timed) return Belongs(pid, tid);
  stacks_.spaces().Fork(parent_pid, pid);
  threads_.Erase(tid);
  assembler_.Fork(time_ns, parent_tid, pid, tid);
  threads_.Insert(tid).first->pid = pid;
}

void PerfDataFacts::Exit(int64_t time_ns, bool timed, const PerfRecordView& record) {
  FieldReader in(record.body, session_.big);
  in.Skip(8);
  const int64_t tid = in.I32();
  if (in.failed() || tid <= 0 || !timed) return;
  threads_.Erase(tid);
  assembler_.Exit(time_ns, tid);
}

void PerfDataFacts::Ksymbol(const PerfRecordView& record) {
  FieldReader in(record.body, session_.big);
  const uint64_t start = in.U64();
  const uint32_t size = in.U32();
  in.Skip(2);
  const bool gone = (in.U16() & kKsymbolUnregister) != 0;
  const std::string_view name = in.CString();
  if (!in.failed()) stacks_.KernelFunction(start, gone ? 0 : size, name);
}

void PerfDataFacts::Lost(const PerfRecordView& record) {
  FieldReader in(record.body, session_.big);
  if (record.type == kRecordLost) in.Skip(8);
  const uint64_t count = in.U64();
  if (!in.failed()) diagnostics_.Count("event lost by the recorder", count, record.offset);
}

void PerfDataFacts::Belongs(int64_t pid, int64_t tid) {
  if (pid <= 0 || tid <= 0) return;
  Known& known = *threads_.Insert(tid).first;
  if (known.pid == pid) return;
  known.pid = pid;
  assembler_.Name(pid, tid, {});
}

// Names are in every switch; only a changed one is passed on.
void PerfDataFacts::Name(int64_t tid, std::string_view name) {
  if (tid <= 0 || name.empty()) return;
  Known& known = *threads_.Insert(tid).first;
  const size_t hash = std::hash<std::string_view>()(name);
  if (known.name_hash == hash) return;
  known.name_hash = hash;
  known.comm = {};
  assembler_.Name(known.pid, tid, name);
  if (IsKernelThreadName(name)) assembler_.Kind(tid, trace::ThreadKind::kKernel);
}

// The kernel's arrays are compared whole before anybody looks for their end.
void PerfDataFacts::NameOf(int64_t tid, const RecordView& view, const EventField* comm) {
  if (tid <= 0) return;
  const Known& known = *threads_.Insert(tid).first;
  const std::string_view array = view.Array(comm);
  if (array.size() != known.comm.size()) return Name(tid, view.Text(comm));
  if (std::memcmp(array.data(), known.comm.data(), array.size()) == 0) return;
  Name(tid, view.Text(comm));
  std::memcpy(threads_.Insert(tid).first->comm.data(), array.data(), array.size());
}

Status PerfDataFacts::Finish() {
  stacks_.Finish();
  CULPRIT_TRY(calls_.Finish(last_probe_ns_));
  for (size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].unused == 0 || events_[i].kind == Kind::kNone) continue;
    const PerfAttr& attr = session_.attrs.all()[i];
    const bool unknown = attr.type == PerfAttr::kTracepoint && session_.formats.empty();
    diagnostics_.Count(unknown ? "sample of a tracepoint whose format is not in the file"
                               : "sample of an event that is not used",
                       events_[i].unused);
  }
  return {};
}

}  // namespace culprit::import_
