// SPDX-License-Identifier: Apache-2.0
#include "watch/intake.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include "base/file.h"
#include "corpus/corpus.h"
#include "corpus/slow_unit_labels.h"
#include "guard/unit_export.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"
#include "watch/eviction.h"
#include "watch/look_tiles.h"

namespace culprit::watch {
namespace {

constexpr int kNice = 10;

// A name for the trace: what the unit was, and when.
std::string TraceName(const guard::UnitReport& report) {
  std::string name;
  for (const char c : report.type_name) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (fine) name += c;
    if (!fine && !name.empty() && name.back() != '-') name += '-';
    constexpr size_t kLongest = 60;
    if (name.size() >= kLongest) break;
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  constexpr int64_t kSecond = 1'000'000'000;
  return (name.empty() ? "unit" : name) + "-" + std::to_string(report.begin_unix_ns / kSecond);
}

std::string UnitsBeside(const std::string& dump) { return dump + ".units"; }
std::string LabelsBeside(const std::string& dump) { return dump + ".labels"; }

// What the corpus is to say about a dump: lines of KEY=VALUE; "name" is its name.
constexpr std::string_view kNameKey = "name";
using Labels = std::map<std::string, std::string>;

std::string LabelText(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += key + "=" + value + "\n";
  return text;
}

Labels ParseLabels(std::string_view text) {
  Labels labels;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    labels.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return labels;
}

Status AddToCorpus(const StateFolder& folder, const std::string& path, Labels labels) {
  CULPRIT_ASSIGN(corpus::Corpus corpus, corpus::Corpus::Create(folder.Corpus()));
  corpus::AddOptions options;
  options.name = labels[std::string(kNameKey)];
  labels.erase(std::string(kNameKey));
  options.labels = std::move(labels);
  CULPRIT_TRY(corpus.Add(path, options));
  return {};
}

// The dump with its units as instances, as a file of its own.
Status AddWithUnits(const StateFolder& folder, const std::string& dump, const Labels& labels,
                    std::span<const guard::UnitReport> seen) {
  const std::string whole = dump + ".whole";
  const Status added = [&]() -> Status {
    CULPRIT_ASSIGN(const trace::TraceReader units, trace::TraceReader::Open(UnitsBeside(dump)));
    CULPRIT_ASSIGN(const trace::TraceReader recording, trace::TraceReader::Open(dump));
    CULPRIT_TRY(guard::AddUnits(units, recording, whole, Overwrite::kAllow));
    if (!seen.empty()) {
      CULPRIT_ASSIGN(trace::Trace trace, trace::ReadTrace(whole));
      if (FillFromLooks(seen, trace) > 0) {
        CULPRIT_TRY(trace::WriteTrace(trace, whole, Overwrite::kAllow));
      }
    }
    return AddToCorpus(folder, whole, labels);
  }();
  std::error_code ignored;
  std::filesystem::remove(whole, ignored);
  return added;
}

}  // namespace

Status TakeInDump(const StateFolder& folder, const std::string& dump,
                  std::span<const guard::UnitReport> seen) {
  std::error_code ignored;
  Labels labels = {{std::string(kNameKey), "left-" + std::filesystem::path(dump).stem().string()}};
  // Labels are written last: with them the units are whole.
  if (const auto text = ReadWholeFile(LabelsBeside(dump)); text.ok()) {
    labels = ParseLabels(text.value());
    CULPRIT_TRY(AddWithUnits(folder, dump, labels, seen));
  } else {
    CULPRIT_TRY(AddToCorpus(folder, dump, labels));
  }
  for (const std::string& path : {dump, LabelsBeside(dump), UnitsBeside(dump)}) {
    std::filesystem::remove(path, ignored);
  }
  return {};
}

Intake::Intake(const StateFolder& folder, const guard::Profile& profile, IntakeOptions options,
               Dump dump)
    : folder_(folder),
      profile_(profile),
      options_(options),
      dump_(std::move(dump)),
      worker_([this] { Work(); }) {}

Intake::~Intake() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  worker_.join();
}

