// SPDX-License-Identifier: Apache-2.0
#include "guard/call_export.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/text.h"
#include "guard/call_walk.h"
#include "symbol/debug_files.h"
#include "symbol/symbolizer.h"
#include "trace/trace_writer.h"

namespace culprit::guard {
namespace {

using trace::Event;
using trace::EventKind;

// The system calls of one thread id, by time.
struct ThreadMoments {
  std::vector<std::pair<int64_t, trace::ThreadId>> calls;
  std::vector<TimeRange> own_work;

  bool IsOwn(int64_t time_ns) const {
    const auto behind = std::upper_bound(
        own_work.begin(), own_work.end(), time_ns,
        [](int64_t time, const TimeRange& range) { return time < range.begin_ns; });
    return behind != own_work.begin() && time_ns <= std::prev(behind)->end_ns;
  }
};

using MomentsByTid = std::map<int64_t, ThreadMoments>;

Result<MomentsByTid> ReadMoments(const trace::TraceReader& recording) {
  MomentsByTid moments;
  const auto& threads = recording.dictionary().threads();
  std::vector<Event> events;
  for (size_t i = 0; i < recording.blocks().size(); ++i) {
    if (!recording.blocks()[i].HasKind(EventKind::kSyscall)) continue;
    CULPRIT_TRY(recording.ReadBlock(i, events));
    for (const Event& event : events) {
      if (event.kind != EventKind::kSyscall || !event.thread.valid()) continue;
      moments[threads[event.thread.value].tid].calls.emplace_back(event.time_ns, event.thread);
    }
  }
  for (auto& [tid, thread] : moments) {
    std::stable_sort(thread.calls.begin(), thread.calls.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return moments;
}

// Functions of the session as frames of a trace.
class FunctionFrames {
 public:
  FunctionFrames(const SessionCode& code, trace::Dictionary& dictionary)
      : code_(code), dictionary_(dictionary), modules_(code.modules().size()) {}

  trace::FrameId Of(uint32_t function) {
    const auto [found, made] = frames_.try_emplace(function);
    if (made) found->second = Make(code_.functions()[function]);
    return found->second;
  }
  Diagnostics diagnostics() const { return symbolizer_.diagnostics(); }

 private:
  struct KnownModule {
    bool asked = false;
    trace::ModuleId id;
    symbol::ModuleKey key;
    std::optional<symbol::ElfFile> file;
  };

  KnownModule& ModuleOf(uint32_t number) {
    KnownModule& module = modules_[number];
    if (module.asked) return module;
    module.asked = true;
    const ProfileModule& listed = code_.modules()[number];
    module.key = {listed.path, listed.build_id};
    Diagnostics ignored;  // the symbolizer counts it
    module.file = symbol::OpenModuleFile(module.key, {}, ignored);
    module.id = dictionary_.InternModule(
        {.name = dictionary_.Intern(BaseName(listed.path)),
         .path = dictionary_.Intern(listed.path),
         .build_id = listed.build_id.empty() ? StringId() : dictionary_.Intern(listed.build_id)});
    return module;
  }

  trace::FrameId Make(const SessionCode::Function& function) {
    KnownModule& module = ModuleOf(function.module);
    trace::Frame frame{.module = module.id, .offset = function.offset};
    const auto offset = module.file ? module.file->OffsetOfAddress(function.offset) : std::nullopt;
    if (!offset) return dictionary_.InternFrame(frame);
    frame.offset = *offset;
    const symbol::Symbol& symbol = symbolizer_.Lookup(module.key, *offset, false).front();
    if (!symbol.function.empty()) frame.function = dictionary_.Intern(symbol.function);
    return dictionary_.InternFrame(frame);
  }

  const SessionCode& code_;
  trace::Dictionary& dictionary_;
  symbol::Symbolizer symbolizer_;
  std::vector<KnownModule> modules_;
  std::map<uint32_t, trace::FrameId> frames_;
};

class CallAdder {
 public:
  CallAdder(const std::string& folder, const trace::TraceReader& recording,
            Diagnostics& diagnostics)
      : folder_(folder), recording_(recording), diagnostics_(diagnostics) {}

  Status Walk() {
    CULPRIT_ASSIGN(moments_, ReadMoments(recording_));
    CULPRIT_ASSIGN(std::vector<LogFile> logs, ListLogs(folder_, diagnostics_));
    logs = InOrderOfBirth(std::move(logs));
    std::set<uint32_t> known;
    for (const LogFile& log : logs) {
      if (known.insert(log.pid).second) code_.AddProcess(folder_, log.pid, diagnostics_);
    }
    for (const LogFile& log : logs) CULPRIT_TRY(WalkLog(log));
    return {};
  }

  Status Write(trace::TraceWriter& writer) {
    CULPRIT_TRY(CopyEvents(writer));
    trace::Dictionary& dictionary = writer.dictionary();
    FunctionFrames frames(code_, dictionary);
    std::vector<trace::StackId> stacks;
    for (const CallPaths::Node& node : paths_.nodes()) {
      const trace::StackId caller =
          node.caller == kNoIndex ? trace::StackId() : stacks[node.caller];
      stacks.push_back(dictionary.InternStack(caller, frames.Of(node.function)));
    }
    diagnostics_.Merge(frames.diagnostics());
    for (const auto& [thread, call] : calls_) {
      CULPRIT_TRY(writer.Add({.time_ns = call.begin_ns,
                              .dur_ns = call.end_ns - call.begin_ns,
                              .thread = thread,
                              .stack = stacks[call.path],
                              .kind = EventKind::kCall}));
    }
    counts_.calls = calls_.size();
    return {};
  }

  const AddedCalls& counts() const { return counts_; }

 private:
  Status WalkLog(const LogFile& log) {
    ThreadMoments& thread = moments_[log.tid];
    std::vector<int64_t> times;
    times.reserve(thread.calls.size());
    for (const auto& [time_ns, id] : thread.calls) times.push_back(time_ns);
    CULPRIT_ASSIGN(const WalkedLog walked, CallWalk(code_, log, times, paths_).Run(diagnostics_));
    counts_.entries += walked.entries;
    std::vector<int32_t> changes(times.size() + 1);  // of how many calls a moment lies in
    for (const WalkedCall& call : walked.calls) {
      calls_.emplace_back(thread.calls[call.first_moment].second, call);
      const auto end = std::lower_bound(times.begin(), times.end(), call.end_ns);
      ++changes[call.first_moment];
      --changes[static_cast<size_t>(end - times.begin())];
    }
    const auto [first, made] = first_ns_.try_emplace(log.pid, walked.first_ns);
    first->second = std::min(first->second, walked.first_ns);
    thread.own_work.insert(thread.own_work.end(), walked.own_work.begin(), walked.own_work.end());
    int32_t around = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      around += changes[i];
      if (around > 0 && !thread.IsOwn(times[i])) ++counts_.owned;
    }
    return {};
  }

  // Before a process logs anything it is the loader or the runtime that calls.
  bool IsOfRuntime(const Event& event) {
    const trace::Dictionary& dictionary = recording_.dictionary();
    const trace::Thread& thread = dictionary.threads()[event.thread.value];
    if (moments_[thread.tid].IsOwn(event.time_ns)) return true;
    if (!thread.process.valid()) return false;
    const auto first = first_ns_.find(dictionary.processes()[thread.process.value].pid);
    return first != first_ns_.end() && event.time_ns < first->second;
  }

  Status CopyEvents(trace::TraceWriter& writer) {
    std::vector<Event> events;
    for (size_t i = 0; i < recording_.blocks().size(); ++i) {
      CULPRIT_TRY(recording_.ReadBlock(i, events));
      for (const Event& event : events) {
        if (event.kind == EventKind::kSyscall && event.thread.valid()) {
          if (IsOfRuntime(event)) {
            ++counts_.own;
            continue;
          }
          ++counts_.syscalls;
        }
        CULPRIT_TRY(writer.Add(event));
      }
    }
    return {};
  }

  const std::string& folder_;
  const trace::TraceReader& recording_;
  Diagnostics& diagnostics_;
  MomentsByTid moments_;
  SessionCode code_;
  CallPaths paths_;
  std::vector<std::pair<trace::ThreadId, WalkedCall>> calls_;
  std::map<int64_t, int64_t> first_ns_;  // that a process logged, by pid
  AddedCalls counts_;
};

}  // namespace

Result<AddedCalls> AddCalls(const std::string& session_folder, const trace::TraceReader& recording,
                            const std::string& path, Overwrite overwrite,
                            Diagnostics& diagnostics) {
  if (!recording.complete() || !recording.diagnostics().empty()) {
    return Error{.message = "the recording is damaged: a copy would hide that"};
  }
  CallAdder adder(session_folder, recording, diagnostics);
  CULPRIT_TRY(adder.Walk());
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, overwrite));
  trace::TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  writer.metadata() = recording.metadata();
  CopyDictionary(recording.dictionary(), writer.dictionary());
  for (const trace::Instance& instance : recording.instances()) writer.AddInstance(instance);
  CULPRIT_TRY(adder.Write(writer));
  CULPRIT_TRY(writer.Finish());
  CULPRIT_TRY(file.Commit());
  return adder.counts();
}

}  // namespace culprit::guard
