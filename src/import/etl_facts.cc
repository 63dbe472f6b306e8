// SPDX-License-Identifier: Apache-2.0
#include "import/etl_facts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>

namespace culprit::import_ {
namespace {

using assemble::kNoTid;

constexpr uint32_t kEtlSystemPid = 4;
constexpr uint8_t kEtlReadiedByDpc = 1;

// Of KTHREAD_STATE.
constexpr uint8_t kEtlStateReady = 1;
constexpr uint8_t kEtlStateRunning = 2;
constexpr uint8_t kEtlStateStandby = 3;
constexpr uint8_t kEtlStateTerminated = 4;
constexpr uint8_t kEtlStateDeferredReady = 7;

// Of KWAIT_REASON: asleep for a time.
bool IsEtlSleep(uint8_t reason) { return reason == 4 || reason == 11; }

bool IsEtlRunnable(uint8_t state) {
  return state == kEtlStateReady || state == kEtlStateRunning || state == kEtlStateStandby ||
         state == kEtlStateDeferredReady;
}

}  // namespace

EtlFacts::EtlFacts(const EtlHeader& header, const EtlSurvey& survey, const ImportOptions& options,
                   trace::TraceWriter& writer, assemble::Assembler& assembler,
                   Diagnostics& diagnostics)
    : header_(header),
      survey_(survey),
      writer_(writer),
      assembler_(assembler),
      diagnostics_(diagnostics),
      frames_(survey, header.pointer_bytes, options.symbols ? options.sysroot : std::string(),
              writer.dictionary()),
      timer_samples_(survey.samples != 0 || survey.cycle_samples == 0) {
  for (size_t i = 0; i < survey.requests.size(); ++i) {
    if (survey.requests[i].finished) ends_.push_back(i);
  }
  std::sort(ends_.begin(), ends_.end(), [&](size_t a, size_t b) {
    return std::tie(survey.requests[a].end, a) < std::tie(survey.requests[b].end, b);
  });
}

void EtlFacts::Begin() {
  BeginProcesses();
  BeginThreads();
  BeginImages();
}

// The assembler keeps processes by an id that is never used twice; the row gets
// the real one.
void EtlFacts::NewProcess(uint32_t pid, uint64_t time) {
  LiveProcess& process = processes_[pid];
  if (process.thread.valid()) past_.push_back(process);
  process = {};
  process.key = int64_t{pid} + (generations_++ << 32);
  trace::Dictionary& dictionary = writer_.dictionary();
  process.id = trace::ProcessId(dictionary.processes().size());
  assembler_.ProcessName(process.key, {});
  dictionary.process(process.id).pid = pid;
  if (time != 0) dictionary.process(process.id).start_ns = header_.ToNs(time);
}

EtlFacts::LiveProcess& EtlFacts::Process(uint32_t pid) {
  if (!processes_.contains(pid)) NewProcess(pid, 0);
  return processes_[pid];
}

void EtlFacts::NameProcess(const EtlProcessRow& row) {
  LiveProcess& process = Process(row.pid);
  const std::string_view name = survey_.strings.Get(row.name);
  if (!name.empty()) process.name = row.name;
  assembler_.ProcessName(process.key, name, survey_.strings.Get(row.command_line));
}

void EtlFacts::BeginProcesses() {
  std::unordered_set<uint32_t> seen;
  for (const EtlProcessRow& row : survey_.processes) {
    if (seen.insert(row.pid).second && row.life != EtlLife::kStart) NameProcess(row);
  }
}

// A thread without a name is called after its process, as threads elsewhere are.
void EtlFacts::Attach(const EtlThreadRow& row) {
  owners_[row.tid] = row.pid;
  LiveProcess& process = Process(row.pid);
  const StringId name = row.name.valid() ? row.name : process.name;
  assembler_.Name(process.key, row.tid, survey_.strings.Get(name));
  if (!process.thread.valid()) process.thread = assembler_.ThreadOf(row.tid);
  if (row.pid == kEtlSystemPid) assembler_.Kind(row.tid, trace::ThreadKind::kKernel);
}

void EtlFacts::BeginThreads() {
  std::unordered_set<uint32_t> seen;
  for (const EtlThreadRow& row : survey_.threads) {
    if (seen.insert(row.tid).second && row.life != EtlLife::kStart) Attach(row);
  }
}

// Listed or unloaded images whose load was not seen were there from the
// beginning, or from the beginning of their process.
void EtlFacts::BeginImages() {
  std::unordered_map<uint32_t, uint64_t> started;  // the first start of a pid
  for (const EtlProcessRow& row : survey_.processes) {
    if (row.life == EtlLife::kStart) started.try_emplace(row.pid, row.time);
  }
  std::set<std::tuple<uint32_t, uint64_t>> seen;
  for (const EtlImageRow& row : survey_.images) {
    if (!seen.insert({row.pid, row.base}).second || row.life == EtlLife::kStart) continue;
    const auto start = started.find(row.pid);
    if (start != started.end() && start->second <= row.time) {
      late_images_[row.pid].push_back(row);
    } else {
      frames_.Load(row);
    }
  }
}

void EtlFacts::Tell(const EtlProcessRow& row) {
  switch (row.life) {
    case EtlLife::kStart:
      NewProcess(row.pid, row.time);
      frames_.Forget(row.pid);
      NameProcess(row);
      for (const EtlImageRow& image : late_images_[row.pid]) frames_.Load(image);
      return;
    case EtlLife::kEnd:
      writer_.dictionary().process(Process(row.pid).id).end_ns = header_.ToNs(row.time);
      return;
    case EtlLife::kListed:
      return;
  }
}

void EtlFacts::Tell(const EtlThreadRow& row) {
  const int64_t time_ns = header_.ToNs(row.time);
  switch (row.life) {
    case EtlLife::kStart:
      assembler_.Fork(time_ns, kNoTid, Process(row.pid).key, row.tid);
      Attach(row);
      return;
    case EtlLife::kEnd:
      assembler_.Exit(time_ns, row.tid);
      return;
    case EtlLife::kListed:
      if (row.name.valid() && PidOf(row.tid) == int64_t{row.pid}) Attach(row);
      return;
  }
}

void EtlFacts::Tell(const EtlImageRow& row) {
  // An image that is gone is kept until another takes its place: stacks of
  // before may still be told.
  if (row.life == EtlLife::kStart) frames_.Load(row);
}

Status EtlFacts::Issue(const EtlDiskRequest& request, size_t number) {
  const bool known_disk = request.disk != EtlDiskRequest::kUnknownDisk;
  const std::string device = known_disk ? std::to_string(request.disk) : "unknown";
  assemble::BlockFact fact{.time_ns = header_.ToNs(request.start),
                           .device = device,
                           .sector = number,
                           .bytes = request.bytes,
                           .operation = request.operation};
  if (request.tid != kEtlNoId) fact.tid = request.tid;
  if (request.has_init && request.tid != kEtlNoId) {
    fact.stack = frames_.Stack(PidOf(request.tid), survey_.stacks.Find(request.tid, request.start));
  }
  return assembler_.BlockIssue(fact);
}

Status EtlFacts::Complete(const EtlDiskRequest& request, size_t number) {
  const std::string device = std::to_string(request.disk);
  return assembler_.BlockComplete({.time_ns = header_.ToNs(request.end),
                                   .device = device,
                                   .sector = number,
                                   .bytes = request.bytes,
                                   .operation = request.operation});
}

Status EtlFacts::CatchUp(uint64_t time) {
  constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  const auto time_of = [](const auto& rows, size_t next) {
    return next < rows.size() ? rows[next].time : kNever;
  };
  for (;;) {
    const uint64_t process = time_of(survey_.processes, next_process_);
    const uint64_t thread = time_of(survey_.threads, next_thread_);
    const uint64_t image = time_of(survey_.images, next_image_);
    const auto& requests = survey_.requests;
    const uint64_t start = next_start_ < requests.size() ? requests[next_start_].start : kNever;
    const uint64_t end = next_end_ < ends_.size() ? requests[ends_[next_end_]].end : kNever;
    const uint64_t first = std::min({process, thread, image, start, end});
    if (first > time || first == kNever) return {};
    if (first == process) {
      Tell(survey_.processes[next_process_++]);
    } else if (first == image) {
      Tell(survey_.images[next_image_++]);
    } else if (first == thread) {
      Tell(survey_.threads[next_thread_++]);
    } else if (first == start) {
      CULPRIT_TRY(Issue(requests[next_start_], next_start_));
      ++next_start_;
    } else {
      const size_t number = ends_[next_end_++];
      CULPRIT_TRY(Complete(requests[number], number));
    }
  }
}

int64_t EtlFacts::PidOf(uint32_t tid) const {
  const auto it = owners_.find(tid);
  return it == owners_.end() ? EtlFrames::kNoProcess : int64_t{it->second};
}

Status EtlFacts::Switch(const EtlEvent& event, uint64_t offset) {
  EtlFields fields(event);
  const uint32_t next = fields.U32();
  const uint32_t prev = fields.U32();
  fields.Skip(4);  // priorities, idle state, spare
  const uint8_t reason = fields.U8();
  fields.U8();
  const uint8_t state = fields.U8();
  if (fields.failed()) {
    diagnostics_.Count("kernel event too short for its fields", 1, offset);
    return {};
  }
  if (event.cpu >= running_.size()) running_.resize(event.cpu + size_t{1}, kEtlNoId);
  running_[event.cpu] = next;
  assemble::SwitchFact fact{.time_ns = header_.ToNs(event.time),
                            .cpu = event.cpu,
                            .prev_tid = prev,
                            .next_tid = next,
                            .prev_runnable = IsEtlRunnable(state),
                            .prev_exiting = state == kEtlStateTerminated};
  if (prev != 0 && prev != next) {
    if (IsEtlSleep(reason) && !fact.prev_runnable) {
      asleep_.insert(prev);
    } else {
      asleep_.erase(prev);
    }
    fact.prev_stack = frames_.Stack(PidOf(prev), survey_.stacks.FindSwitchedOut(prev, event.time));
  }
  return assembler_.Switch(fact);
}

Status EtlFacts::Ready(const EtlEvent& event, uint64_t offset) {
  EtlFields fields(event);
  const uint32_t wakee = fields.U32();
  fields.Skip(2);
  const uint8_t flags = fields.U8();
  if (fields.failed()) {
    diagnostics_.Count("kernel event too short for its fields", 1, offset);
    return {};
  }
  uint32_t waker = event.tid;
  if (waker == kEtlNoId && event.cpu < running_.size()) waker = running_[event.cpu];
  assemble::WakingFact fact{
      .time_ns = header_.ToNs(event.time), .cpu = event.cpu, .wakee_tid = wakee};
  EtlStack stack;
  if (waker != kEtlNoId) {
    fact.waker_tid = waker;
    stack = survey_.stacks.Find(waker, event.time);
  }
  if ((flags & kEtlReadiedByDpc) != 0 || waker == 0) {
    fact.context = assemble::WakeContext::kInterrupt;
    // Who slept for a time was woken by the clock, whatever that interrupted.
    fact.device = asleep_.contains(wakee) ? "timer" : frames_.Device(stack);
    fact.stack = frames_.KernelStack(stack);
  } else {
    fact.context = assemble::WakeContext::kThread;
    if (waker != kEtlNoId) fact.stack = frames_.Stack(PidOf(waker), stack);
  }
  return assembler_.Waking(fact);
}

Status EtlFacts::Sample(const EtlEvent& event, uint64_t offset) {
  EtlFields fields(event);
  const uint64_t address = fields.Pointer();
  const uint32_t tid = fields.U32();
  const uint16_t source = fields.U16();
  if (fields.failed()) {
    diagnostics_.Count("kernel event too short for its fields", 1, offset);
    return {};
  }
  const bool timer = event.code == kEtlSample;
  if (timer != timer_samples_ || (!timer && source != kEtlCycleSource)) {
    ++other_counters_;
    return {};
  }
  assemble::SampleFact fact{.time_ns = header_.ToNs(event.time), .cpu = event.cpu, .tid = tid};
  if (tid != 0) {
    const EtlStack stack = survey_.stacks.Find(tid, event.time);
    const int64_t pid = PidOf(tid);
    fact.stack = stack.empty() ? frames_.Leaf(pid, address) : frames_.Stack(pid, stack);
  }
  return assembler_.Sample(fact);
}

Status EtlFacts::Feed(const EtlEvent& event, uint64_t offset) {
  CULPRIT_TRY(CatchUp(event.time));
  switch (event.code) {
    case kEtlSwitch:
      return Switch(event, offset);
    case kEtlReadyThread:
      return Ready(event, offset);
    default:
      return Sample(event, offset);
  }
}

Status EtlFacts::Finish() {
  CULPRIT_TRY(CatchUp(std::numeric_limits<uint64_t>::max()));
  if (other_counters_ != 0) {
    diagnostics_.Count("sample of a counter that is no clock, left out", other_counters_);
  }
  if (frames_.left_out() != 0) {
    diagnostics_.Count("image beyond what is kept in memory", frames_.left_out());
  }
  if (frames_.other_builds() != 0) {
    diagnostics_.Count("image file of another build, not used", frames_.other_builds());
  }
  return {};
}

Status EtlFacts::Mark(trace::ThreadId thread, int64_t time_ns, StringId name, uint8_t flags) {
  return writer_.Add({.time_ns = time_ns,
                      .thread = thread,
                      .kind = trace::EventKind::kMarker,
                      .flags = flags,
                      .arg0 = name.value});
}

Status EtlFacts::MarkProcesses() {
  for (const auto& [pid, process] : processes_) past_.push_back(process);
  std::sort(past_.begin(), past_.end(),
            [](const LiveProcess& a, const LiveProcess& b) { return a.id < b.id; });
  trace::Dictionary& dictionary = writer_.dictionary();
  const int64_t begin_ns = writer_.metadata().begin_ns;
  const int64_t end_ns = writer_.metadata().end_ns;
  for (const LiveProcess& process : past_) {
    const trace::Process row = dictionary.processes()[process.id.value];
    const bool started = row.start_ns != trace::kNoTime;
    const bool ended = row.end_ns != trace::kNoTime;
    if (!process.thread.valid() || (!started && !ended)) continue;
    const StringId name = dictionary.Intern("process " + std::string(dictionary.Text(row.name)));
    const int64_t from_ns = started ? std::clamp(row.start_ns, begin_ns, end_ns) : begin_ns;
    CULPRIT_TRY(Mark(process.thread, from_ns, name, trace::kBegin));
    if (!ended) continue;
    const int64_t to_ns = std::clamp(row.end_ns, from_ns, end_ns);
    CULPRIT_TRY(Mark(process.thread, to_ns, name, trace::kEnd));
  }
  past_ = {};
  return {};
}

}  // namespace culprit::import_