bool Intake::Take(SlowUnit unit) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kQueue) return false;
    queue_.push_back(std::move(unit));
  }
  wake_.notify_all();
  return true;
}

Intake::Counts Intake::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::optional<SlowUnit> Intake::Next() {
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return stop_ || !queue_.empty(); };
  if (left_) {
    wake_.wait_for(lock, std::chrono::nanoseconds(options_.again_ns), ready);
  } else {
    wake_.wait(lock, ready);
  }
  if (queue_.empty()) return std::nullopt;
  SlowUnit unit = std::move(queue_.front());
  queue_.pop_front();
  return unit;
}

void Intake::Work() {
  // Behind whoever has work to do; of Linux, where a thread has a priority of its own.
  static_cast<void>(setpriority(PRIO_PROCESS, 0, kNice));
  for (;;) {
    const std::optional<SlowUnit> unit = Next();
    if (unit) {
      const Status brought = Bring(*unit);
      left_ = left_ || !brought.ok();
      Count(brought);
    } else if (left_) {
      BringLeft();
    }
    Result<uint64_t> evicted = Evict(folder_.Corpus(), options_.max_corpus_bytes);
    const std::lock_guard lock(mutex_);
    if (evicted.ok()) counts_.evicted += evicted.value();
    if (stop_ && queue_.empty()) return;
  }
}

void Intake::Count(const Status& brought) {
  const std::lock_guard lock(mutex_);
  ++counts_.done;
  ++(brought.ok() ? counts_.taken : counts_.failed);
  if (!brought.ok()) counts_.last_error = brought.error().ToString();
}

// Of every scenario that has a slow unit in the trace.
std::string Intake::ThresholdText(const std::vector<guard::UnitReport>& seen) const {
  std::map<std::string, uint64_t> thresholds;
  for (const guard::UnitReport& report : seen) {
    // One that hangs is reported before it is past its threshold, and is a symptom too.
    const uint64_t bound_ns = std::min(report.threshold_ns, report.wall_ns);
    const auto [it, first] =
        thresholds.try_emplace(guard::ScenarioName(profile_, report.type), bound_ns);
    if (!first) it->second = std::min(it->second, bound_ns);
  }
  std::string text;
  for (const auto& [scenario, threshold_ns] : thresholds) {
    text += (text.empty() ? "" : ";") + scenario + "=" + std::to_string(threshold_ns);
  }
  return text;
}

void Intake::BringLeft() {
  left_ = false;
  for (const std::string& dump : folder_.LeftDumps()) {
    const bool taken = TakeInDump(folder_, dump).ok();
    left_ = left_ || !taken;
    const std::lock_guard lock(mutex_);
    counts_.taken += taken ? 1 : 0;
  }
}

Status Intake::Bring(const SlowUnit& unit) {
  // What happened last is still on its way through the recorder's ring.
  std::this_thread::sleep_for(std::chrono::nanoseconds(options_.settle_ns));
  CULPRIT_ASSIGN(const std::string dump, dump_());
  guard::UnitTraceMaker maker(profile_);
  std::vector<guard::UnitReport> seen = unit.others;
  seen.push_back(unit.report);
  guard::UnitReport& slow = seen.back();
  // One that still hangs is in the trace as far as it has come.
  slow.state = guard::UnitReport::State::kEnded;
  for (const guard::UnitReport& report : seen) {
    if (&report == &slow || report.type != guard::wire::kWholeIteration) maker.Add(report);
  }
  for (const PassedUnit& passed : unit.around) maker.Add(passed.pid, {&passed.sample, 1});
  CULPRIT_TRY(maker.Write(UnitsBeside(dump), Overwrite::kAllow));
  const Labels labels = {{std::string(kNameKey), TraceName(slow)},
                         {corpus::kSlowTypeLabel, slow.type_name},
                         {corpus::kThresholdsLabel, ThresholdText(seen)}};
  CULPRIT_TRY(WriteWholeFile(LabelsBeside(dump), LabelText(labels), Overwrite::kAllow));
  return TakeInDump(folder_, dump, seen);
}

}  // namespace culprit::watch
