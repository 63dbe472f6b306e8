// SPDX-License-Identifier: Apache-2.0
//
// What each op of a script does to locks, queues, disks and threads.
#include <algorithm>

#include "base/check.h"
#include "synth/machine.h"

namespace culprit::synth {
namespace {

// The least a thread does between getting a core and blocking again.
constexpr int64_t kEntryCostNs = 700;

bool MayBlock(OpType type) {
  switch (type) {
    case OpType::kAcquire:
    case OpType::kWaitReply:
    case OpType::kTake:
    case OpType::kDiskRead:
    case OpType::kSleep:
    case OpType::kWaitInput:
    case OpType::kExit:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Performs ops until one takes time or blocks. A thread always spends some CPU
// time before it blocks, so no on-CPU span is empty.
void Machine::Execute(uint16_t cpu) {
  const ThreadIndex self = cores_[cpu].thread;
  SimThread& t = threads_[self];
  executing_ = cpu;
  for (;;) {
    if (t.next == t.script.size()) {
      t.script.clear();
      t.next = 0;
      t.role->Continue(*this, self, t.script);
      CULPRIT_CHECK(!t.script.empty());
    }
    const Op op = t.script[t.next];
    if (cores_[cpu].preempt) {
      cores_[cpu].activity = {op.stack, op.plant, t.instance};
      executing_ = UINT16_MAX;
      return Preempt(cpu);
    }
    Outcome outcome = Outcome::kTakesTime;
    if (MayBlock(op.type) && timeline_.SpanBegin(cpu) == now_ns_) {
      StartComputing(cpu, kEntryCostNs, {op.stack, op.plant, t.instance});
    } else {
      outcome = Perform(cpu, self, op);
    }
    if (outcome == Outcome::kDone) {
      ++t.next;
      continue;
    }
    executing_ = UINT16_MAX;
    if (outcome == Outcome::kBlocked) DispatchNext(cpu);
    return;
  }
}

Machine::Outcome Machine::Perform(uint16_t cpu, ThreadIndex self, const Op& op) {
  SimThread& t = threads_[self];
  switch (op.type) {
    case OpType::kCompute:
    case OpType::kSyscall:
      return Spend(cpu, self, op);
    case OpType::kAcquire:
      return Acquire(cpu, self, op);
    case OpType::kRelease:
      Release(cpu, self, op);
      return Outcome::kDone;
    case OpType::kPost:
      Deliver(op.object, {.sender = kNoThread, .what = op.value}, self, op.stack, cpu);
      return Outcome::kDone;
    case OpType::kRequest:
      t.replied = false;
      Deliver(op.object, {.sender = self, .what = op.value}, self, op.stack, cpu);
      return Outcome::kDone;
    case OpType::kReply:
      Reply(cpu, self, op);
      return Outcome::kDone;
    case OpType::kWaitReply:
      if (t.replied) return Outcome::kDone;
      t.awaits_reply = true;
      return Block(cpu, self, op);
    case OpType::kTake:
      return Take(cpu, self, op);
    case OpType::kDiskRead:
      Submit(self, op);
      return Block(cpu, self, op);
    case OpType::kDiskWrite:
      Submit(self, op);
      return Outcome::kDone;
    case OpType::kPauseDisk:
      disks_[op.object].paused_until_ns =
          std::max(disks_[op.object].paused_until_ns, now_ns_ + op.dur_ns);
      return Outcome::kDone;
    case OpType::kSleep:
      Schedule(now_ns_ + op.dur_ns, PendingType::kTimer, self);
      return Block(cpu, self, op);
    case OpType::kWaitInput:
      Schedule(now_ns_ + op.dur_ns, PendingType::kInput, self);
      return Block(cpu, self, op);
    case OpType::kSyscallBegin:
      BeginSyscall(self, op);
      return Outcome::kDone;
    case OpType::kSyscallEnd:
      EndSyscall(cpu, self, op.value);
      return Outcome::kDone;
    case OpType::kMarkBegin:
      CULPRIT_CHECK(t.instance == kNoInstance);
      t.instance = timeline_.BeginInstance(self, cpu, now_ns_, scenarios_[op.object]);
      return Outcome::kDone;
    case OpType::kMarkEnd:
      CULPRIT_CHECK(t.instance != kNoInstance);
      timeline_.EndInstance(t.instance, cpu, now_ns_);
      t.instance = kNoInstance;
      return Outcome::kDone;
    case OpType::kCue:
      Schedule(now_ns_ + op.dur_ns, PendingType::kCue, op.object, 0, op.value);
      return Outcome::kDone;
    case OpType::kSpawn:
      t.role->Spawn(*this);
      return Outcome::kDone;
    case OpType::kExit:
      Exit(cpu, self);
      return Outcome::kBlocked;
  }
  CULPRIT_CHECK(false);
}

// The op is over once the thread wakes, so `next` moves on here.
Machine::Outcome Machine::Block(uint16_t cpu, ThreadIndex self, const Op& op) {
  SimThread& t = threads_[self];
  ++t.next;
  t.state = State::kWaiting;
  t.tile_begin_ns = now_ns_;
  t.blocked = {op.stack, op.plant, t.instance};
  LeaveCore(cpu);
  return Outcome::kBlocked;
}

Machine::Outcome Machine::Spend(uint16_t cpu, ThreadIndex self, const Op& op) {
  SimThread& t = threads_[self];
  if (!t.op_started) {
    t.op_started = true;
    t.op_left_ns = op.dur_ns;
    t.op_begin_ns = now_ns_;
  }
  if (t.op_left_ns > 0) {
    StartComputing(cpu, t.op_left_ns, {op.stack, op.plant, t.instance});
    return Outcome::kTakesTime;
  }
  t.op_started = false;
  if (op.type == OpType::kSyscall) {
    timeline_.AddSyscall(self, cpu, t.op_begin_ns, now_ns_, {op.stack, op.plant, t.instance},
                         op.object, op.value, false);
  }
  return Outcome::kDone;
}

Machine::Outcome Machine::Acquire(uint16_t cpu, ThreadIndex self, const Op& op) {
  Lock& lock = locks_[op.object];
  if (lock.owner == kNoThread) {
    lock.owner = self;
    return Outcome::kDone;
  }
  CULPRIT_CHECK(lock.owner != self);
  lock.waiters.push_back(self);
  return Block(cpu, self, op);
}

void Machine::Release(uint16_t cpu, ThreadIndex self, const Op& op) {
  Lock& lock = locks_[op.object];
  CULPRIT_CHECK(lock.owner == self);
  lock.owner = kNoThread;
  if (lock.waiters.empty()) return;
  lock.owner = lock.waiters.front();
  lock.waiters.pop_front();
  Wake(lock.owner, self, op.stack, cpu);
}

Machine::Outcome Machine::Take(uint16_t cpu, ThreadIndex self, const Op& op) {
  Queue& queue = queues_[op.object];
  if (queue.messages.empty()) {
    queue.takers.push_back(self);
    return Block(cpu, self, op);
  }
  threads_[self].message = queue.messages.front();
  queue.messages.pop_front();
  return Outcome::kDone;
}

void Machine::Deliver(uint32_t queue, const Message& message, ThreadIndex waker, WorldStack stack,
                      uint16_t cpu) {
  Queue& q = queues_[queue];
  if (q.takers.empty()) {
    q.messages.push_back(message);
    return;
  }
  const ThreadIndex taker = q.takers.front();
  q.takers.pop_front();
  threads_[taker].message = message;
  Wake(taker, waker, stack, cpu);
}

void Machine::Reply(uint16_t cpu, ThreadIndex self, const Op& op) {
  const ThreadIndex target = op.object;
  SimThread& t = threads_[target];
  t.replied = true;
  if (t.state == State::kWaiting && t.awaits_reply) {
    t.awaits_reply = false;
    Wake(target, self, op.stack, cpu);
  } else if (t.state == State::kRunning && t.cpu != cpu) {
    CutShortForReply(target, self, op, cpu);
  }
}

// A reply may come while the client is still on its way into the wait. Half of
// these races are played as real ones: the client blocks and is woken at the
// same instant, which is a wait of length zero.
void Machine::CutShortForReply(ThreadIndex target, ThreadIndex replier, const Op& op,
                               uint16_t cpu) {
  SimThread& t = threads_[target];
  const uint16_t target_cpu = t.cpu;
  const bool entering = t.op_started && t.script[t.next].type == OpType::kCompute &&
                        t.next + 1 < t.script.size() &&
                        t.script[t.next + 1].type == OpType::kWaitReply;
  if (!entering || timeline_.SpanBegin(target_cpu) == now_ns_ || random_.Percent(50)) return;
  CloseSegment(target_cpu);
  t.op_started = false;
  ++t.next;
  const Op wait = t.script[t.next];
  Block(target_cpu, target, wait);
  DispatchNext(target_cpu);
  Wake(target, replier, op.stack, cpu);
}

void Machine::Submit(ThreadIndex self, const Op& op) {
  disks_[op.object].requests.push_back({.requester = self,
                                        .wakes = op.type == OpType::kDiskRead,
                                        .stack = op.stack,
                                        .bytes = op.value,
                                        .service_ns = op.dur_ns});
  StartService(op.object);
}

void Machine::StartService(uint32_t disk) {
  Disk& d = disks_[disk];
  if (d.busy || d.start_pending || d.requests.empty()) return;
  if (d.paused_until_ns > now_ns_) {
    d.start_pending = true;
    Schedule(d.paused_until_ns, PendingType::kDiskStart, disk);
    return;
  }
  d.busy = true;
  d.service_begin_ns = now_ns_;
  Schedule(now_ns_ + d.requests.front().service_ns, PendingType::kDisk, disk);
}

void Machine::CompleteService(uint32_t disk) {
  Disk& d = disks_[disk];
  const Request request = d.requests.front();
  d.requests.pop_front();
  d.busy = false;
  d.busy_ns += now_ns_ - d.service_begin_ns;
  timeline_.AddHardware(d.device, request.requester, d.service_begin_ns, now_ns_, request.stack,
                        request.bytes, !request.wakes, false);
  StartService(disk);
  if (request.wakes) Wake(request.requester, d.device, world_.disk_interrupt(), 0);
}

void Machine::BeginSyscall(ThreadIndex self, const Op& op) {
  SimThread& t = threads_[self];
  CULPRIT_CHECK(!t.in_syscall);
  t.in_syscall = true;
  t.syscall = op;
  t.syscall_begin_ns = now_ns_;
}

void Machine::EndSyscall(uint16_t cpu, ThreadIndex self, int64_t result) {
  SimThread& t = threads_[self];
  CULPRIT_CHECK(t.in_syscall);
  t.in_syscall = false;
  timeline_.AddSyscall(self, cpu, t.syscall_begin_ns, now_ns_,
                       {t.syscall.stack, t.syscall.plant, t.instance}, t.syscall.object, result,
                       false);
}

void Machine::Exit(uint16_t cpu, ThreadIndex self) {
  SimThread& t = threads_[self];
  CULPRIT_CHECK(t.instance == kNoInstance);
  t.state = State::kExited;
  trace::Dictionary& dictionary = sink_.dictionary();
  trace::Thread& row = dictionary.thread(trace::ThreadId(self));
  row.end_ns = now_ns_;
  free_tids_.push_back(row.tid);
  trace::Process& process = dictionary.process(row.process);
  if (process.start_ns != trace::kNoTime) process.end_ns = now_ns_;
  LeaveCore(cpu);
}

void Machine::Wake(ThreadIndex thread, ThreadIndex waker, WorldStack stack, uint16_t cpu) {
  SimThread& t = threads_[thread];
  CULPRIT_CHECK(t.state == State::kWaiting);
  timeline_.AddWait({.thread = thread,
                     .waker = waker,
                     .begin_ns = t.tile_begin_ns,
                     .end_ns = now_ns_,
                     .cpu = t.cpu,
                     .flags = 0,
                     .activity = t.blocked});
  timeline_.AddUnwait(now_ns_, waker, thread, stack, cpu);
  MakeReady(thread, false);
}

}  // namespace culprit::synth
