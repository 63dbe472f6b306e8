// SPDX-License-Identifier: Apache-2.0
//
// Training logs of programs that never ran, for tests: a SimulatedProcess has
// functions and threads; a SimulatedThread calls, waits, reads and wakes, and
// writes what the runtime would log (runtime/wire.h), stacks included. The test
// knows the truth because it wrote the program. Files appear with Write().
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

template <class Row>
void AppendBytes(const Row& row, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&row), sizeof(row));
}

class SimulatedProcess {
 public:
  static constexpr uint64_t kFunctionBytes = 0x1000;

  SimulatedProcess(uint32_t pid, std::string build_id = "ab01", uint64_t bias = 0x400000)
      : pid_(pid), bias_(bias), build_id_(std::move(build_id)) {}

  // The same name is the same function.
  uint32_t Function(const std::string& name) {
    const auto [found, made] = ids_.try_emplace(name, static_cast<uint32_t>(ids_.size()));
    return found->second;
  }
  static uint64_t OffsetOf(uint32_t id) { return (id + 1) * kFunctionBytes; }
  // A place in the function, as a return address.
  uint64_t AddressIn(uint32_t id, uint64_t offset) const { return bias_ + OffsetOf(id) + offset; }
  // By function id.
  std::vector<std::string> Names() const {
    std::vector<std::string> names(ids_.size());
    for (const auto& [name, id] : ids_) names[id] = name;
    return names;
  }
  uint32_t pid() const { return pid_; }
  void set_parent(uint32_t pid) { parent_pid_ = pid; }
  uint32_t parent_pid() const { return parent_pid_; }

  // modules.PID and functions.PID.
  void Write(const TestFolder& folder) const {
    const std::string suffix = "." + std::to_string(pid_);
    char line[200];
    const uint64_t end = bias_ + OffsetOf(static_cast<uint32_t>(ids_.size()) + 1);
    std::snprintf(line, sizeof(line), "0 %llx %llx %s /nowhere/bin/server\n",
                  static_cast<unsigned long long>(bias_), static_cast<unsigned long long>(end),
                  build_id_.c_str());
    folder.Write("modules" + suffix, line);
    wire::FunctionsHeader header = {};
    header.magic = wire::Magic("CGFUNC01");
    header.version = wire::kWireVersion;
    std::string bytes;
    AppendBytes(header, bytes);
    for (uint32_t id = 0; id < ids_.size(); ++id) {
      AppendBytes(wire::FunctionRecord{OffsetOf(id), 0, kFunctionBytes}, bytes);
    }
    folder.Write("functions" + suffix, bytes);
  }

 private:
  uint32_t pid_;
  uint32_t parent_pid_ = 0;
  uint64_t bias_;
  std::string build_id_;
  std::map<std::string, uint32_t> ids_;
};

class SimulatedThread {
 public:
  SimulatedThread(SimulatedProcess& process, uint32_t tid, uint64_t stack = 0x7ffc'0000'0000)
      : process_(process), tid_(tid), sp_(stack) {}

  // Enters the function with a frame of so many bytes and runs the body in it.
  template <class Body>
  void Call(const std::string& name, uint64_t frame_bytes, Body body) {
    const uint32_t id = process_.Function(name);
    Enter(id, sp_, frames_.size());
    frames_.push_back({id, sp_});
    sp_ -= frame_bytes;
    body();
    sp_ += frame_bytes;
    frames_.pop_back();
    now_ns_ += 30;
  }
  void Call(const std::string& name) {
    Call(name, 32, [] {});
  }
  // The caller's frame is replaced: the same stack pointer again.
  void TailCall(const std::string& name) {
    Enter(process_.Function(name), frames_.back().sp, frames_.size() - 1);
  }

