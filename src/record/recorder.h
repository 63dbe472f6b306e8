// SPDX-License-Identifier: Apache-2.0
//
// Record: one recording from start to end: finds the best way this machine and
// this user allow (the tier), starts the command if there is one, moves events
// into the file until the time is up, the command ends, or somebody asks to
// stop, and tells what it cost. The file is readable at any moment; the kernel's
// part is gone when Record returns or the process dies.
//
// Blocks the calling thread. Nothing is printed: progress goes to the listener.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/result.h"
#include "record/function_probes.h"
#include "record/instance_probes.h"
#include "record/target.h"

namespace culprit::record {

enum class Tier : uint8_t {
  kBpf,         // kernel programs: everything
  kPerfSystem,  // perf events with tracepoints, as root
  kPerfOwn,     // perf events of one's own processes: waits without wakers, or samples only
};
std::string_view Name(Tier tier);
// What this tier cannot see; empty: nothing.
std::string_view Blindness(Tier tier);

// When the flight recorder writes its memory to a file, besides on request.
struct FlightTriggers {
  int64_t wait_ns = 0;    // a wait of a recorded thread at least this long; 0: off
  std::string mark = {};  // a mark of this name
  bool failure = false;   // the command ends with another code than 0
};

struct RecordOptions {
  RecordTarget target = {};
  std::vector<std::string> command = {};
  std::string path;  // of the trace; of a flight recorder's dumps: NAME-N.EXT
  Overwrite overwrite = Overwrite::kRefuse;
  int64_t duration_ns = 0;  // 0: until stopped, or the command ends
  bool syscalls = false;
  bool syscall_stacks = true;
  bool marks = false;
  std::vector<InstanceProbe> probes = {};
  std::optional<FunctionRuntime> functions = {};  // whose entries and exits are recorded too
  bool symbols = true;
  int64_t sample_period_ns = 1'000'000;
  int64_t min_wait_ns = 0;
  double budget = 0.03;  // 0: none
  uint64_t ring_bytes = uint64_t{16} << 20;
  int64_t flight_ns = 0;                             // 0: write everything
  uint64_t flight_bytes = uint64_t{256} << 20;       // of events
  uint64_t flight_names_bytes = uint64_t{64} << 20;  // of names; beyond, they begin anew
  FlightTriggers triggers = {};
  std::optional<Tier> tier = {};  // nothing: the best there is
  std::map<std::string, std::string> labels = {};
};

// How the caller takes part.
struct RecordListener {
  std::function<bool()> should_stop = [] { return false; };
  std::function<bool()> should_dump = [] { return false; };  // true once a request
  std::function<void(std::string_view)> note = [](std::string_view) {};
};

struct RecordOutcome {
  Tier tier = Tier::kBpf;
  std::vector<std::string> paths;  // of the trace, or of all dumps
  std::optional<int> exit_code;    // the command's
  bool command_runs_on = false;
  int64_t dur_ns = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t waits = 0;
  uint64_t left_out = 0;  // waits too short to be recorded
  uint64_t lost = 0;      // records, for want of room
  int64_t busy_ns = 0;
  int64_t kernel_ns = 0;
  int64_t own_ns = 0;
  double overhead = 0;  // the share that the budget is about
  int highest_level = 0;
  uint64_t user_stacks = 0;
  uint64_t complete_stacks = 0;
  Diagnostics diagnostics = {};
  std::optional<Error> error = {};  // what ended it early; the file so far stands
};

Result<RecordOutcome> Record(const RecordOptions& options, const RecordListener& listener);

}  // namespace culprit::record
