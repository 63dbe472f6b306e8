// SPDX-License-Identifier: Apache-2.0
//
// sysdig and falco captures: system calls, context switches, births and deaths
// of threads, containers. Times are nanoseconds since 1970.
//
// A switch does not say whether who left the CPU could have gone on, and no
// waking is recorded. A thread that was last seen to return from a system call
// was not inside one, so it lost the CPU while runnable; any other waits. Newer
// recorders write only the exits of calls: such calls have no duration.
//
// Memory: one block, and a row a live thread.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>

#include "assemble/assembler.h"
#include "base/text.h"
#include "import/importers.h"
#include "import/perf_data_layout.h"
#include "import/scap_block.h"
#include "import/scap_events.h"
#include "import/scap_process.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kScapSurveyBytes = 16 << 20;
constexpr size_t kHostBytes = 128;
constexpr int64_t kKernelParent = 2;  // kthreadd, on every Linux
constexpr size_t kMaxContainers = 10'000;

struct ScapSurvey {
  trace::SyscallAbi arch = trace::SyscallAbi::kX86_64;
  bool arch_known = false;
  bool has_entries = true;
};

bool IsScapCall(ScapMeaning meaning) {
  return meaning == ScapMeaning::kSyscall || meaning == ScapMeaning::kGeneric ||
         meaning == ScapMeaning::kExec || meaning == ScapMeaning::kFork;
}

// Which machine it is from, and whether calls have entries, before the first
// call needs its number.
Result<ScapSurvey> SurveyScap(const Bytes& bytes) {
  ScapSurvey survey;
  ScapBlockReader reader(bytes);
  Diagnostics unheeded;  // the reading proper counts the same again
  ScapEvent event;
  uint64_t entries = 0;
  uint64_t exits = 0;
  int64_t votes[2] = {0, 0};
  while (reader.offset() < kScapSurveyBytes) {
    CULPRIT_ASSIGN(const std::optional<ScapBlock> block, reader.Next(unheeded));
    if (!block) break;
    if (!IsScapEvent(block->type) || !ReadScapEvent(*block, event)) continue;
    const ScapEventRow row = ScapEventOf(event.type);
    if (!IsScapCall(row.meaning)) continue;
    ++(event.is_exit() ? exits : entries);
    const auto arch = row.meaning == ScapMeaning::kGeneric
                          ? ScapArchOf(event.Signed(0), event.Signed(1))
                          : ScapArchOf(row.name);
    if (arch) ++votes[static_cast<size_t>(*arch)];
  }
  survey.arch_known = votes[0] + votes[1] != 0;
  if (votes[1] > votes[0]) survey.arch = trace::SyscallAbi::kArm64;
  survey.has_entries = entries * 8 >= exits;
  return survey;
}

class ScapReader {
 public:
  ScapReader(const ScapSurvey& survey, trace::TraceWriter& writer, Diagnostics& diagnostics)
      : survey_(survey), writer_(writer), diagnostics_(diagnostics), assembler_(writer) {}

  Status Run(const Bytes& bytes);

 private:
  // What a thread did last, as far as calls go.
  struct Thread {
    enum class Place : uint8_t { kUnknown, kInside, kOutside };
    Place place = Place::kUnknown;
    int64_t number = trace::kNoSyscall;  // of the call it is in
  };

  Status Block(const ScapBlock& block);
  Status Event(const ScapBlock& block);
  Status Call(const ScapEventRow& row);
  Status Switch();
  void Machine(const ScapBlock& block);
  void Processes(const ScapBlock& block);
  void Identify(ScapParameterCounts counts);
  void Container();
  int64_t NumberOf(const ScapEventRow& row, const Thread& thread);
  void Describe();

  const ScapSurvey survey_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  assemble::Assembler assembler_;
  ScapEvent event_;
  uint64_t offset_ = 0;  // of event_
  std::unordered_map<int64_t, Thread> threads_;
  uint64_t events_ = 0;
  uint64_t unused_ = 0;
  uint64_t no_durations_ = 0;
  size_t containers_ = 0;
};

void ScapReader::Machine(const ScapBlock& block) {
  FieldReader reader(block.body, block.big);
  trace::Metadata& metadata = writer_.metadata();
  metadata.cpus = std::min(reader.U32(), kMaxCpus);
  reader.Skip(8 + 8);  // memory, largest pid
  const std::string_view host = reader.Bytes(kHostBytes);
  if (reader.failed()) diagnostics_.Count("machine block that is too short", 1, block.offset);
  metadata.machine = host.substr(0, std::min(host.find('\0'), host.size()));
}

