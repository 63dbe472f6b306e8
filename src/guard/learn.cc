// SPDX-License-Identifier: Apache-2.0
#include "guard/learn.h"

#include <algorithm>
#include <set>

#include "guard/call_sites.h"
#include "guard/event_loops.h"
#include "guard/iteration_walk.h"
#include "guard/loop_scan.h"
#include "guard/session_code.h"
#include "guard/shape_table.h"
#include "guard/sub_units.h"
#include "guard/training_log_reader.h"
#include "guard/type_names.h"
#include "guard/unit_cutter.h"

namespace culprit::guard {
namespace {

// What a loop that waits for events from outside does between a call that may be a turn
// and its wait, of all that it does.
struct SearchCount {
  uint64_t searches = 0;
  uint64_t search_entries = 0;
  uint64_t entries = 0;
  bool batches = false;  // a wait returned several events

  // Next to nothing, one entry in so many: looking whether there is anything to do.
  // (What key-value stores do there is to send their replies.)
  static constexpr uint64_t kEntriesToSearch = 20;
  bool IsSearch() const {
    return searches > 0 && !batches && search_entries * kEntriesToSearch <= entries;
  }
};

// Takes a few iterations of each loop as they are.
class SampleTaker {
 public:
  explicit SampleTaker(const std::vector<EventLoop>& loops)
      : loops_(loops), samples_(loops.size()), searches_(loops.size()) {}

  void Pass(uint32_t, uint64_t, uint64_t) {}
  void Lose() {}
  void Begin(uint32_t loop, uint64_t ready, const LoopPlace& /*place*/) {
    loop_ = loop;
    turned_ = false;
    samples_[loop].Begin(ready);
    entries_ = 0;
    search_begin_ = kNone;
    asked_ = loops_[loop].external ? &loops_[loop].turns : nullptr;
    searches_[loop].batches |= ready > 1;
  }
  void Enter(uint32_t function, int32_t depth16, uint64_t /*return_address*/) {
    const IterationEvent entry = {function, depth16 * 16};
    if (asked_ != nullptr && IsOneOf(*asked_, entry)) search_begin_ = entries_;
    ++entries_;
    samples_[loop_].Add(entry);
  }
  void Read(uint64_t bytes) {
    const auto kept = static_cast<int32_t>(std::min<uint64_t>(bytes, INT32_MAX));
    samples_[loop_].Add({IterationEvent::kInput, kept});
  }
  void Turn() {
    samples_[loop_].End(true);
    samples_[loop_].Begin(1);
    turned_ = true;
  }
  void End(uint64_t /*dur_ns*/, bool complete) {
    samples_[loop_].End(complete && !turned_);
    if (!complete) return;
    SearchCount& search = searches_[loop_];
    search.entries += entries_;
    if (search_begin_ == kNone) return;
    ++search.searches;
    search.search_entries += entries_ - search_begin_;
  }

  std::vector<SubUnitLevels> Levels() const {
    std::vector<SubUnitLevels> levels;
    for (const IterationSample& sample : samples_) {
      levels.push_back(FindSubUnitLevels(sample.iterations()));
    }
    return levels;
  }
  const std::vector<SearchCount>& searches() const { return searches_; }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;

  const std::vector<EventLoop>& loops_;
  std::vector<IterationSample> samples_;
  std::vector<SearchCount> searches_;
  const std::vector<Context>* asked_ = nullptr;  // where the loop may turn, if it must be asked
  uint32_t loop_ = 0;
  bool turned_ = false;
  uint64_t entries_ = 0;  // of the iteration
  uint64_t search_begin_ = kNone;
};

class Learner {
 public:
  Learner(const std::string& session_folder, const LearnOptions& options, Progress& progress,
          Diagnostics& diagnostics)
      : folder_(session_folder),
        options_(options),
        progress_(progress),
        diagnostics_(diagnostics) {}

  Result<Profile> Run() {
    CULPRIT_ASSIGN(logs_, ListLogs(folder_, diagnostics_));
    if (logs_.empty()) {
      return Error{"no training logs",
                   folder_,
                   {},
                   "the program did nothing while it was traced: train under load"};
    }
    logs_ = InOrderOfBirth(std::move(logs_));
    uint64_t bytes = 0;
    std::set<uint32_t> added;
    for (const LogFile& log : logs_) {
      bytes += log.bytes;
      if (added.insert(log.pid).second) code_.AddProcess(folder_, log.pid, diagnostics_);
    }
    progress_.Start("learning", "bytes", 3 * bytes);
    LoopScan scan(code_);
    CULPRIT_TRY(ForEachLog([&](const LogFile& log) { return scan.Read(log, diagnostics_); }));
    loops_ = FindEventLoops(scan, options_.min_iterations);
    if (loops_.empty()) {
      return Error{"no event loop found in training",
                   folder_,
                   {},
                   "train under load: a loop shows when it waits and goes round some times"};
    }
    CULPRIT_ASSIGN(const std::vector<SubUnitLevels> levels, FindLevels(scan));
    Profile profile;
    CULPRIT_TRY(CutUnits(LoopSites(loops_, scan.stacks()), levels, profile));
    progress_.Finish();
    profile.training.entries = scan.entries();
    FillTables(levels, profile);
    return profile;
  }

