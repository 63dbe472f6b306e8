// SPDX-License-Identifier: Apache-2.0
#include "watch/intake.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "corpus/corpus.h"
#include "guard/unit_export.h"
#include "trace/trace_reader.h"
#include "watch/eviction.h"

namespace culprit::watch {
namespace {

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

}  // namespace

Status TakeIn(const StateFolder& folder, const std::string& path, const std::string& name,
              const std::string& type) {
  CULPRIT_ASSIGN(corpus::Corpus corpus, corpus::Corpus::Create(folder.Corpus()));
  corpus::AddOptions options;
  options.name = name;
  if (!type.empty()) options.labels[kTypeLabel] = type;
  CULPRIT_TRY(corpus.Add(path, options));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return {};
}

Intake::Intake(const StateFolder& folder, const guard::Profile& profile, IntakeOptions options,
               Dump dump)
    : folder_(folder),
      profile_(profile),
      options_(std::move(options)),
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

void Intake::Work() {
  for (;;) {
    SlowUnit unit;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      unit = std::move(queue_.front());
      queue_.pop_front();
    }
    const Status brought = Bring(unit);
    Result<uint64_t> evicted = Evict(folder_.Corpus(), options_.max_corpus_bytes);
    const std::lock_guard lock(mutex_);
    if (brought.ok()) {
      ++counts_.taken;
    } else {
      ++counts_.failed;
      counts_.last_error = brought.error().ToString();
    }
    if (evicted.ok()) counts_.evicted += evicted.value();
  }
}

Status Intake::Bring(const SlowUnit& unit) {
  // What happened last is still on its way through the recorder's ring.
  std::this_thread::sleep_for(std::chrono::nanoseconds(options_.settle_ns));
  CULPRIT_ASSIGN(const std::string dump, dump_());
  guard::UnitTraceMaker maker(profile_);
  maker.Add(unit.report);
  for (const PassedUnit& passed : unit.around) maker.Add(passed.pid, {&passed.sample, 1});
  const std::string units = dump + ".units";
  const std::string whole = dump + ".whole";
  const auto clean = [&] {
    std::error_code ignored;
    std::filesystem::remove(units, ignored);
    std::filesystem::remove(whole, ignored);
  };
  const Status put = [&]() -> Status {
    CULPRIT_TRY(maker.Write(units, Overwrite::kAllow));
    CULPRIT_ASSIGN(const trace::TraceReader of_units, trace::TraceReader::Open(units));
    CULPRIT_ASSIGN(const trace::TraceReader recording, trace::TraceReader::Open(dump));
    CULPRIT_TRY(guard::AddUnits(of_units, recording, whole, Overwrite::kAllow));
    return TakeIn(folder_, whole, TraceName(unit.report), unit.report.type_name);
  }();
  clean();
  if (!put.ok()) return put;
  std::error_code ignored;
  std::filesystem::remove(dump, ignored);
  return {};
}

}  // namespace culprit::watch