void ScapReader::Processes(const ScapBlock& block) {
  const bool whole = ReadScapThreads(block, [&](const ScapThread& thread) {
    if (thread.tid <= 0) return;
    const bool has_process = thread.pid > 0;
    assembler_.Name(has_process ? thread.pid : thread.tid, thread.tid, thread.name);
    if (thread.tid == kKernelParent || thread.parent == kKernelParent) {
      assembler_.Kind(thread.tid, trace::ThreadKind::kKernel);
    }
    if (thread.pid != thread.tid) return;
    assembler_.ProcessName(thread.pid, thread.name,
                           ScapCommandLine(thread.program, thread.arguments));
    const std::string_view cgroup = ScapCgroup(thread.cgroups);
    if (!cgroup.empty()) assembler_.Cgroup(thread.pid, cgroup);
  });
  if (!whole) diagnostics_.Count("process list that ends inside an entry", 1, block.offset);
}

// After an exec, or in a thread that was just born.
void ScapReader::Identify(ScapParameterCounts counts) {
  const int64_t tid = event_.Signed(kScapTid) > 0 ? event_.Signed(kScapTid) : event_.tid;
  const int64_t pid = event_.Signed(kScapPid) > 0 ? event_.Signed(kScapPid) : tid;
  const std::string_view program = event_.Text(kScapProgram);
  std::string_view name = BaseName(program);
  if (event_.values.size() >= counts.with_name) name = event_.Text(kScapName);
  assembler_.Name(pid, tid, name);
  if (pid != tid) return;
  assembler_.ProcessName(pid, name, ScapCommandLine(program, event_.Value(kScapArguments)));
  if (event_.values.size() < counts.with_cgroups) return;
  const std::string_view cgroup = ScapCgroup(event_.Value(kScapCgroups));
  if (!cgroup.empty()) assembler_.Cgroup(pid, cgroup);
}

// {"container": {"id": "697956520d89", "name": "web", "image": "nginx", ...}}
void ScapReader::Container() {
  const auto json = nlohmann::json::parse(event_.Text(0), nullptr, false);
  const auto text = [&](const char* key) -> std::string {
    if (!json.is_object() || !json.contains("container")) return {};
    const auto& container = json["container"];
    if (!container.is_object() || !container.contains(key)) return {};
    return container[key].is_string() ? container[key].get<std::string>() : std::string();
  };
  const std::string id = text("id");
  if (id.empty()) {
    diagnostics_.Count("container that could not be read", 1, offset_);
    return;
  }
  if (containers_++ >= kMaxContainers) return;
  const std::string name = text("name");
  const std::string image = text("image");
  std::string& label = writer_.metadata().properties["container." + id];
  label = name + (image.empty() ? "" : (name.empty() ? "image " : ", image ") + image);
}

int64_t ScapReader::NumberOf(const ScapEventRow& row, const Thread& thread) {
  if (row.meaning != ScapMeaning::kGeneric) return ScapSyscallNumber(row.name, survey_.arch);
  if (event_.values.size() >= 2) return event_.Signed(1);
  return thread.place == Thread::Place::kInside ? thread.number : trace::kNoSyscall;
}

Status ScapReader::Call(const ScapEventRow& row) {
  if (event_.tid <= 0) return {};
  const bool generic = row.meaning == ScapMeaning::kGeneric;
  const int64_t result = generic ? 0 : event_.Signed(kScapResult);
  if (event_.is_exit() && row.meaning == ScapMeaning::kFork && result == 0) {
    // The child's: it comes back from a call that its parent made.
    if (!threads_.contains(event_.tid)) {
      assembler_.Fork(event_.time_ns, event_.Signed(kScapParent), event_.Signed(kScapPid),
                      event_.tid);
    }
    threads_[event_.tid].place = Thread::Place::kOutside;
    Identify(kScapForkCounts);
    return {};
  }
  Thread& thread = threads_[event_.tid];
  const int64_t number = NumberOf(row, thread);
  thread.place = event_.is_exit() ? Thread::Place::kOutside : Thread::Place::kInside;
  thread.number = number;
  if (number == trace::kNoSyscall) {
    const bool lost_entry = generic && event_.is_exit();
    diagnostics_.Count(
        lost_entry ? "system call exit without its entry" : "system call without a known number", 1,
        offset_);
    return {};
  }
  if (!event_.is_exit()) {
    return assembler_.SyscallEnter(event_.time_ns, event_.cpu, event_.tid, number);
  }
  if (row.meaning == ScapMeaning::kExec && result == 0) Identify(kScapExecCounts);
  if (!survey_.has_entries) {
    ++no_durations_;
    CULPRIT_TRY(assembler_.SyscallEnter(event_.time_ns, event_.cpu, event_.tid, number));
  }
  return assembler_.SyscallExit(event_.time_ns, event_.cpu, event_.tid, number, result);
}

