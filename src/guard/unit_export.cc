// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_export.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "guard/proc_file.h"
#include "guard/session_folder.h"
#include "trace/trace_writer.h"

namespace culprit::guard {
namespace {

constexpr std::string_view kMonotonic = "CLOCK_MONOTONIC";

// A thread of the recording that had this id during all of the time.
trace::ThreadId ThreadAt(const std::multimap<int64_t, trace::ThreadId>& threads,
                         const trace::Dictionary& dictionary, int64_t tid, int64_t t0_ns,
                         int64_t t1_ns) {
  const auto [begin, end] = threads.equal_range(tid);
  for (auto it = begin; it != end; ++it) {
    const trace::Thread& thread = dictionary.threads()[it->second.value];
    const bool begun = thread.start_ns == trace::kNoTime || thread.start_ns <= t0_ns;
    const bool ended = thread.end_ns != trace::kNoTime && thread.end_ns < t1_ns;
    if (begun && !ended && thread.kind == trace::ThreadKind::kUser) return it->second;
  }
  return trace::ThreadId::none();
}

void FillUnitMetadata(trace::Metadata& metadata) {
  utsname name = {};
  if (uname(&name) == 0) {
    metadata.machine = name.nodename;
    metadata.os = name.sysname;
    metadata.kernel = name.release;
    metadata.arch = name.machine;
  }
  metadata.source = "culprit guard " CULPRIT_VERSION;
  metadata.clock = kMonotonic;
  metadata.cpus = static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace

std::string ScenarioName(const Profile& profile, uint32_t type) {
  const std::string program(BaseName(profile.program));
  if (type == wire::kWholeIteration) return program + ": [whole iteration]";
  if (type == kSpinningType) return program + ": [spins]";
  if (type == kTricklingType) return program + ": [trickles]";
  if (type >= profile.types.size()) return program + ": [unknown type]";
  return program + ": " + profile.types[type].name;
}

void UnitTraceMaker::Keep(const Unit& unit) {
  if (units_.size() >= kMaxUnits) {
    ++left_out_;
    return;
  }
  units_.push_back(unit);
  const auto [it, is_new] = process_names_.try_emplace(unit.pid);
  if (is_new) it->second = ProcStatusField(unit.pid, "Name");
}

void UnitTraceMaker::Add(int64_t pid, std::span<const wire::Sample> samples) {
  for (const wire::Sample& sample : samples) {
    if (sample.type == wire::kWholeIteration) continue;  // its sub-units are units themselves
    Keep({pid, sample.tid, sample.begin_ns, sample.wall_ns, sample.type});
  }
}

void UnitTraceMaker::Add(const UnitReport& report) {
  // One that hangs is added when it ends; the whole iteration beside its units.
  if (report.state == UnitReport::State::kHangs) return;
  Keep({report.pid, report.tid, report.begin_ns, report.wall_ns, report.type});
}

Status UnitTraceMaker::Write(const std::string& path, Overwrite overwrite) const {
  std::vector<Unit> units = units_;
  const auto key = [](const Unit& unit) {
    return std::tuple(unit.begin_ns, unit.pid, unit.tid, unit.type, ~unit.wall_ns);
  };
  std::sort(units.begin(), units.end(),
            [&](const Unit& a, const Unit& b) { return key(a) < key(b); });
  // A slow unit may be a sample as well; a tail's sample is of one ready event.
  units.erase(std::unique(units.begin(), units.end(),
                          [](const Unit& a, const Unit& b) {
                            return a.begin_ns == b.begin_ns && a.pid == b.pid && a.tid == b.tid &&
                                   a.type == b.type;
                          }),
              units.end());
  trace::Trace trace;
  FillUnitMetadata(trace.metadata);
  trace.metadata.app = BaseName(profile_.program);
  trace::Dictionary& dictionary = trace.dictionary;
  std::map<int64_t, trace::ProcessId> processes;
  std::map<std::pair<int64_t, int64_t>, trace::ThreadId> threads;
  for (const Unit& unit : units) {
    const auto [process, new_process] = processes.try_emplace(unit.pid);
    const StringId name = dictionary.Intern(process_names_.at(unit.pid));
    if (new_process) process->second = dictionary.AddProcess({.pid = unit.pid, .name = name});
    const auto [thread, new_thread] = threads.try_emplace({unit.pid, unit.tid});
    if (new_thread) {
      thread->second =
          dictionary.AddThread({.tid = unit.tid, .process = process->second, .name = name});
    }
    const auto t0_ns = static_cast<int64_t>(unit.begin_ns);
    const int64_t t1_ns = t0_ns + static_cast<int64_t>(unit.wall_ns);
    trace.instances.push_back({.scenario = dictionary.Intern(ScenarioName(profile_, unit.type)),
                               .thread = thread->second,
                               .t0_ns = t0_ns,
                               .t1_ns = t1_ns});
    const bool first = trace.metadata.begin_ns == 0;
    trace.metadata.begin_ns = first ? t0_ns : std::min(trace.metadata.begin_ns, t0_ns);
    trace.metadata.end_ns = std::max(trace.metadata.end_ns, t1_ns);
  }
  return WriteTrace(trace, path, overwrite);
}

Result<AddedUnits> AddUnits(const trace::TraceReader& units, const trace::TraceReader& recording,
                            const std::string& path, Overwrite overwrite) {
  for (const trace::TraceReader* reader : {&units, &recording}) {
    if (reader->metadata().clock != kMonotonic) {
      return Error{.message = "times of a trace with the clock '" + reader->metadata().clock +
                              "' cannot be compared with units of guards",
                   .hint = "record with culprit record on the machine where the guards ran"};
    }
  }
  if (!recording.complete() || !recording.diagnostics().empty()) {
    return Error{.message = "the recording is damaged: a copy would hide that"};
  }
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, overwrite));
  trace::TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  writer.metadata() = recording.metadata();
  CopyDictionary(recording.dictionary(), writer.dictionary());
  for (const trace::Instance& instance : recording.instances()) writer.AddInstance(instance);
  std::multimap<int64_t, trace::ThreadId> threads;
  const auto& all = recording.dictionary().threads();
  for (uint32_t i = 0; i < all.size(); ++i) threads.emplace(all[i].tid, trace::ThreadId(i));
  AddedUnits counts;
  for (trace::Instance instance : units.instances()) {
    const trace::Metadata& metadata = recording.metadata();
    if (instance.t0_ns < metadata.begin_ns || instance.t1_ns > metadata.end_ns) {
      ++counts.outside;
      continue;
    }
    const int64_t tid = units.dictionary().threads()[instance.thread.value].tid;
    instance.thread =
        ThreadAt(threads, recording.dictionary(), tid, instance.t0_ns, instance.t1_ns);
    if (!instance.thread.valid()) {
      ++counts.no_thread;
      continue;
    }
    instance.scenario = writer.dictionary().Intern(units.dictionary().Text(instance.scenario));
    writer.AddInstance(instance);
    ++counts.added;
  }
  std::vector<trace::Event> events;
  for (size_t i = 0; i < recording.blocks().size(); ++i) {
    CULPRIT_TRY(recording.ReadBlock(i, events));
    for (const trace::Event& event : events) CULPRIT_TRY(writer.Add(event));
  }
  CULPRIT_TRY(writer.Finish());
  CULPRIT_TRY(file.Commit());
  return counts;
}

}  // namespace culprit::guard
