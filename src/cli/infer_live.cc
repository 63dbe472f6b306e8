// SPDX-License-Identifier: Apache-2.0
#include "cli/infer_live.h"

#include <algorithm>
#include <optional>

#include "base/glob.h"
#include "base/text.h"
#include "cli/live_flags.h"
#include "cli/stop_signals.h"
#include "cli/top_screen.h"
#include "episode/profile_file.h"
#include "episode/whole_calls.h"
#include "record/machine.h"
#include "trace/trace_reader.h"

namespace culprit::cli {
namespace {

constexpr int64_t kSliceNs = 1'000'000'000;
constexpr int64_t kShortestEveryNs = 100'000'000;
constexpr int64_t kLongestLiveNs = 3600 * kSliceNs;
// So many names the kernel programs look out for.
constexpr size_t kMostNames = 4;

Result<record::RecordTarget> ReadLiveTarget(const Arguments& arguments,
                                            const std::vector<std::string>& processes) {
  CULPRIT_ASSIGN(record::RecordTarget target, ReadTarget(arguments));
  if (!target.empty()) return target;
  const bool plain = std::none_of(processes.begin(), processes.end(), [](const std::string& name) {
    return name.find_first_of("*?[") != std::string::npos;
  });
  if (plain && !processes.empty() && processes.size() <= kMostNames) {
    target.names = processes;
  } else {
    target.whole_system = true;
  }
  return target;
}

class LiveInferrer {
 public:
  LiveInferrer(const Arguments& arguments, Output& output)
      : arguments_(arguments),
        output_(output),
        window_(arguments.DurationNs("--window")),
        every_ns_(arguments.DurationNs("--every")) {}

  Status Prepare();
  Status Run();

 private:
  Status ReadNormal();
  bool IsMeant(const std::string& process) const;
  episode::Symbol SymbolOf(int64_t arg0);
  void TakeSlice();
  Result<LiveInference> Look();
  bool Show(const LiveInference& look);
  // True when it should stop.
  bool IsOver();

  const Arguments& arguments_;
  Output& output_;
  StopSignals signals_;
  episode::Profile profile_;
  std::vector<std::string> processes_;
  record::RecordTarget target_;
  episode::CallNames whole_;
  std::optional<episode::SyscallSymbols> numbers_;
  std::vector<episode::Load> normals_;
  episode::LoadWindow window_;
  std::unique_ptr<record::CallCounter> counter_;
  std::optional<TopScreen> screen_;
  std::optional<episode::StreamRanking> shown_;
  int64_t every_ns_ = 0;
  int64_t slice_begin_ns_ = 0;
  bool quit_ = false;
};

Status LiveInferrer::ReadNormal() {
  std::vector<episode::SyscallLog> logs;
  for (const std::string& against : arguments_.All("--against")) {
    CULPRIT_ASSIGN(const trace::TraceReader reader, trace::TraceReader::Open(against));
    logs.push_back(episode::ReadSyscallLog(
        reader, {.processes = processes_, .default_arch = profile_.arch}, profile_.symbols));
    if (logs.back().syscalls == 0) {
      return Error{.message = "has no system calls of the processes that are meant",
                   .file = against};
    }
  }
  std::vector<const episode::SyscallLog*> sides;
  for (const episode::SyscallLog& log : logs) sides.push_back(&log);
  whole_ = episode::CallsToTakeWhole(profile_, sides, true);
  episode::TakeWhole(whole_, profile_);
  for (episode::SyscallLog& log : logs) {
    episode::TakeWhole(whole_, profile_.symbols, log);
    normals_.push_back(episode::LoadOf(log));
  }
  if (normals_.empty()) normals_.push_back(episode::LoadOf(profile_));
  return {};
}

Status LiveInferrer::Prepare() {
  const int64_t window_ns = arguments_.DurationNs("--window");
  if (every_ns_ < kShortestEveryNs || window_ns < kShortestEveryNs || window_ns > kLongestLiveNs) {
    return Error{.message = "--every and --window are at least 100ms, --window at most 1h"};
  }
  if (arguments_.Text("--method") == "paper") {
    return Error{.message = "--live ranks by excess only",
                 .hint = "the paper's ranking needs a recording: culprit record --syscalls"};
  }
  CULPRIT_ASSIGN(profile_, episode::ReadProfile(arguments_.Text("--profile")));
  processes_ = arguments_.All("--process");
  if (processes_.empty()) processes_ = profile_.processes;
  CULPRIT_ASSIGN(target_, ReadLiveTarget(arguments_, processes_));
  CULPRIT_TRY(ReadNormal());
  const std::optional<trace::SyscallAbi> abi = record::OwnSyscallAbi();
  numbers_.emplace(abi, profile_.symbols);
  if (abi != trace::SyscallAbiOf(std::string_view(profile_.arch))) {
    output_.Warn("the profile is of " + profile_.arch +
                 ": calls of the same meaning have different names here");
  }
  CULPRIT_ASSIGN(const double budget, ReadBudget(arguments_));
  CULPRIT_ASSIGN(counter_, record::CallCounter::Start({.target = target_, .budget = budget}));
  slice_begin_ns_ = record::MonotonicNs();
  return {};
}

// Whoever was named by id or cgroup is meant, whatever it is called.
bool LiveInferrer::IsMeant(const std::string& process) const {
  if (!arguments_.Has("--process") && !target_.whole_system && target_.names.empty()) return true;
  if (processes_.empty()) return true;
  return std::any_of(processes_.begin(), processes_.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, process); });
}

