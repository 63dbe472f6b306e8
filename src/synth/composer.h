// SPDX-License-Identifier: Apache-2.0
//
// Composer: writes ops into a script in the words of the simulation. A thin,
// stateless front of a vector of ops; it owns nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/behaviour.h"
#include "synth/op.h"

namespace culprit::synth {

class Composer {
 public:
  explicit Composer(std::vector<Op>& script) : script_(script) {}

  void Compute(WorldStack stack, int64_t dur_ns, Plant plant = kOrdinary) {
    Add(OpType::kCompute, 0, stack, 0, dur_ns, plant);
  }
  void Acquire(uint32_t lock, WorldStack stack, Plant plant = kOrdinary) {
    Add(OpType::kAcquire, lock, stack, 0, 0, plant);
  }
  void Release(uint32_t lock, WorldStack stack) { Add(OpType::kRelease, lock, stack, 0, 0); }
  void Post(uint32_t queue, int64_t what, WorldStack stack) {
    Add(OpType::kPost, queue, stack, what, 0);
  }
  // Sends, computes for `between_ns`, then waits for the reply.
  void Request(uint32_t queue, int64_t what, WorldStack send, int64_t between_ns, WorldStack wait) {
    Add(OpType::kRequest, queue, send, what, 0);
    if (between_ns > 0) Compute(send, between_ns);
    Add(OpType::kWaitReply, 0, wait, 0, 0);
  }
  void Reply(ThreadIndex to, WorldStack stack) {
    if (to != kNoThread) Add(OpType::kReply, to, stack, 0, 0);
  }
  void Take(uint32_t queue, WorldStack stack) { Add(OpType::kTake, queue, stack, 0, 0); }
  void DiskRead(uint32_t disk, WorldStack stack, int64_t service_ns, int64_t bytes,
                Plant plant = kOrdinary) {
    Add(OpType::kDiskRead, disk, stack, bytes, service_ns, plant);
  }
  void DiskWrite(uint32_t disk, WorldStack stack, int64_t service_ns, int64_t bytes) {
    Add(OpType::kDiskWrite, disk, stack, bytes, service_ns);
  }
  void PauseDisk(uint32_t disk, int64_t dur_ns) {
    Add(OpType::kPauseDisk, disk, kNoStack, 0, dur_ns);
  }
  void Sleep(WorldStack stack, int64_t dur_ns, Plant plant = kOrdinary) {
    Add(OpType::kSleep, 0, stack, 0, dur_ns, plant);
  }
  void WaitInput(WorldStack stack, int64_t dur_ns) {
    Add(OpType::kWaitInput, 0, stack, 0, dur_ns, kUserInput);
  }
  void Syscall(uint32_t number, int64_t result, WorldStack stack, int64_t dur_ns,
               Plant plant = kOrdinary) {
    Add(OpType::kSyscall, number, stack, result, dur_ns, plant);
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
