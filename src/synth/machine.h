// SPDX-License-Identifier: Apache-2.0
//
// Machine: a small operating system on a few cores, simulated event by event
// in integer nanoseconds. Threads perform the ops of their roles (op.h);
// locks hand over in order of arrival, queues carry messages, disks serve one
// request at a time. The scheduler has four priorities, time slices and
// preemption at wake-up by a higher priority; getting onto a core takes a small
// random time. Whatever happens is reported to the Timeline as it happens.
//
// Same roles, same seed: same run. Pending events are ordered by time, then by
// the order in which they were scheduled. One thread; cost is a few heap
// operations per context switch.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "synth/op.h"
#include "synth/random.h"
#include "synth/timeline.h"
#include "synth/world.h"

namespace culprit::synth {

inline constexpr size_t kMaxCores = 16;

enum class Priority : uint8_t { kLow = 0, kNormal = 1, kForeground = 2, kHigh = 3 };
inline constexpr size_t kPriorities = 4;

struct MachineOptions {
  size_t cores = 4;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t sample_period_ns = 1'000'000;
  int64_t slice_ns = 12'000'000;
  bool syscall_stacks = true;
};

class Machine {
 public:
  Machine(const World& world, EventSink& sink, const MachineOptions& options, Random random);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  uint32_t AddProcess(std::string_view name, bool started_during_trace = false);
  uint32_t AddLock();
  uint32_t AddQueue();
  uint32_t AddDisk(std::string_view name);
  uint32_t AddScenario(std::string_view name);

  struct ThreadSpec {
    uint32_t process = 0;
    std::string_view name;
    trace::ThreadKind kind = trace::ThreadKind::kUser;
    Priority priority = Priority::kNormal;
    Role* role = nullptr;  // outlives the machine
  };
  // A thread that was blocked in `stack` when the trace began and that a timer
  // wakes after `delay_ns`.
  ThreadIndex AddThread(const ThreadSpec& spec, WorldStack stack, int64_t delay_ns);
  // A thread that starts now, on a thread id that may have been used before.
  ThreadIndex StartThread(const ThreadSpec& spec);

  // Simulates the whole trace and closes what is still open. Call once.
  void Run();

  int64_t now_ns() const { return now_ns_; }
  int64_t end_ns() const { return options_.end_ns; }
  Random& random() { return random_; }
  const Message& MessageOf(ThreadIndex thread) const { return threads_[thread].message; }
  size_t QueueLength(uint32_t queue) const { return queues_[queue].messages.size(); }
  const Timeline& timeline() const { return timeline_; }
  // Time the disk was really busy, by the machine's own account.
  int64_t DiskBusyNs(uint32_t disk) const { return disks_[disk].busy_ns; }

 private:
  enum class State : uint8_t { kReady, kRunning, kWaiting, kExited };

  struct SimThread {
    Role* role = nullptr;
    std::vector<Op> script;
    size_t next = 0;
    Priority priority = Priority::kNormal;
    State state = State::kWaiting;
    uint16_t cpu = 0;
    bool op_started = false;
    bool replied = false;
    bool preempted = false;
    bool awaits_reply = false;
    uint32_t instance = kNoInstance;
    int64_t op_left_ns = 0;
    int64_t op_begin_ns = 0;
    int64_t tile_begin_ns = 0;  // of the wait or ready that is going on
    Timeline::Activity blocked;
    Message message;
    bool in_syscall = false;
    Op syscall;
    int64_t syscall_begin_ns = 0;
    std::array<ThreadIndex, kMaxCores> holders = {};
  };

  struct Core {
    ThreadIndex thread = kNoThread;    // on it
    ThreadIndex incoming = kNoThread;  // chosen, not yet switched in
    uint32_t generation = 0;           // pending events of older ones are void
    bool computing = false;
    bool preempt = false;  // a better thread woke while this core was executing
    int64_t segment_begin_ns = 0;
    int64_t slice_end_ns = 0;
    Timeline::Activity activity;
  };

  struct Lock {
    ThreadIndex owner = kNoThread;
    std::deque<ThreadIndex> waiters;
  };

  struct Queue {
    std::deque<Message> messages;
    std::deque<ThreadIndex> takers;
  };

