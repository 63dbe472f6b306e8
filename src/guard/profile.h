// SPDX-License-Identifier: Apache-2.0
//
// Profile: all that training learned about a program, and all that `guard show`
// prints: event loops with their wait calls, the levels at which an iteration is
// cut into sub-units, the types of units with how long they take, and the guards
// in the order of their worth. A plan for the runtime follows from it
// (plan_builder.h); two profiles of the same binaries merge (merge_profiles.h).
//
// Everything refers to code by <module, offset>, modules are known by build-id,
// so a profile holds for any process of the same binaries. The shapes are the
// distinct units of the training: from them types and guards can be made again.
// Plain data; indexes are checked when it is read (profile_file.h) and valid
// ever after. Times are wall time without run delay.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "guard/latency_stats.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

inline constexpr uint32_t kNoIndex = UINT32_MAX;

struct ProfileModule {
  std::string build_id;  // hexadecimal, never empty
  std::string path;      // where it was

  bool operator==(const ProfileModule&) const = default;
};

struct ProfileFunction {
  uint32_t module = 0;
  uint64_t offset = 0;  // in the ELF file's address space
  std::string name;     // of a symbol table; else "module+0xoffset"

  bool operator==(const ProfileFunction&) const = default;
};

// <function, depth>: depth as in wire::PlanContext.
struct Context {
  uint32_t function = 0;
  int32_t depth = 0;

  auto operator<=>(const Context&) const = default;
};

// A wait call that ends and begins iterations.
struct ProfileSite {
  uint32_t module = 0;
  uint64_t return_offset = 0;
  wire::WaitCall call = wire::WaitCall::kOther;
  int32_t base_offset = 0;

  bool operator==(const ProfileSite&) const = default;
};

struct ProfileLoop {
  uint32_t holder = kNoIndex;  // function with the loop; none: not known
  std::vector<ProfileSite> sites;
  bool external = false;   // its waits receive events from outside
  bool hand_over = false;  // its waits only end the loops inside of it (wire::PlanSite)
  // A wait for other threads that its function makes itself is none of a unit's: a thread
  // that has no more to do waits to be given the next connection.
  bool parks = false;
  bool holder_unwound = true;      // the runtime can find the holder on the stack
  std::vector<uint32_t> woken_by;  // loops whose threads wake this one's, ascending
  uint64_t iterations = 0;         // of training
  uint64_t ready_events = 0;       // of these
  uint64_t train_ns = 0;           // spent in them under full tracing
  std::vector<Context> handlers;   // empty: iterations are the units
  std::vector<Context> commands;   // inside handlers
  std::vector<Context> tails;      // what runs after the last handler begins with one of these
  std::vector<Context> turns;      // where it looks for work, and waits only if there is none

  bool operator==(const ProfileLoop&) const = default;
};

// All that cuts: each ascending.
template <class Loop>
auto CutsOf(Loop& loop) {
  return std::array{&loop.handlers, &loop.commands, &loop.tails, &loop.turns};
}

// A call path below the loop: functions only. Paths come before their children.
struct CallPath {
  uint32_t parent = kNoIndex;
  uint32_t function = 0;

  auto operator<=>(const CallPath&) const = default;
};

// Where functions are called from: a return address.
struct ProfileCaller {
  uint32_t module = 0;
  uint64_t return_offset = 0;  // in the ELF file's address space

  auto operator<=>(const ProfileCaller&) const = default;
};

// A path entered at a depth, called from a place of its parent;
// kVariableDepth: at too many depths to tell them apart.
inline constexpr int32_t kVariableDepth = INT32_MIN;
struct Place {
  uint32_t path = 0;
  int32_t depth = 0;
  uint32_t caller = kNoIndex;  // none: not known

  auto operator<=>(const Place&) const = default;
};

// Units of training that entered the same places.
struct UnitShape {
  wire::UnitKind kind = wire::UnitKind::kIteration;
  uint32_t loop = 0;
  uint32_t type = kNoIndex;
  std::vector<uint32_t> places;  // ascending
  std::vector<uint64_t> hits;    // beside them: entries of all these units
  uint64_t units[2] = {0, 0};    // of the two halves of training
  uint64_t total_units() const { return units[0] + units[1]; }

