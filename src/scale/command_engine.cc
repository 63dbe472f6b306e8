// SPDX-License-Identifier: Apache-2.0
#include "scale/command_engine.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/parallel.h"
#include "base/program.h"
#include "scale/index_ranges.h"
#include "scale/task_ledger.h"

namespace culprit::scale {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr auto kTimeToEnd = std::chrono::seconds(5);  // between SIGTERM and SIGKILL
constexpr unsigned kTiredSlot = 2;                    // failures in a row

struct Slot {
  std::optional<RunningProgram> program;
  std::vector<uint64_t> indexes;
  unsigned failures = 0;  // in a row
};

// One stage through the launcher.
class CommandStage {
 public:
  CommandStage(const CommandTemplate& command, const CommandOptions& options,
               const EngineControl& control, std::string run_folder, Verb verb, TaskLedger& ledger);

  // False if it was stopped.
  Result<bool> Run();

 private:
  struct Ended {
    uint64_t index = 0;
    std::string why;
    Clock::time_point seen_until;
  };

  Status StartWhatFits();
  Status Start(size_t slot, std::vector<uint64_t> indexes);
  std::optional<uint64_t> TaskFor(size_t slot) const;
  bool MayUse(size_t slot) const;
  void Collect();
  void EndSlot(size_t slot, int code);
  void JudgeEnded();
  void EndAll();
  bool Busy() const;

  const CommandTemplate& command_;
  const CommandOptions& options_;
  const EngineControl& control_;
  std::string run_folder_;
  Verb verb_;
  TaskLedger& ledger_;
  std::vector<Slot> slots_;
  std::set<uint64_t> waiting_;
  std::map<uint64_t, std::set<size_t>> failed_on_;
  std::vector<Ended> ended_;  // whose output is not seen yet
};

CommandStage::CommandStage(const CommandTemplate& command, const CommandOptions& options,
                           const EngineControl& control, std::string run_folder, Verb verb,
                           TaskLedger& ledger)
    : command_(command),
      options_(options),
      control_(control),
      run_folder_(std::move(run_folder)),
      verb_(verb),
      ledger_(ledger),
      waiting_(ledger.open()) {
  size_t slots = options.slots;
  if (slots == 0) slots = options.hosts.empty() ? HardwareThreads() : options.hosts.size();
  slots_.resize(command.for_all() ? 1 : slots);
}

Result<bool> CommandStage::Run() {
  while (!ledger_.open().empty()) {
    if (control_.stop && control_.stop()) {
      EndAll();
      return false;
    }
    const Status started = StartWhatFits();
    if (!started.ok()) {
      EndAll();
      return started.error();
    }
    Collect();
    JudgeEnded();
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

bool CommandStage::Busy() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& s) { return s.program.has_value(); });
}

// A slot that only fails is left alone as long as there is one that does not.
bool CommandStage::MayUse(size_t slot) const {
  if (slots_[slot].failures < kTiredSlot) return true;
  return std::all_of(slots_.begin(), slots_.end(),
                     [](const Slot& s) { return s.failures >= kTiredSlot; });
}

// The first waiting task that did not fail on this slot before; one that did,
// only if there is nothing that it could wait for.
std::optional<uint64_t> CommandStage::TaskFor(size_t slot) const {
  for (const uint64_t index : waiting_) {
    const auto failed = failed_on_.find(index);
    if (failed == failed_on_.end() || failed->second.count(slot) == 0) return index;
  }
  const auto could_wait = [&](uint64_t index) {
    for (size_t other = 0; other < slots_.size(); ++other) {
      if (MayUse(other) && failed_on_.at(index).count(other) == 0) return true;
    }
    return false;
  };
  for (const uint64_t index : waiting_) {
    if (!could_wait(index)) return index;
  }
  return std::nullopt;
}