episode::Symbol LiveInferrer::SymbolOf(int64_t arg0) {
  const episode::Symbol symbol = numbers_->Of(arg0);
  const std::string_view call = episode::CallOf(profile_.symbols.Name(symbol));
  return whole_.contains(call) ? profile_.symbols.Intern(std::string(call)) : symbol;
}

void LiveInferrer::TakeSlice() {
  const record::CallSums sums = counter_->Take();
  const int64_t now_ns = record::MonotonicNs();
  std::vector<episode::CountedCall> calls;
  for (const record::CallSum& sum : sums.calls) {
    if (!IsMeant(sum.process)) continue;
    const episode::Symbol symbol = SymbolOf(sum.arg0);
    episode::CountedCall& call = calls.emplace_back();
    call = {.symbol = symbol, .error = sum.error, .calls = sum.calls, .dur_ns = sum.dur_ns};
    if (episode::NeverReturns(profile_.symbols.Name(symbol))) call.dur_ns = 0;
  }
  window_.Add(slice_begin_ns_, now_ns, sums.counted_ns, std::move(calls));
  slice_begin_ns_ = now_ns;
}

Result<LiveInference> LiveInferrer::Look() {
  CULPRIT_ASSIGN(const std::vector<record::OpenCall> open, counter_->Open());
  std::vector<episode::CountedCall> going_on;
  for (const record::OpenCall& call : open) {
    if (!IsMeant(call.process)) continue;
    going_on.push_back({.symbol = SymbolOf(call.arg0), .calls = 1, .dur_ns = call.dur_ns});
  }
  LiveInference look;
  look.wall_ns = record::WallNs();
  look.window_ns = window_.end_ns() - window_.begin_ns();
  look.target = record::Describe(target_);
  for (const std::string& against : arguments_.All("--against")) {
    look.against += (look.against.empty() ? "" : ", ") + against;
  }
  if (look.against.empty()) look.against = "the profile's totals";
  look.load = window_.Sum(going_on);
  look.ranking = episode::RankStream(profile_, look.load, normals_);
  look.cost = counter_->cost();
  return look;
}

// Where every look draws over the last, each is shown; else only news.
bool LiveInferrer::Show(const LiveInference& look) {
  if (arguments_.Has("--json")) return screen_->Show(LiveInferJson(look, profile_.symbols));
  if (!screen_->active() && shown_ && shown_->SameNames(look.ranking)) return true;
  shown_ = look.ranking;
  const size_t width = screen_->active() ? screen_->width() : output_.width();
  return screen_->Show(
      LiveInferText(look, profile_.symbols,
                    {.top = arguments_.Number("--top"), .width = width, .color = output_.color()}));
}

bool LiveInferrer::IsOver() {
  for (char key = screen_->Key(); key != 0; key = screen_->Key()) quit_ = quit_ || key == 'q';
  return quit_ || signals_.asked();
}

Status LiveInferrer::Run() {
  screen_.emplace();
  const uint64_t count = arguments_.Number("--count");
  for (uint64_t looks = 0; count == 0 || looks < count; ++looks) {
    const int64_t look_ns = record::MonotonicNs() + every_ns_;
    for (int64_t left_ns = every_ns_; left_ns > 0; left_ns = look_ns - record::MonotonicNs()) {
      CULPRIT_TRY(counter_->Run(std::min(left_ns, kSliceNs), [this] { return IsOver(); }));
      TakeSlice();
      if (IsOver()) return {};
    }
    CULPRIT_ASSIGN(const LiveInference look, Look());
    if (!Show(look)) return {};
  }
  return {};
}

}  // namespace

Result<int> RunInferLive(const Arguments& arguments, Output& output) {
  LiveInferrer inferrer(arguments, output);
  CULPRIT_TRY(inferrer.Prepare());
  CULPRIT_TRY(inferrer.Run());
  return 0;
}

}  // namespace culprit::cli
