// SPDX-License-Identifier: Apache-2.0
#include "record/live_view.h"

#include <poll.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "record/bpf_recording.h"
#include "record/flight_target.h"
#include "record/jit_names.h"
#include "record/live_names.h"
#include "record/machine.h"
#include "record/regulator.h"
#include "trace/trace_reader.h"

namespace culprit::record {
namespace {

constexpr int64_t kLookTickNs = 50'000'000;
constexpr int64_t kMapsAgeNs = 10'000'000'000;  // of the names of made code
constexpr size_t kMaxLiveStacks = 1 << 19;
constexpr size_t kMaxLiveThreads = 1 << 17;
constexpr double kLately = 0.3;  // the weight of the newest turn in what is shown

bool Reaches(const trace::Event& event, int64_t from_ns) { return event.end_ns() > from_ns; }

// ---- by the kernel programs ----

class BpfLiveView final : public LiveView {
 public:
  explicit BpfLiveView(const LiveOptions& options) : options_(options) {}

  Status Begin();
  Tier tier() const override { return Tier::kBpf; }
  Status Run(int64_t dur_ns, const std::function<bool()>& stop) override;
  Result<const trace::Trace*> Look() override;
  LiveCost cost() const override;

 private:
  Status Tick();
  bool IsFull() const;

  LiveOptions options_;
  std::unique_ptr<FlightTarget> target_;
  std::unique_ptr<BpfRecording> recording_;
  std::unique_ptr<Regulator> regulator_;
  std::unique_ptr<LiveNames> names_;
  std::unique_ptr<JitNames> jit_;
  int64_t maps_read_ns_ = 0;
  std::unique_ptr<trace::Trace> view_;
  std::unique_ptr<trace::Trace> shown_;  // the last one before a new begin
  int64_t tick_cpu_ns_ = 0;
  int64_t look_cpu_ns_ = 0;
  int64_t begin_ns_ = 0;
  double share_ = 0;
};

Status BpfLiveView::Begin() {
  recording_.reset();
  target_ = std::make_unique<FlightTarget>(options_.window_ns, options_.max_bytes);
  view_ = std::make_unique<trace::Trace>();
  names_ = std::make_unique<LiveNames>(target_->dictionary(), view_->dictionary);
  jit_ = std::make_unique<JitNames>(view_->dictionary);
  const BpfRecordingOptions recording = {.target = options_.target,
                                         .engine = {.sample_period_ns = options_.sample_period_ns},
                                         .budget = options_.budget};
  CULPRIT_ASSIGN(recording_, BpfRecording::Prepare(recording, 0, *target_));
  FillMachine(target_->metadata());
  regulator_ =
      std::make_unique<Regulator>(RegulatorOptions{.budget = options_.budget,
                                                   .sample_period_ns = options_.sample_period_ns,
                                                   .own_cpu_ns = [this] { return tick_cpu_ns_; }});
  CULPRIT_TRY(regulator_->Prepare(*recording_));
  recording_->Begin();
  regulator_->Begin(*recording_);
  begin_ns_ = MonotonicNs();
  look_cpu_ns_ = 0;
  return {};
}

Status BpfLiveView::Tick() {
  const int64_t before_ns = ThreadCpuNs();
  CULPRIT_TRY(recording_->Tick());
  recording_->TakeSeen();
  const Cost last = regulator_->last_turn();
  CULPRIT_TRY(regulator_->Turn(*recording_));
  if (regulator_->last_turn().wall_ns != last.wall_ns) {
    share_ += kLately * (Governor::Share(regulator_->last_turn()) - share_);
  }
  tick_cpu_ns_ += ThreadCpuNs() - before_ns;
  return {};
}

Status BpfLiveView::Run(int64_t dur_ns, const std::function<bool()>& stop) {
  const int64_t end_ns = MonotonicNs() + dur_ns;
  while (!stop()) {
    const int64_t left_ns = end_ns - MonotonicNs();
    if (left_ns <= 0) break;
    const int64_t sleep_ns = std::min({left_ns, kLookTickNs, regulator_->SleepNs()});
    poll(nullptr, 0, static_cast<int>(std::max<int64_t>(sleep_ns / 1'000'000, 1)));
    CULPRIT_TRY(Tick());
  }
  return {};
}

bool BpfLiveView::IsFull() const {
  const trace::Dictionary& dictionary = target_->dictionary();
  return dictionary.stacks().size() > kMaxLiveStacks ||
         dictionary.threads().size() > kMaxLiveThreads;
}

Result<const trace::Trace*> BpfLiveView::Look() {
  const int64_t before_ns = OwnCpuNs();
  shown_.reset();
  CULPRIT_TRY(recording_->Snapshot());
  const int64_t end_ns = recording_->end_ns();
  const std::vector<trace::Event> open = recording_->OpenTiles(end_ns);
  recording_->ForgetSnapshot();
  names_->Update();
  trace::Trace cut = target_->Cut(end_ns);
  view_->metadata = std::move(cut.metadata);
  view_->events = std::move(cut.events);
  for (trace::Event event : open) {
    if (!Reaches(event, view_->metadata.begin_ns)) continue;
    const int64_t event_end_ns = std::min(event.end_ns(), end_ns);
    event.time_ns = std::max(event.time_ns, view_->metadata.begin_ns);
    event.dur_ns = std::max<int64_t>(event_end_ns - event.time_ns, 0);
    view_->events.push_back(event);
  }
  if (end_ns - maps_read_ns_ > kMapsAgeNs) {
    jit_->Forget();
    maps_read_ns_ = end_ns;
  }
  for (trace::Event& event : view_->events) {
    event.stack = names_->Map(event.stack);
    event.stack = jit_->Map(event);
  }
  trace::SortByTime(view_->events);
  look_cpu_ns_ += OwnCpuNs() - before_ns;
  if (!IsFull()) return view_.get();
  // Rare: what was seen stays for this look, the next begins with nothing.
  shown_ = std::move(view_);
  CULPRIT_TRY(Begin());
  return shown_.get();
}

LiveCost BpfLiveView::cost() const {
  const Governor& governor = regulator_->governor();
  const double seconds = static_cast<double>(MonotonicNs() - begin_ns_) / 1e9;
  return {.share = share_,
          .look_ns = seconds > 0 ? static_cast<double>(look_cpu_ns_) / seconds : 0,
          .level = governor.level() == 0 ? std::string() : governor.Describe(),
          .lost = recording_->engine().ReadCounters().total.lost_records};
}

// ---- by perf events ----

class PerfLiveView final : public LiveView {
 public:
  PerfLiveView(const LiveOptions& options, Tier tier) : options_(options), tier_(tier) {}
  ~PerfLiveView() override {
    std::error_code code;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, code);
  }

