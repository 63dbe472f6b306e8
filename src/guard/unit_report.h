// SPDX-License-Identifier: Apache-2.0
//
// UnitReport: one unit that took too long (or many that get nowhere), in words: what it was, how
// long it took against what it may, where its thread was. Made by the collector from the runtime's
// record and its own looks; printed, stored as a line of JSON, handed to hooks. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "guard/process_image.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

// A stack of the unit's thread and how often it was seen.
struct SeenStack {
  enum class By {
    kGuard,  // at a guarded function past the unit's deadline
    kLook,   // from outside, while the unit ran
    kEnd,    // at the unit's end: where the loop is
  };
  By by = By::kEnd;
  uint64_t seen = 1;
  bool running = true;             // else it slept in a system call
  int64_t system_call = -1;        // that it slept in
  std::vector<NamedFrame> frames;  // innermost first
};

// UnitReport::type of a spin; beside wire::kUnknown and wire::kWholeIteration.
inline constexpr uint32_t kSpinningType = 0xfffffffd;
// Of an output that trickles.
inline constexpr uint32_t kTricklingType = 0xfffffffc;

struct UnitReport {
  enum class State {
    kEnded,
    kHangs,      // still running when reported
    kHungEnded,  // reported as hanging before
    kSpins,      // not one unit but very many short ones (spin_watch.h)
    kTrickles,   // many short ones in a row that write to one descriptor (runtime/trickle.h)
  };
  State state = State::kEnded;
  int64_t pid = 0;
  int64_t tid = 0;
  std::string process;  // "redis-server"
  uint32_t type = wire::kUnknown;
  std::string type_name;     // "[unknown type]", "[whole iteration]"
  std::string nearest_type;  // of an unknown one; similarity_ppm is to it
  std::string loop;
  wire::UnitKind kind = wire::UnitKind::kIteration;
  uint64_t begin_ns = 0;  // CLOCK_MONOTONIC
  int64_t begin_unix_ns = 0;
  uint64_t wall_ns = 0;    // so far, while it hangs
  uint64_t ready_ns = 0;   // runnable, but not running
  uint64_t looked_ns = 0;  // stopped by looks from outside
  uint64_t cpu_ns = 0;
  bool has_cpu = false;       // cpu_ns is known
  uint64_t threshold_ns = 0;  // of counted_ns()
  uint32_t similarity_ppm = 0;
  uint32_t ready_events = 0;      // of its iteration
  uint64_t units = 1;             // kSpins, kTrickles: in wall_ns,
  uint64_t usual_ns = 0;          // ...and what they usually take at least
  std::vector<SeenStack> stacks;  // most telling first

  uint64_t counted_ns() const {
    return wall_ns > ready_ns + looked_ns ? wall_ns - ready_ns - looked_ns : 0;
  }
  uint64_t blocked_ns() const { return counted_ns() > cpu_ns ? counted_ns() - cpu_ns : 0; }
  // "redis-server!call", the innermost frame of the most telling stack that is
  // the program's own; empty: no stack.
  std::string Where() const;
};

std::string_view Name(UnitReport::State state);  // "slow", "hangs", "hung", "spins", "trickles"
std::string_view Name(SeenStack::By by);
std::string_view Name(wire::UnitKind kind);

// Puts the most telling first and joins equal ones.
void SortStacks(std::vector<SeenStack>& stacks);
// Without a line end.
std::string ToJson(const UnitReport& report);

}  // namespace culprit::guard
