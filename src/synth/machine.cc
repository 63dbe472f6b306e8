// SPDX-License-Identifier: Apache-2.0
#include "synth/machine.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::synth {
namespace {

std::vector<int64_t> TickPhases(size_t cores, int64_t period_ns, Random& random) {
  std::vector<int64_t> phases(cores);
  for (int64_t& phase : phases) phase = random.Between(1, period_ns);
  return phases;
}

// Windows gives thread ids in steps of four; so do we.
constexpr int64_t kTidStep = 4;

}  // namespace

Machine::Machine(const World& world, EventSink& sink, const MachineOptions& options, Random random)
    : world_(world),
      sink_(sink),
      options_(options),
      random_(random),
      timeline_(world, sink,
                {.begin_ns = options.begin_ns,
                 .end_ns = options.end_ns,
                 .sample_period_ns = options.sample_period_ns,
                 .syscall_stacks = options.syscall_stacks},
                TickPhases(options.cores, options.sample_period_ns, random_)),
      now_ns_(options.begin_ns),
      cores_(options.cores) {
  CULPRIT_CHECK(options.cores >= 1 && options.cores <= kMaxCores);
  CULPRIT_CHECK(options.end_ns > options.begin_ns);
  next_tid_ = 400 + kTidStep * static_cast<int64_t>(random_.Below(400));
  timer_ = AddDevice("Timer");
  input_ = AddDevice("Input");
}

uint32_t Machine::AddProcess(std::string_view name, bool started_during_trace) {
  trace::Dictionary& dictionary = sink_.dictionary();
  trace::Process process;
  process.pid = next_tid_;
  next_tid_ += kTidStep;
  process.name = dictionary.Intern(name);
  if (started_during_trace) process.start_ns = now_ns_;
  return dictionary.AddProcess(process).value;
}

uint32_t Machine::AddLock() {
  locks_.emplace_back();
  return static_cast<uint32_t>(locks_.size() - 1);
}

uint32_t Machine::AddQueue() {
  queues_.emplace_back();
  return static_cast<uint32_t>(queues_.size() - 1);
}

uint32_t Machine::AddDisk(std::string_view name) {
  Disk disk;
  disk.device = AddDevice(name);
  disks_.push_back(std::move(disk));
  return static_cast<uint32_t>(disks_.size() - 1);
}

uint32_t Machine::AddScenario(std::string_view name) {
  scenarios_.emplace_back(name);
  return static_cast<uint32_t>(scenarios_.size() - 1);
}

ThreadIndex Machine::AddDevice(std::string_view name) {
  trace::Thread thread;
  thread.name = sink_.dictionary().Intern(name);
  thread.kind = trace::ThreadKind::kDevice;
  sink_.dictionary().AddThread(thread);
  threads_.emplace_back();
  threads_.back().state = State::kExited;
  return static_cast<ThreadIndex>(threads_.size() - 1);
}

ThreadIndex Machine::NewThread(const ThreadSpec& spec, bool during_trace) {
  trace::Dictionary& dictionary = sink_.dictionary();
  trace::Thread row;
  if (during_trace && !free_tids_.empty()) {
    row.tid = free_tids_.front();
    free_tids_.pop_front();
  } else {
    row.tid = next_tid_;
    next_tid_ += kTidStep;
  }
  row.process = trace::ProcessId(spec.process);
  row.name = dictionary.Intern(spec.name);
  row.kind = spec.kind;
  if (during_trace) row.start_ns = now_ns_;
  const ThreadIndex index = dictionary.AddThread(row).value;
  threads_.emplace_back();
  CULPRIT_CHECK(index == threads_.size() - 1);
  SimThread& thread = threads_.back();
  thread.role = spec.role;
  thread.priority = spec.priority;
  thread.tile_begin_ns = now_ns_;
  thread.cpu = static_cast<uint16_t>(index % cores_.size());
  return index;
}

ThreadIndex Machine::AddThread(const ThreadSpec& spec, WorldStack stack, int64_t delay_ns) {
  const ThreadIndex index = NewThread(spec, false);
  threads_[index].blocked.stack = stack;
  Schedule(now_ns_ + std::max<int64_t>(1, delay_ns), PendingType::kTimer, index);
  return index;
}

ThreadIndex Machine::StartThread(const ThreadSpec& spec) {
  const ThreadIndex index = NewThread(spec, true);
  MakeReady(index, false);
  return index;
}

