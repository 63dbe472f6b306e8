// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands.h"
#include "cli/live_flags.h"
#include "cli/stop_signals.h"
#include "cli/top_rows.h"
#include "cli/top_screen.h"
#include "cli/top_text.h"
#include "record/live_view.h"

namespace culprit::cli {
namespace {

constexpr size_t kHeadLines = 9;
constexpr size_t kFewestRows = 3;
constexpr int64_t kShortestNs = 100'000'000;
constexpr int64_t kLongestWindowNs = 300 * kNsPerSecond;

template <class Choice>
Choice ChoiceOf(const std::string& text, int count) {
  for (int i = 0; i < count; ++i) {
    if (Name(static_cast<Choice>(i)) == text) return static_cast<Choice>(i);
  }
  return Choice();
}

Result<record::LiveOptions> ReadTop(const Arguments& arguments) {
  record::LiveOptions options;
  CULPRIT_ASSIGN(options.target, ReadTarget(arguments));
  if (options.target.empty()) options.target.whole_system = true;
  options.interval_ns = arguments.DurationNs("--interval");
  options.window_ns = arguments.DurationNs("--window");
  if (options.interval_ns < kShortestNs || options.window_ns < kShortestNs ||
      options.window_ns > kLongestWindowNs) {
    return Error{.message = "--interval and --window are at least 100ms, --window at most 5m"};
  }
  CULPRIT_ASSIGN(options.budget, ReadBudget(arguments));
  options.tier = ReadTier(arguments);
  return options;
}

template <class Choice>
Choice Next(Choice choice, int count) {
  return static_cast<Choice>((static_cast<int>(choice) + 1) % count);
}

// The loop: look, show, let the recording go on, hear keys.
class TopLoop {
 public:
  TopLoop(record::LiveView& view, const record::LiveOptions& live, const Arguments& arguments,
          const StopSignals& signals, Output& output)
      : view_(view), live_(live), arguments_(arguments), signals_(signals), output_(output) {
    options_.by = ChoiceOf<TopBy>(arguments.Text("--by"), 5);
    options_.idle = arguments.Has("--idle");
    left_ = arguments.Number("--count");
    endless_ = left_ == 0;
  }

  Status Run() {
    while (endless_ || left_-- > 0) {
      CULPRIT_TRY(view_.Run(live_.interval_ns, [this] { return HearKeys(); }));
      if (IsOver()) break;
      if (!paused_ || !table_) CULPRIT_TRY(Look());
      if (!screen_.Show(Page())) break;
      asked_ = false;
    }
    return {};
  }

 private:
  bool IsOver() const { return signals_.asked() || quit_; }

  Status Look() {
    CULPRIT_ASSIGN(const trace::Trace* trace, view_.Look());
    table_ = MakeTop(*trace, options_);
    return {};
  }

  // True if the recording should be left for a moment.
  bool HearKeys() {
    for (char key = screen_.Key(); key != 0; key = screen_.Key()) {
      asked_ = true;
      if (key == 'q') quit_ = true;
      if (key == 'p') paused_ = !paused_;
      if (key == 'b') options_.by = Next(options_.by, 5);
      if (key == 's') options_.sort = Next(options_.sort, 3);
      if (key == 'w') options_.show = Next(options_.show, 3);
      if (key == 'b' || key == 's' || key == 'w') table_.reset();
    }
    return IsOver() || asked_;
  }

  std::string Page() {
    TopPage page = {.table = *table_, .options = options_, .cost = cost_};
    cost_ = view_.cost();
    page.target = Describe(live_.target);
    page.tier = view_.tier();
    page.rows = arguments_.Number("--rows");
    page.keys = screen_.active();
    page.paused = paused_;
    if (arguments_.Has("--json")) return TopJson(page);
    if (!screen_.active()) return TopText(page, output_.width(), output_.color()) + "\n";
    const size_t height = screen_.height();
    if (!arguments_.Has("--rows")) {
      page.rows = std::max(kFewestRows, height - std::min(height, kHeadLines + 2));
    }
    return TopText(page, screen_.width(), output_.color());
  }