 private:
  template <class Body>
  Status ForEachLog(Body body) {
    for (const LogFile& log : logs_) {
      CULPRIT_TRY(body(log));
      progress_.Advance(log.bytes);
    }
    return {};
  }

  // Decides where loops turn, too.
  Result<std::vector<SubUnitLevels>> FindLevels(const LoopScan& scan) {
    std::vector<EventLoop> surely = loops_;
    for (EventLoop& loop : surely) {
      if (loop.external) loop.turns.clear();
    }
    const LoopSites sites(surely, scan.stacks());
    SampleTaker taker(loops_);
    Diagnostics again;  // damage was counted by the first reading
    CULPRIT_TRY(ForEachLog(
        [&](const LogFile& log) { return IterationWalk(code_, sites, log, taker).Run(again); }));
    std::vector<SubUnitLevels> levels(loops_.size());
    if (options_.sub_units) levels = taker.Levels();
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (loops_[i].external && !taker.searches()[i].IsSearch()) loops_[i].turns.clear();
    }
    return levels;
  }

  Status CutUnits(const LoopSites& sites, const std::vector<SubUnitLevels>& levels,
                  Profile& profile) {
    ShapeTable table(options_.max_shapes, options_.memory_bytes);
    CallSites call_sites(code_);
    UnitCutter cutter(levels, call_sites, table);
    Diagnostics again;
    CULPRIT_TRY(ForEachLog([&](const LogFile& log) {
      cutter.BeginThread(log.pid);
      return IterationWalk(code_, sites, log, cutter).Run(again);
    }));
    for (const auto& [what, row] : again.rows()) {
      if (!diagnostics_.rows().contains(what)) diagnostics_.Count(what, row.count);
    }
    table.MoveTo(profile);
    profile.callers = call_sites.callers();
    profile.training.runs = 1;
    profile.training.threads = logs_.size();
    profile.training.units = cutter.units();
    for (size_t i = 0; i < loops_.size(); ++i) {
      const LoopTotals& totals = cutter.totals()[i];
      profile.loops.push_back({.iterations = totals.iterations,
                               .ready_events = totals.ready_events,
                               .train_ns = totals.train_ns});
      profile.training.unit_train_ns += totals.train_ns;
      profile.training.unit_entries += totals.entries;
    }
    return {};
  }

  void FillTables(const std::vector<SubUnitLevels>& levels, Profile& profile) {
    profile.modules = code_.modules();
    for (const SessionCode::Function& function : code_.functions()) {
      profile.functions.push_back({function.module, function.offset, {}});
    }
    for (size_t i = 0; i < loops_.size(); ++i) {
      ProfileLoop& loop = profile.loops[i];
      loop.holder = loops_[i].holder;
      loop.external = loops_[i].external;
      loop.hand_over = loops_[i].hand_over;
      loop.parks = loops_[i].parks;
      loop.holder_unwound = loops_[i].holder_unwound;
      loop.woken_by = loops_[i].woken_by;
      loop.handlers = levels[i].handlers;
      loop.commands = levels[i].commands;
      loop.tails = levels[i].tails;
      loop.turns = loops_[i].turns;
      for (const auto& [site, offset] : loops_[i].sites) {
        loop.sites.push_back({site.returns_to.module, site.returns_to.offset, site.call, offset});
      }
    }
    profile.program = ProgramPath();
    Compact(profile);
    if (options_.names) NameFunctions(profile, options_.debug_folder);
  }

  // The first module of the first process is the program.
  std::string ProgramPath() const {
    return code_.modules().empty() ? std::string() : code_.modules().front().path;
  }

  const std::string& folder_;
  const LearnOptions& options_;
  Progress& progress_;
  Diagnostics& diagnostics_;
  std::vector<LogFile> logs_;
  SessionCode code_;
  std::vector<EventLoop> loops_;
};

}  // namespace

Result<Profile> Learn(const std::string& session_folder, const LearnOptions& options,
                      Progress& progress, Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(Profile profile, Learner(session_folder, options, progress, diagnostics).Run());
  ChooseTypesAndGuards(profile, options);
  return profile;
}

void ChooseTypesAndGuards(Profile& profile, const LearnOptions& options) {
  FindUnitTypes(options.types, profile);
  NameTypes(profile);
  ChooseGuards(options.guards, profile);
}

}  // namespace culprit::guard