Status CommandStage::StartWhatFits() {
  for (size_t slot = 0; slot < slots_.size() && !waiting_.empty(); ++slot) {
    if (slots_[slot].program || !MayUse(slot)) continue;
    if (command_.for_all()) {
      CULPRIT_TRY(Start(slot, {waiting_.begin(), waiting_.end()}));
    } else if (const std::optional<uint64_t> index = TaskFor(slot)) {
      CULPRIT_TRY(Start(slot, {*index}));
    }
  }
  return {};
}

Status CommandStage::Start(size_t slot, std::vector<uint64_t> indexes) {
  TemplateValues values{.program = options_.program,
                        .verb = verb_,
                        .run = run_folder_,
                        .index = indexes.front(),
                        .indexes = IndexRanges({indexes.begin(), indexes.end()}),
                        .slot = slot,
                        .task_flags = options_.task_flags};
  if (!options_.hosts.empty()) values.host = options_.hosts[slot % options_.hosts.size()];
  const std::string log =
      command_.for_all() ? ledger_.StageLogPath() : ledger_.LogPath(indexes.front());
  CULPRIT_ASSIGN(slots_[slot].program, RunningProgram::Start(command_.Fill(values), log));
  for (const uint64_t index : indexes) waiting_.erase(index);
  slots_[slot].indexes = std::move(indexes);
  return {};
}

void CommandStage::Collect() {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot].program) continue;
    if (const std::optional<int> code = slots_[slot].program->Poll()) EndSlot(slot, *code);
  }
}

void CommandStage::EndSlot(size_t slot, int code) {
  Slot& over = slots_[slot];
  over.program.reset();
  over.failures = code == 0 ? 0 : over.failures + 1;
  const std::string why = code == 0 ? "ended, but its output is not there or does not verify"
                                    : "its launcher ended with exit code " + std::to_string(code);
  // One that failed by its own account has nothing under way.
  const auto until = Clock::now() + (code == 0 ? options_.grace : kLook);
  for (const uint64_t index : over.indexes) {
    if (ledger_.Settle(index)) continue;
    failed_on_[index].insert(slot);
    ended_.push_back({.index = index, .why = why, .seen_until = until});
  }
  over.indexes.clear();
}

void CommandStage::JudgeEnded() {
  std::erase_if(ended_, [&](const Ended& ended) {
    if (ledger_.Settle(ended.index)) return true;
    if (Clock::now() < ended.seen_until) return false;
    const bool again = ledger_.CountFailure(ended.index, ended.why);
    if (control_.note) {
      control_.note("task " + std::to_string(ended.index) + ": " + ended.why +
                    (again ? "; trying again" : ""));
    }
    if (again) waiting_.insert(ended.index);
    return true;
  });
}

void CommandStage::EndAll() {
  for (const Slot& slot : slots_) {
    if (slot.program) slot.program->Terminate();
  }
  const Clock::time_point deadline = Clock::now() + kTimeToEnd;
  while (Busy() && Clock::now() < deadline) {
    for (Slot& slot : slots_) {
      if (slot.program && slot.program->Poll()) slot.program.reset();
    }
    std::this_thread::sleep_for(kLook);
  }
  // What is left is killed with the slot.
  slots_.clear();
}

}  // namespace

CommandEngine::CommandEngine(CommandTemplate command, CommandOptions options, EngineControl control)
    : command_(std::move(command)), options_(std::move(options)), control_(std::move(control)) {}

Result<StageOutcome> CommandEngine::Run(const std::string& run_folder, const Stage& stage,
                                        Progress& progress) {
  std::error_code code;
  const std::string folder = std::filesystem::canonical(run_folder, code).string();
  if (code) return Error{.message = "cannot be found: " + code.message(), .file = run_folder};
  std::filesystem::create_directories(folder + "/logs", code);
  if (code) return Error{.message = "cannot make logs/: " + code.message(), .file = folder};
  TaskLedger ledger(folder, stage, control_.attempts, progress);
  CommandStage work(command_, options_, control_, folder, stage.verb, ledger);
  CULPRIT_ASSIGN(const bool whole, work.Run());
  return ledger.Finish(!whole);
}

}  // namespace culprit::scale