  bool operator==(const UnitShape&) const = default;
};

struct UnitType {
  wire::UnitKind kind = wire::UnitKind::kIteration;
  uint32_t loop = 0;
  std::string name;    // of its most distinctive functions
  uint64_t units = 0;  // of training
  uint32_t shapes = 0;
  LatencyStats stats;         // calibrated
  uint64_t threshold_ns = 0;  // 0: not calibrated

  bool operator==(const UnitType&) const = default;
};

// What a guarded function's entry is told by. A caller is named where several
// call paths lead to the depth and the caller tells which it is.
struct GuardContext {
  int32_t depth = 0;
  uint32_t caller = kNoIndex;  // none: any

  auto operator<=>(const GuardContext&) const = default;
};

// A function worth patching, with the contexts that tell types apart. In the
// order of choice: what tells most for its cost comes first.
struct Guard {
  uint32_t function = 0;
  std::vector<GuardContext> contexts;  // ascending
  bool boundary = false;               // begins sub-units: patched in any case, and first
  uint64_t hits_per_mega_unit = 0;     // expected entries per million units
  uint64_t gain_microbits = 0;         // information about the type it added

  bool operator==(const Guard&) const = default;
};

// How well the guards tell the type, against the full call trees of training.
struct InferenceQuality {
  uint64_t units = 0;
  uint64_t right = 0;           // inferred type is the unit's own
  uint64_t held_out_units = 0;  // of one half, with guards chosen on the other
  uint64_t held_out_right = 0;
  // Entries, those whose <function, depth> belongs to several paths, and those of
  // them that the caller does not tell apart either: they carry no bit.
  uint64_t hits = 0;
  uint64_t ambiguous_hits = 0;
  uint64_t dropped_hits = 0;

  bool operator==(const InferenceQuality&) const = default;
};

struct TrainingFacts {
  uint64_t runs = 0;
  uint64_t threads = 0;
  uint64_t entries = 0;  // function entries logged
  uint64_t units = 0;
  uint64_t unit_train_ns = 0;    // of all iterations, under full tracing
  uint64_t unit_entries = 0;     // function entries inside them
  uint64_t dropped_shapes = 0;   // rare ones that were not kept
  uint64_t dropped_units = 0;    // of those
  uint64_t measured_units = 0;   // while calibrating, and what the program's processes...
  uint64_t measured_cpu_ns = 0;  // ...took meanwhile

  bool operator==(const TrainingFacts&) const = default;
};

struct Profile {
  std::string program;  // path of the binary trained
  std::vector<ProfileModule> modules;
  std::vector<ProfileFunction> functions;  // by module, offset
  std::vector<CallPath> paths;
  std::vector<ProfileCaller> callers;  // by module, offset
  std::vector<Place> places;
  std::vector<ProfileLoop> loops;
  std::vector<UnitShape> shapes;
  std::vector<UnitType> types;
  std::vector<Guard> guards;
  InferenceQuality quality;
  TrainingFacts training;
  LatencyStats unknown;    // calibrated: units like no type
  LatencyStats iteration;  // calibrated: whole iterations cut into sub-units, per ready event
  uint64_t unknown_threshold_ns = 0;
  uint64_t iteration_threshold_ns = 0;  // per ready event; 0: not checked
  uint64_t floor_ns = 1'000'000;

  bool operator==(const Profile&) const = default;
};

// "function" of a named one, else "module+0xoffset"; "?" for kNoIndex.
std::string FunctionName(const Profile& profile, uint32_t function);
// Function names of the loop: "aeMain", or of its wait call's place.
std::string LoopName(const Profile& profile, uint32_t loop);

// Drops modules, functions, paths and places that nothing uses, and brings the
// rest and the shapes into an order that depends on the contents alone.
void Compact(Profile& profile);

// Nothing in it points outside of its tables; a sentence says what does.
std::string FirstContradiction(const Profile& profile);

}  // namespace culprit::guard