void Machine::Schedule(int64_t time_ns, PendingType type, uint32_t target, uint32_t generation,
                       int64_t value) {
  pending_.push_back({time_ns, sequence_++, type, target, generation, value});
  std::push_heap(pending_.begin(), pending_.end());
}

void Machine::Run() {
  while (!pending_.empty() && pending_.front().time_ns < options_.end_ns) {
    std::pop_heap(pending_.begin(), pending_.end());
    const Pending pending = pending_.back();
    pending_.pop_back();
    now_ns_ = pending.time_ns;
    Handle(pending);
  }
  Close();
}

void Machine::Handle(const Pending& pending) {
  switch (pending.type) {
    case PendingType::kComputed: {
      const uint16_t cpu = static_cast<uint16_t>(pending.target);
      if (cores_[cpu].generation != pending.generation) return;
      CloseSegment(cpu);
      Execute(cpu);
      return;
    }
    case PendingType::kSwitchIn:
      SwitchIn(static_cast<uint16_t>(pending.target));
      return;
    case PendingType::kTimer:
      Wake(pending.target, timer_, world_.timer_interrupt(), threads_[pending.target].cpu);
      return;
    case PendingType::kInput:
      Wake(pending.target, input_, world_.input_interrupt(), 0);
      return;
    case PendingType::kDisk:
      CompleteService(pending.target);
      return;
    case PendingType::kDiskStart:
      disks_[pending.target].start_pending = false;
      StartService(pending.target);
      return;
    case PendingType::kCue:
      Deliver(pending.target, {.sender = kNoThread, .what = pending.value}, timer_,
              world_.timer_interrupt(), 0);
      return;
  }
}

// Finds a place for a thread that can run again: an idle core (its last one by
// preference), else the core of the least important thread that is less
// important than it, else the end of its run queue.
void Machine::MakeReady(ThreadIndex thread, bool preempted) {
  SimThread& t = threads_[thread];
  t.state = State::kReady;
  t.preempted = preempted;
  t.tile_begin_ns = now_ns_;
  for (size_t cpu = 0; cpu < cores_.size(); ++cpu) {
    const Core& core = cores_[cpu];
    t.holders[cpu] = core.thread != kNoThread ? core.thread : core.incoming;
  }
  const auto idle = [&](size_t cpu) {
    return cores_[cpu].thread == kNoThread && cores_[cpu].incoming == kNoThread;
  };
  if (idle(t.cpu)) return Reserve(t.cpu, thread);
  size_t victim = cores_.size();
  for (size_t cpu = 0; cpu < cores_.size(); ++cpu) {
    if (idle(cpu)) return Reserve(static_cast<uint16_t>(cpu), thread);
    const Core& core = cores_[cpu];
    if (core.thread == kNoThread || core.preempt) continue;
    const Priority running = threads_[core.thread].priority;
    if (running >= t.priority) continue;
    if (victim == cores_.size() || running < threads_[cores_[victim].thread].priority) victim = cpu;
  }
  // A preempted thread goes to the front: it has not had its slice.
  std::deque<ThreadIndex>& queue = ready_[static_cast<size_t>(t.priority)];
  if (preempted) {
    queue.push_front(thread);
  } else {
    queue.push_back(thread);
  }
  if (victim == cores_.size() || preempted) return;
  if (victim == executing_) {
    cores_[victim].preempt = true;  // it is in the middle of an op
  } else {
    CloseSegment(static_cast<uint16_t>(victim));
    Preempt(static_cast<uint16_t>(victim));
  }
}

