// SPDX-License-Identifier: Apache-2.0
//
// EtlStackTable: the stacks of an ETW recording, found by thread and time. A
// stack is recorded after the event it belongs to, in up to two parts: the
// kernel's at once, the user's when the thread returns to user mode, which for a
// thread that waits may be seconds later. Recent systems record each stack once
// and refer to it by a key; what the key means stands still further on. So all
// of them are collected before the first event is looked at.
//
// The stack at a context switch is the one of the thread switched *in*: where
// it had waited. Who wants the stack of a switch-out asks for the next switch-in.
//
// Memory: 16 bytes a walk and a switch (kMaxRows, references to keys 40 bytes
// until Finish), and each distinct part once (kMaxAddresses). Beyond, stacks are
// left out and counted. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"

namespace culprit::import_ {

// Parts of a stack by number; kNone: not recorded.
struct EtlStack {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t kernel = kNone;
  uint32_t user = kNone;

  bool empty() const { return kernel == kNone && user == kNone; }
};

class EtlStackTable {
 public:
  static constexpr size_t kMaxRows = size_t{1} << 25;
  static constexpr size_t kMaxAddresses = size_t{1} << 25;

  void AddSwitchIn(uint32_t tid, uint64_t time);
  // Addresses leaf first; `user`: the leaf is user code. `event_time` is the
  // time of the event it belongs to.
  void AddWalk(uint32_t tid, uint64_t event_time, bool user, std::span<const uint64_t> addresses);
  // The same by key, recorded at `time`.
  void AddReference(uint32_t tid, uint64_t event_time, bool user, uint64_t key, uint64_t time);
  void DefineKey(uint64_t key, uint64_t time, std::span<const uint64_t> addresses);
  // After the last of those, before the first of these.
  void Finish(Diagnostics& diagnostics);

  EtlStack Find(uint32_t tid, uint64_t event_time) const;
  // Where a thread was that left its CPU at `time`: the stack at its next
  // switch-in.
  EtlStack FindSwitchedOut(uint32_t tid, uint64_t time) const;
  std::span<const uint64_t> Addresses(uint32_t part) const;
  // Whether any stack was recorded.
  bool empty() const { return walks_ == 0; }

 private:
  static constexpr uint32_t kSwitchIn = UINT32_MAX;
  static constexpr uint32_t kUserPart = 1u << 31;

  // Sorted by thread, then time; the kernel's part before the user's, both
  // before the switch itself.
  struct Row {
    uint64_t time;
    uint32_t tid;
    uint32_t part;
  };
  struct Reference {
    uint64_t event_time;
    uint64_t time;
    uint64_t key;
    uint32_t tid;
    bool user;
  };
  struct Definition {
    uint64_t key;
    uint64_t time;
    uint32_t part;
  };
  struct Part {
    size_t begin;
    uint32_t size;
  };

  bool HasRoom();
  uint32_t PartOf(std::span<const uint64_t> addresses);
  void ResolveKeys(Diagnostics& diagnostics);
  EtlStack At(size_t row) const;
  size_t LowerBound(uint32_t tid, uint64_t time) const;

  std::vector<Row> rows_;
  std::vector<Reference> references_;
  std::vector<Definition> definitions_;
  std::vector<uint64_t> addresses_;
  std::vector<Part> parts_;
  std::unordered_map<uint64_t, uint32_t> part_numbers_;  // by hash
  uint64_t walks_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace culprit::import_