  struct Request {
    ThreadIndex requester = kNoThread;
    bool wakes = true;
    WorldStack stack = kNoStack;
    int64_t bytes = 0;
    int64_t service_ns = 0;
  };

  struct Disk {
    ThreadIndex device = kNoThread;
    std::deque<Request> requests;  // the first one is in service when `busy`
    bool busy = false;
    bool start_pending = false;
    int64_t service_begin_ns = 0;
    int64_t paused_until_ns = 0;
    int64_t busy_ns = 0;
  };

  enum class PendingType : uint8_t {
    kComputed,
    kSwitchIn,
    kTimer,
    kInput,
    kDisk,
    kDiskStart,
    kCue
  };
  struct Pending {
    int64_t time_ns = 0;
    uint64_t sequence = 0;
    PendingType type = PendingType::kComputed;
    uint32_t target = 0;
    uint32_t generation = 0;
    int64_t value = 0;

    // For a heap with the earliest on top.
    bool operator<(const Pending& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : sequence > other.sequence;
    }
  };
  enum class Outcome { kDone, kTakesTime, kBlocked };

  // machine.cc: time and the scheduler.
  void Schedule(int64_t time_ns, PendingType type, uint32_t target, uint32_t generation = 0,
                int64_t value = 0);
  void Handle(const Pending& pending);
  void MakeReady(ThreadIndex thread, bool preempted);
  void Reserve(uint16_t cpu, ThreadIndex thread);
  void DispatchNext(uint16_t cpu);
  void SwitchIn(uint16_t cpu);
  void LeaveCore(uint16_t cpu);
  void Preempt(uint16_t cpu);
  bool HasRival(Priority priority) const;
  void StartComputing(uint16_t cpu, int64_t dur_ns, const Timeline::Activity& activity);
  void CloseSegment(uint16_t cpu);
  void Close();
  void CloseThread(ThreadIndex thread);
  ThreadIndex NewThread(const ThreadSpec& spec, bool during_trace);
  ThreadIndex AddDevice(std::string_view name);

  // machine_ops.cc: what ops do.
  void Execute(uint16_t cpu);
  Outcome Perform(uint16_t cpu, ThreadIndex self, const Op& op);
  Outcome Block(uint16_t cpu, ThreadIndex self, const Op& op);
  Outcome Spend(uint16_t cpu, ThreadIndex self, const Op& op);
  Outcome Acquire(uint16_t cpu, ThreadIndex self, const Op& op);
  void Release(uint16_t cpu, ThreadIndex self, const Op& op);
  Outcome Take(uint16_t cpu, ThreadIndex self, const Op& op);
  void Deliver(uint32_t queue, const Message& message, ThreadIndex waker, WorldStack stack,
               uint16_t cpu);
  void Reply(uint16_t cpu, ThreadIndex self, const Op& op);
  void CutShortForReply(ThreadIndex target, ThreadIndex replier, const Op& op, uint16_t cpu);
  void Submit(ThreadIndex self, const Op& op);
  void StartService(uint32_t disk);
  void CompleteService(uint32_t disk);
  void BeginSyscall(ThreadIndex self, const Op& op);
  void EndSyscall(uint16_t cpu, ThreadIndex self, int64_t result);
  void Exit(uint16_t cpu, ThreadIndex self);
  void Wake(ThreadIndex thread, ThreadIndex waker, WorldStack stack, uint16_t cpu);

  const World& world_;
  EventSink& sink_;
  MachineOptions options_;
  Random random_;
  Timeline timeline_;
  int64_t now_ns_ = 0;
  uint64_t sequence_ = 0;
  std::vector<Pending> pending_;  // a binary heap, earliest first
  std::deque<SimThread> threads_;
  std::vector<Core> cores_;
  std::vector<Lock> locks_;
  std::vector<Queue> queues_;
  std::vector<Disk> disks_;
  std::vector<std::string> scenarios_;
  std::array<std::deque<ThreadIndex>, kPriorities> ready_;
  uint16_t executing_ = UINT16_MAX;  // the core whose thread performs an op now
  ThreadIndex timer_ = kNoThread;
  ThreadIndex input_ = kNoThread;
  std::deque<int64_t> free_tids_;
  int64_t next_tid_ = 0;
};

}  // namespace culprit::synth
