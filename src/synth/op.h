// SPDX-License-Identifier: Apache-2.0
//
// Op: one step of a simulated thread's script, and Role, which writes scripts.
// A thread performs its ops in order; when they run out, its role adds more.
// Ops name locks, queues and disks by their index in the Machine and stacks by
// their index in the World. `plant` marks what belongs to a planted behaviour
// (truth.h); 0 is ordinary work. Passive data, 32 bytes an op.
#pragma once

#include <cstdint>
#include <vector>

namespace culprit::synth {

using WorldStack = uint32_t;
inline constexpr WorldStack kNoStack = UINT32_MAX;
using ThreadIndex = uint32_t;
inline constexpr ThreadIndex kNoThread = UINT32_MAX;

enum class OpType : uint8_t {
  kCompute,       // dur_ns of CPU time
  kAcquire,       // lock `object`; blocks while another thread holds it
  kRelease,       // lock `object`; hands it to the longest waiter
  kPost,          // message `value` to queue `object`; nobody answers
  kRequest,       // the same, and the sender will wait for a reply
  kReply,         // answers thread `object`
  kWaitReply,     // blocks until the reply to the last request is there
  kTake,          // blocks until queue `object` has a message
  kDiskRead,      // blocks until disk `object` served `value` bytes in dur_ns
  kDiskWrite,     // the same without blocking
  kPauseDisk,     // disk `object` starts no request for dur_ns
  kSleep,         // blocks for dur_ns; 0: the timer fires at once
  kWaitInput,     // blocks until the user acts, after dur_ns
  kSyscall,       // system call `object` takes dur_ns of CPU and returns `value`
  kSyscallBegin,  // system call `object` begins; what follows happens inside it
  kSyscallEnd,    // and returns `value`
  kMarkBegin,     // an instance of scenario `object` begins
  kMarkEnd,
  kCue,    // the timer posts message `value` to queue `object` in dur_ns
  kSpawn,  // a new thread; the role of the spawner says which
  kExit,
};

struct Op {
  OpType type = OpType::kCompute;
  uint8_t plant = 0;
  uint32_t object = 0;
  WorldStack stack = kNoStack;
  int64_t value = 0;
  int64_t dur_ns = 0;
};

// What travels through a queue.
struct Message {
  ThreadIndex sender = kNoThread;  // set when it waits for a reply
  int64_t what = 0;
};

class Machine;

// Writes the next ops of a thread. Never called from two threads at once; a
// role that serves several simulated threads keeps state per thread itself.
// Every script must contain an op that takes time.
class Role {
 public:
  virtual ~Role() = default;
  virtual void Continue(Machine& machine, ThreadIndex self, std::vector<Op>& script) = 0;
  // The thread that kSpawn of this role's thread starts.
  virtual ThreadIndex Spawn(Machine& machine) {
    static_cast<void>(machine);
    return kNoThread;
  }
};

}  // namespace culprit::synth