Status ScapReader::Switch() {
  if (event_.is_exit() || event_.values.empty()) return {};
  const int64_t next = event_.Signed(0);
  if (event_.tid < 0 || next < 0) {
    diagnostics_.Count("switch without a thread", 1, offset_);
    return {};
  }
  const auto prev = threads_.find(event_.tid);
  const bool outside = prev != threads_.end() && prev->second.place == Thread::Place::kOutside;
  if (next > 0) threads_.try_emplace(next);
  return assembler_.Switch({.time_ns = event_.time_ns,
                            .cpu = event_.cpu,
                            .prev_tid = event_.tid,
                            .next_tid = next,
                            .prev_runnable = outside && survey_.has_entries});
}

Status ScapReader::Event(const ScapBlock& block) {
  ++events_;
  offset_ = block.offset;
  if (!ReadScapEvent(block, event_)) {
    diagnostics_.Count("event that does not fit its block", 1, offset_);
    return {};
  }
  const ScapEventRow row = ScapEventOf(event_.type);
  switch (row.meaning) {
    case ScapMeaning::kUnknown:
      diagnostics_.Count("event of a type newer than this program", 1, offset_);
      return {};
    case ScapMeaning::kUnused:
      ++unused_;
      return {};
    case ScapMeaning::kSwitch:
      return Switch();
    case ScapMeaning::kExit:
      assembler_.Exit(event_.time_ns, event_.tid);
      threads_.erase(event_.tid);
      return {};
    case ScapMeaning::kContainer:
      Container();
      return {};
    case ScapMeaning::kDrop:
      diagnostics_.Count("place where the recorder left out events", 1, offset_);
      return {};
    case ScapMeaning::kSyscall:
    case ScapMeaning::kGeneric:
    case ScapMeaning::kExec:
    case ScapMeaning::kFork:
      return Call(row);
  }
  return {};
}

Status ScapReader::Block(const ScapBlock& block) {
  if (IsScapEvent(block.type)) return Event(block);
  if (block.type == kScapMachine) Machine(block);
  if (ScapProcessListVersion(block.type) != 0) Processes(block);
  return {};
}

void ScapReader::Describe() {
  trace::Metadata& metadata = writer_.metadata();
  metadata.source = "scap";
  metadata.os = "Linux";
  metadata.clock = "wall";
  metadata.wall_start_ns = metadata.begin_ns;
  metadata.arch = survey_.arch_known ? trace::MachineName(survey_.arch) : "";
  metadata.properties["syscalls.table"] = trace::MachineName(survey_.arch);
  metadata.properties["scap.events"] = std::to_string(events_);
  metadata.properties["scap.events_unused"] = std::to_string(unused_);
  if (metadata.has_switches) {
    metadata.properties["switches.state"] = "waits are switches inside a system call";
  }
}

Status ScapReader::Run(const Bytes& bytes) {
  ScapBlockReader reader(bytes);
  for (;;) {
    CULPRIT_ASSIGN(const std::optional<ScapBlock> block, reader.Next(diagnostics_));
    if (!block) break;
    CULPRIT_TRY(Block(*block));
  }
  if (events_ == 0) return Error{.message = "no event in it"};
  CULPRIT_TRY(assembler_.Finish());
  Describe();
  if (no_durations_ != 0) {
    diagnostics_.Count("system call without a duration (its recorder writes only exits)",
                       no_durations_);
  }
  diagnostics_.Merge(assembler_.diagnostics());
  return {};
}

// Captures of network packets begin with the same block; the next one differs.
Match SniffScap(const Source& source, std::string_view head) {
  if (source.is_folder() || head.size() < 32) return Match::kNo;
  if (LoadInteger<uint32_t>(head.data(), false) != kScapSection) return Match::kNo;
  const bool big = LoadInteger<uint32_t>(head.data() + 8, true) == kScapMagic;
  if (LoadInteger<uint32_t>(head.data() + 8, big) != kScapMagic) return Match::kNo;
  const uint32_t length = LoadInteger<uint32_t>(head.data() + 4, big);
  if (length < 12 || length > head.size() - 4) return Match::kNo;
  const uint32_t type = LoadInteger<uint32_t>(head.data() + length, big);
  const bool released = type >= kScapMachine && type <= kScapEventFlagsLarge;
  return released || (type & 0x8000ffff) == 0x8000abcd ? Match::kCertain : Match::kNo;
}

Status ReadScap(const Source& source, const ImportOptions&, trace::TraceWriter& writer,
                Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const ScapSurvey survey, SurveyScap(source.bytes()));
  ScapReader reader(survey, writer, diagnostics);
  const Status status = reader.Run(source.bytes());
  if (status.ok()) return status;
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer ScapImporter() {
  return {.name = "scap",
          .summary = "captures of sysdig and falco",
          .sniff = SniffScap,
          .read = ReadScap};
}

}  // namespace culprit::import_