  // A wait of the running function at its n-th call; ready 0: nothing came.
  void Wait(wire::WaitCall call, uint64_t ready, uint64_t place = 1, uint64_t object = 0,
            uint64_t flags = 0, uint64_t bytes = 0) {
    const uint64_t site = process_.AddressIn(frames_.back().id, place * 16);
    Word(wire::LogKind::kWaitEnter, static_cast<uint32_t>(call), sp_ >> 4);
    words_.insert(words_.end(), {now_ns_, object, site, flags});
    if (stacks_ && known_.insert({site, sp_}).second) WriteStack(site);
    now_ns_ += 10'000;
    Word(wire::LogKind::kWaitExit, static_cast<uint32_t>(call), ready);
    words_.insert(words_.end(), {now_ns_, ready, bytes});
  }
  void Read(uint64_t bytes, uint64_t source = 0) {
    Word(wire::LogKind::kRead, 0, bytes);
    words_.push_back(source);
  }
  void Wake(wire::WakeCall call, uint64_t object) {
    Word(wire::LogKind::kWake, static_cast<uint32_t>(call), 0);
    words_.insert(words_.end(), {now_ns_, object});
  }
  void Lose(uint64_t bytes) { Word(wire::LogKind::kLost, 0, bytes); }
  void Raw(uint64_t word) { words_.push_back(word); }
  void NoStacks() { stacks_ = false; }
  // Every entry with its time, as wire::PlanHeader::log_times has it.
  void LogTimes() { times_ = true; }
  // A detoured call of the running function: its time.
  uint64_t Place(uint64_t place = 1) {
    now_ns_ += 10;
    WriteTime();
    Word(wire::LogKind::kPlace, 0, sp_ >> 4);
    words_.push_back(process_.AddressIn(frames_.back().id, place * 16));
    return now_ns_;
  }
  void OwnWork(uint64_t dur_ns) {
    Word(wire::LogKind::kOwnWork, 0, 0);
    words_.insert(words_.end(), {now_ns_, now_ns_ + dur_ns});
    now_ns_ += dur_ns;
  }
  // Takes the time, which passes.
  uint64_t Now() { return now_ns_ += 10; }
  // The running function takes more of the stack for itself.
  void Grow(uint64_t bytes) { sp_ -= bytes; }
  // The log without its header.
  std::string Words() const {
    return {reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(uint64_t)};
  }

  void Write(const TestFolder& folder, size_t cut_bytes = 0) const {
    wire::LogHeader header = {};
    header.magic = wire::Magic("CGLOG_01");
    header.version = wire::kWireVersion;
    header.pid = process_.pid();
    header.tid = tid_;
    header.parent_pid = process_.parent_pid();
    std::string bytes;
    AppendBytes(header, bytes);
    bytes += Words();
    bytes.resize(bytes.size() - cut_bytes);
    folder.Write("log." + std::to_string(process_.pid()) + "." + std::to_string(tid_), bytes);
  }

 private:
  struct Frame {
    uint32_t id;
    uint64_t sp;
  };
  void Word(wire::LogKind kind, uint32_t a, uint64_t b) {
    words_.push_back(static_cast<uint64_t>(kind) << 60 | static_cast<uint64_t>(a) << 40 |
                     (b & 0xff'ffff'ffff));
  }
  // Called by the innermost of so many frames, which calls each function at one place.
  void Enter(uint32_t id, uint64_t sp, size_t frames) {
    if (times_) WriteTime();
    Word(wire::LogKind::kEnter, id, sp >> 4);
    words_.push_back(frames == 0 ? 0 : process_.AddressIn(frames_[frames - 1].id, 8 + 8 * id));
  }
  void WriteTime() {
    words_.push_back(static_cast<uint64_t>(wire::LogKind::kTime) << 60 | now_ns_);
  }
  void WriteStack(uint64_t site) {
    Word(wire::LogKind::kStack, static_cast<uint32_t>(frames_.size()), 0);
    for (size_t i = frames_.size(); i > 0; --i) {
      const bool innermost = i == frames_.size();
      words_.push_back(innermost ? site : process_.AddressIn(frames_[i - 1].id, 8));
      words_.push_back(frames_[i - 1].sp);
    }
  }

  SimulatedProcess& process_;
  uint32_t tid_;
  uint64_t sp_;
  uint64_t now_ns_ = 1'000'000;
  bool stacks_ = true;
  bool times_ = false;
  std::vector<Frame> frames_;
  std::set<std::pair<uint64_t, uint64_t>> known_;
  std::vector<uint64_t> words_;
};

}  // namespace culprit::guard