void Machine::Reserve(uint16_t cpu, ThreadIndex thread) {
  cores_[cpu].incoming = thread;
  // Now and then a core was about to look for work anyway.
  const int64_t latency_ns = random_.Below(8) == 0 ? 0 : 400 + random_.Exponential(2'500);
  Schedule(now_ns_ + latency_ns, PendingType::kSwitchIn, cpu);
}

void Machine::DispatchNext(uint16_t cpu) {
  for (size_t priority = kPriorities; priority-- > 0;) {
    std::deque<ThreadIndex>& queue = ready_[priority];
    if (queue.empty()) continue;
    const ThreadIndex thread = queue.front();
    queue.pop_front();
    Reserve(cpu, thread);
    return;
  }
}

void Machine::SwitchIn(uint16_t cpu) {
  Core& core = cores_[cpu];
  const ThreadIndex thread = core.incoming;
  SimThread& t = threads_[thread];
  timeline_.AddReady({.thread = thread,
                      .holder = t.holders[cpu] == thread ? kNoThread : t.holders[cpu],
                      .begin_ns = t.tile_begin_ns,
                      .end_ns = now_ns_,
                      .cpu = cpu,
                      .preempted = t.preempted,
                      .stack = t.blocked.stack});
  timeline_.SwitchIn(cpu, thread, now_ns_);
  core.incoming = kNoThread;
  core.thread = thread;
  core.preempt = false;
  core.computing = false;
  core.slice_end_ns = now_ns_ + options_.slice_ns;
  t.state = State::kRunning;
  t.cpu = cpu;
  Execute(cpu);
}

// The thread of `cpu` stops running; its segment is closed already.
void Machine::LeaveCore(uint16_t cpu) {
  Core& core = cores_[cpu];
  timeline_.SwitchOut(cpu, now_ns_);
  ++core.generation;
  core.thread = kNoThread;
  core.preempt = false;
}

void Machine::Preempt(uint16_t cpu) {
  Core& core = cores_[cpu];
  const ThreadIndex thread = core.thread;
  threads_[thread].blocked = core.activity;
  LeaveCore(cpu);
  DispatchNext(cpu);
  MakeReady(thread, true);
}

bool Machine::HasRival(Priority priority) const {
  for (size_t p = static_cast<size_t>(priority); p < kPriorities; ++p) {
    if (!ready_[p].empty()) return true;
  }
  return false;
}

void Machine::StartComputing(uint16_t cpu, int64_t dur_ns, const Timeline::Activity& activity) {
  Core& core = cores_[cpu];
  core.activity = activity;
  if (core.slice_end_ns <= now_ns_) {
    if (HasRival(threads_[core.thread].priority)) return Preempt(cpu);
    core.slice_end_ns = now_ns_ + options_.slice_ns;
  }
  core.computing = true;
  core.segment_begin_ns = now_ns_;
  const int64_t end_ns = std::min(now_ns_ + dur_ns, core.slice_end_ns);
  Schedule(end_ns, PendingType::kComputed, cpu, ++core.generation);
}

void Machine::CloseSegment(uint16_t cpu) {
  Core& core = cores_[cpu];
  if (!core.computing) return;
  core.computing = false;
  SimThread& t = threads_[core.thread];
  timeline_.Segment(cpu, core.segment_begin_ns, now_ns_, core.activity);
  if (t.op_started) t.op_left_ns -= now_ns_ - core.segment_begin_ns;
}

void Machine::CloseThread(ThreadIndex thread) {
  SimThread& t = threads_[thread];
  if (t.state == State::kExited) return;
  if (t.in_syscall || (t.op_started && t.script[t.next].type == OpType::kSyscall)) {
    const Op& op = t.in_syscall ? t.syscall : t.script[t.next];
    timeline_.AddSyscall(thread, t.cpu, t.in_syscall ? t.syscall_begin_ns : t.op_begin_ns, now_ns_,
                         {op.stack, op.plant, t.instance}, op.object, 0, true);
  }
  if (t.state == State::kWaiting) {
    timeline_.AddWait({.thread = thread,
                       .waker = kNoThread,
                       .begin_ns = t.tile_begin_ns,
                       .end_ns = now_ns_,
                       .cpu = t.cpu,
                       .flags = trace::kWakerUnknown,
                       .activity = t.blocked});
  } else if (t.state == State::kReady) {
    timeline_.AddReady({.thread = thread,
                        .holder = kNoThread,
                        .begin_ns = t.tile_begin_ns,
                        .end_ns = now_ns_,
                        .cpu = trace::Event::kNoCpu,
                        .preempted = t.preempted,
                        .stack = t.blocked.stack});
  }
}

void Machine::Close() {
  now_ns_ = options_.end_ns;
  const auto cores = static_cast<uint16_t>(cores_.size());
  for (uint16_t cpu = 0; cpu < cores; ++cpu) {
    if (cores_[cpu].thread == kNoThread) continue;
    CloseSegment(cpu);
    LeaveCore(cpu);
  }
  for (ThreadIndex thread = 0; thread < threads_.size(); ++thread) CloseThread(thread);
  for (Disk& disk : disks_) {
    if (!disk.busy) continue;
    const Request& request = disk.requests.front();
    timeline_.AddHardware(disk.device, request.requester, disk.service_begin_ns, now_ns_,
                          request.stack, request.bytes, !request.wakes, true);
    disk.busy_ns += now_ns_ - disk.service_begin_ns;
  }
  timeline_.Finish();
}

}  // namespace culprit::synth