  Status Begin();
  Tier tier() const override { return tier_; }
  Status Run(int64_t dur_ns, const std::function<bool()>& stop) override;
  Result<const trace::Trace*> Look() override { return &view_; }
  LiveCost cost() const override { return {.look_ns = cpu_ns_, .lost = lost_}; }

 private:
  LiveOptions options_;
  Tier tier_;
  std::string folder_;
  trace::Trace view_;
  double cpu_ns_ = 0;
  uint64_t lost_ = 0;
};

Status PerfLiveView::Begin() {
  std::string pattern = (std::filesystem::temp_directory_path() / "culprit-top-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return ErrnoError("make a folder", pattern);
  folder_ = pattern;
  return Run(1'000'000, [] { return false; });
}

Status PerfLiveView::Run(int64_t dur_ns, const std::function<bool()>& stop) {
  RecordOptions record;
  record.target = options_.target;
  record.path = folder_ + "/look.ctrace";
  record.overwrite = Overwrite::kAllow;
  record.duration_ns = dur_ns;
  record.sample_period_ns = options_.sample_period_ns;
  record.tier = tier_;
  const RecordListener listener = {.should_stop = stop};
  const int64_t before_ns = OwnCpuNs();
  CULPRIT_ASSIGN(const RecordOutcome outcome, Record(record, listener));
  if (outcome.error) return *outcome.error;
  CULPRIT_ASSIGN(view_, trace::ReadTrace(record.path));
  cpu_ns_ = static_cast<double>(OwnCpuNs() - before_ns) * 1e9 /
            static_cast<double>(std::max<int64_t>(outcome.dur_ns, 1));
  lost_ += outcome.lost;
  return {};
}

}  // namespace

Result<std::unique_ptr<LiveView>> LiveView::Start(const LiveOptions& options) {
  std::vector<Tier> tiers = {Tier::kBpf, Tier::kPerfSystem, Tier::kPerfOwn};
  if (options.tier) tiers = {*options.tier};
  std::optional<Error> first;
  for (const Tier tier : tiers) {
    Status status;
    std::unique_ptr<LiveView> view;
    if (tier == Tier::kBpf) {
      auto live = std::make_unique<BpfLiveView>(options);
      status = live->Begin();
      view = std::move(live);
    } else {
      auto live = std::make_unique<PerfLiveView>(options, tier);
      status = live->Begin();
      view = std::move(live);
    }
    if (status.ok()) return view;
    if (!first) first = status.error();
  }
  return *first;
}

}  // namespace culprit::record
