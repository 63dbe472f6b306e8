// SPDX-License-Identifier: Apache-2.0
//
// Composer: writes ops into a script in the words of the simulation. A thin,
// stateless front of a vector of ops; it owns nothing.
//
// What is mostly chosen by chance is given as a struct: {stack, duration}. Between braces
// choices are made from left to right; of a function's arguments each compiler has an order of
// its own, and a corpus would depend on it.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/behaviour.h"
#include "synth/op.h"

namespace culprit::synth {

class Composer {
 public:
  struct Work {
    WorldStack stack;
    int64_t dur_ns;
    Plant plant = kOrdinary;
  };
  struct DiskUse {
    uint32_t disk;
    WorldStack stack;
    int64_t service_ns;
    int64_t bytes;
    Plant plant = kOrdinary;
  };
  struct Call {
    uint32_t number;
    int64_t result;
    WorldStack stack;
    int64_t dur_ns;
    Plant plant = kOrdinary;
  };
  // Sends, computes for `between_ns`, then waits for the reply.
  struct Exchange {
    uint32_t queue;
    int64_t what;
    WorldStack send;
    int64_t between_ns;
    WorldStack wait;
  };

  explicit Composer(std::vector<Op>& script) : script_(script) {}

  void Compute(const Work& work) {
    Add(OpType::kCompute, 0, work.stack, 0, work.dur_ns, work.plant);
  }
  void Acquire(uint32_t lock, WorldStack stack, Plant plant = kOrdinary) {
    Add(OpType::kAcquire, lock, stack, 0, 0, plant);
  }
  void Release(uint32_t lock, WorldStack stack) { Add(OpType::kRelease, lock, stack, 0, 0); }
  void Post(uint32_t queue, int64_t what, WorldStack stack) {
    Add(OpType::kPost, queue, stack, what, 0);
  }
  void Request(const Exchange& exchange) {
    Add(OpType::kRequest, exchange.queue, exchange.send, exchange.what, 0);
    if (exchange.between_ns > 0) Compute({exchange.send, exchange.between_ns});
    Add(OpType::kWaitReply, 0, exchange.wait, 0, 0);
  }
  void Reply(ThreadIndex to, WorldStack stack) {
    if (to != kNoThread) Add(OpType::kReply, to, stack, 0, 0);
  }
  void Take(uint32_t queue, WorldStack stack) { Add(OpType::kTake, queue, stack, 0, 0); }
  void DiskRead(const DiskUse& use) {
    Add(OpType::kDiskRead, use.disk, use.stack, use.bytes, use.service_ns, use.plant);
  }
  void DiskWrite(const DiskUse& use) {
    Add(OpType::kDiskWrite, use.disk, use.stack, use.bytes, use.service_ns, use.plant);
  }
  void PauseDisk(uint32_t disk, int64_t dur_ns) {
    Add(OpType::kPauseDisk, disk, kNoStack, 0, dur_ns);
  }
  void Sleep(const Work& work) { Add(OpType::kSleep, 0, work.stack, 0, work.dur_ns, work.plant); }
  void WaitInput(const Work& work) {
    Add(OpType::kWaitInput, 0, work.stack, 0, work.dur_ns, kUserInput);
  }
  void Syscall(const Call& call) {
    Add(OpType::kSyscall, call.number, call.stack, call.result, call.dur_ns, call.plant);
  }
  void SyscallBegin(uint32_t number, WorldStack stack) {
    Add(OpType::kSyscallBegin, number, stack, 0, 0);
  }
  void SyscallEnd(int64_t result) { Add(OpType::kSyscallEnd, 0, kNoStack, result, 0); }
  void MarkBegin(uint32_t scenario) { Add(OpType::kMarkBegin, scenario, kNoStack, 0, 0); }
  void MarkEnd() { Add(OpType::kMarkEnd, 0, kNoStack, 0, 0); }
  // The timer posts `what` to `queue` in `delay_ns`.
  void Cue(uint32_t queue, int64_t what, int64_t delay_ns) {
    Add(OpType::kCue, queue, kNoStack, what, delay_ns);
  }
  void Spawn() { Add(OpType::kSpawn, 0, kNoStack, 0, 0); }
  void Exit(WorldStack stack) { Add(OpType::kExit, 0, stack, 0, 0); }

 private:
  void Add(OpType type, uint32_t object, WorldStack stack, int64_t value, int64_t dur_ns,
           Plant plant = kOrdinary) {
    script_.push_back({.type = type,
                       .plant = plant,
                       .object = object,
                       .stack = stack,
                       .value = value,
                       .dur_ns = dur_ns});
  }

  std::vector<Op>& script_;
};

}  // namespace culprit::synth