  record::LiveView& view_;
  const record::LiveOptions& live_;
  const Arguments& arguments_;
  const StopSignals& signals_;
  Output& output_;
  TopScreen screen_;
  TopOptions options_;
  std::optional<TopTable> table_;
  record::LiveCost cost_;
  uint64_t left_ = 0;
  bool endless_ = false;
  bool quit_ = false;
  bool paused_ = false;
  bool asked_ = false;
};

Result<int> RunTop(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const record::LiveOptions live, ReadTop(arguments));
  const StopSignals signals;
  CULPRIT_ASSIGN(const std::unique_ptr<record::LiveView> view, record::LiveView::Start(live));
  CULPRIT_TRY(TopLoop(*view, live, arguments, signals, output).Run());
  return 0;
}

}  // namespace

Command TopCommand() {
  return {
      .name = "top",
      .summary = "show what threads wait for and run, on this machine, as it happens",
      .operands = "",
      .examples = {{"sudo culprit top", "the whole machine, refreshed every two seconds"},
                   {"sudo culprit top --comm mariadbd --by function", "where one program waits"},
                   {"sudo culprit top --pid 1234 --count 3 --json", "three looks, for scripts"}},
      .flags = {{.name = "--pid",
                 .letter = 'p',
                 .kind = ValueKind::kText,
                 .value = "PID",
                 .help = "this process and its children; may be repeated"},
                {.name = "--comm",
                 .kind = ValueKind::kText,
                 .value = "NAME",
                 .help = "processes of this name, also later ones; up to four"},
                {.name = "--cgroup",
                 .kind = ValueKind::kText,
                 .value = "PATH",
                 .help = "the processes of this cgroup, also those that join it later"},
                {.name = "--system",
                 .letter = 'a',
                 .help = "every thread; so without a target, too"},
                {.name = "--by",
                 .kind = ValueKind::kChoice,
                 .value = "WHAT",
                 .help = "what a row is",
                 .default_text = "component",
                 .choices = {"component", "function", "pattern", "thread", "process"}},
                {.name = "--interval",
                 .kind = ValueKind::kDuration,
                 .value = "TIME",
                 .help = "from one look to the next",
                 .default_text = "2s"},
                {.name = "--window",
                 .kind = ValueKind::kDuration,
                 .value = "TIME",
                 .help = "how much of the past a look covers",
                 .default_text = "10s"},
                {.name = "--count",
                 .letter = 'n',
                 .kind = ValueKind::kNumber,
                 .value = "N",
                 .help = "end after this many looks; 0: go on",
                 .default_text = "0"},
                {.name = "--rows",
                 .kind = ValueKind::kNumber,
                 .value = "N",
                 .help = "so many rows; on a terminal as many as there is room for",
                 .default_text = "20"},
                {.name = "--idle", .help = "count waits for the next request, too"},
                {.name = "--json", .help = "one line of JSON a look"},
                {.name = "--budget",
                 .kind = ValueKind::kText,
                 .value = "SHARE",
                 .help = "what recording may cost of the threads' CPU time; 0: no bound",
                 .default_text = "3%"},
                {.name = "--tier",
                 .kind = ValueKind::kChoice,
                 .value = "TIER",
                 .help = "record in this way, not in the best there is",
                 .default_text = "best",
                 .choices = {"best", "bpf", "perf", "perf-own"}}},
      .details =
          "A row is a component (the module that waits or runs), a function, a pattern (the last "
          "frames of the program), a thread or a process. It says how long its threads waited, how "
          "often, the longest wait, how long they ran and were ready to; what most of the waiting "
          "was for, and who or which device ended most of it. Waits of event loops for the next "
          "request are not counted as waiting, but as idle.\n\n"
          "Keys: q quit, b another kind of row, s sort by time, number or longest wait, w waits, "
          "CPU or both, p pause. Where there is no terminal, blocks follow one another.",
      .run = &RunTop,
  };
}

}  // namespace culprit::cli
