// SPDX-License-Identifier: Apache-2.0
//
// Folded stacks ("collapsed"), what flame graphs are drawn from: a line is
// frames from caller to leaf, joined by ';', a blank, a value. There is no time
// in them, so a line becomes one event whose duration is its value, laid after
// the thread's event before. What the value means is not written either:
//
//   on CPU    samples, each of the default period
//   off CPU   microseconds, as bcc's offcputime writes; nanoseconds if one of
//             them would be longer than ten minutes (simpleperf)
//   # unit: samples|ns|us|ms|s in a line of the file settles it
//
// Off-CPU stacks are told by the file's name (offcpu, off-cpu, offwake) or by
// most of them ending where the kernel switches. They become waits whose waker
// is not known. The first frame is taken as the thread's name where it looks
// like one ("java", "nginx-812/815"). Memory: the dictionary, and a row a thread.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "import/importer.h"
#include "import/importers.h"
#include "import/perf_script_frames.h"
#include "import/text_scan.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

using trace::EventKind;

constexpr int64_t kTenMinutesUs = 600'000'000;
constexpr int64_t kMaxTotalNs = INT64_MAX / 8;
constexpr size_t kSniffLines = 200;

struct FoldedLine {
  std::string_view stack;
  double value = 0;
};

// "1.5e+06", as scripting languages print large sums.
std::optional<double> ParseWithExponent(std::string_view digits) {
  const size_t exponent = digits.find_first_of("eE");
  if (exponent == std::string_view::npos || !IsDigit(digits.front())) return {};
  if (digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return {};
  const auto value = ParseDouble(digits);
  constexpr double kLargest = 1e18;
  return value && *value >= 0 && *value <= kLargest ? value : std::nullopt;
}

std::optional<FoldedLine> ParseLine(std::string_view line) {
  line = Trim(line);
  const size_t blank = line.find_last_of(" \t");
  if (blank == std::string_view::npos || line.front() == '#') return {};
  const std::string_view digits = line.substr(blank + 1);
  if (const auto value = ParseWithExponent(digits)) {
    const FoldedLine out{.stack = Trim(line.substr(0, blank)), .value = *value};
    return out.stack.empty() ? std::nullopt : std::optional(out);
  }
  const size_t dot = digits.find('.');
  const auto whole = ParseDecimal(digits.substr(0, dot));
  if (!whole || *whole < 0) return {};
  FoldedLine out{.stack = Trim(line.substr(0, blank)), .value = static_cast<double>(*whole)};
  if (dot != std::string_view::npos) {
    const auto exact = ParseSecondsNs(digits);
    if (!exact) return {};
    out.value = static_cast<double>(*exact) / 1e9;
  }
  if (out.stack.empty()) return {};
  return out;
}

std::string_view LeafOf(std::string_view stack) { return stack.substr(stack.rfind(';') + 1); }

bool IsSwitchFrame(std::string_view leaf) {
  if (leaf.ends_with("_[k]")) leaf.remove_suffix(4);
  constexpr std::array<std::string_view, 8> kSwitches = {
      "schedule",    "__schedule",   "finish_task_switch", "schedule_timeout",
      "io_schedule", "do_nanosleep", "futex_wait_queue",   "schedule_hrtimeout_range"};
  return std::any_of(kSwitches.begin(), kSwitches.end(), [&](std::string_view name) {
    return leaf == name || (leaf.starts_with(name) && leaf[name.size()] == '.');
  });
}

// What one pass over the input tells.
struct Survey {
  bool off_cpu = false;
  double unit_ns = 0;
  std::string unit;  // as the trace's properties name it
};

std::optional<std::pair<double, std::string_view>> UnitOf(std::string_view text,
                                                          int64_t period_ns) {
  if (text == "ns") return std::pair(1.0, text);
  if (text == "us") return std::pair(1e3, text);
  if (text == "ms") return std::pair(1e6, text);
  if (text == "s") return std::pair(1e9, text);
  if (text == "samples") return std::pair(static_cast<double>(period_ns), text);
  return {};
}

Result<Survey> SurveyInput(const Source& source, const ImportOptions& options) {
  Survey survey;
  std::string name = source.name().substr(source.name().rfind('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const std::string_view word : {"offcpu", "off-cpu", "off_cpu", "offwake"}) {
    survey.off_cpu = survey.off_cpu || name.find(word) != std::string::npos;
  }
  BytesReader reader(source.bytes());
  std::string text;
  uint64_t stacks = 0;
  uint64_t switches = 0;
  double largest = 0;
  for (;;) {
    CULPRIT_ASSIGN(const bool more, reader.Line(text));
    if (!more) break;
    if (text.starts_with("# unit:")) {
      const auto unit = UnitOf(Trim(std::string_view(text).substr(7)), options.default_period_ns);
      if (unit) survey.unit_ns = unit->first;
      if (unit) survey.unit = unit->second;
    }
    const auto line = ParseLine(text);
    if (!line) continue;
    ++stacks;
    if (IsSwitchFrame(LeafOf(line->stack))) ++switches;
    largest = std::max(largest, line->value);
  }
  survey.off_cpu = survey.off_cpu || switches * 2 > stacks;
  if (survey.unit_ns != 0) return survey;
  if (!survey.off_cpu) {
    survey.unit_ns = static_cast<double>(options.default_period_ns);
    survey.unit = "samples";
  } else {
    const bool ns = largest > static_cast<double>(kTenMinutesUs);
    survey.unit_ns = ns ? 1 : 1e3;
    survey.unit = ns ? "ns, guessed" : "us, guessed";
  }
  return survey;
}

// A name of a program rather than of a function.
bool LooksLikeThread(std::string_view frame) {
  constexpr std::array<std::string_view, 7> kRoots = {
      "main", "_start", "__libc_start_main", "start_thread", "__clone", "clone", "clone3"};
  if (frame.empty() || std::find(kRoots.begin(), kRoots.end(), frame) != kRoots.end()) return false;
  return frame.find_first_of("(`!<[") == std::string_view::npos &&
         frame.find("::") == std::string_view::npos && !frame.ends_with("_[k]");
}

class FoldedReader {
 public:
  FoldedReader(const Bytes& bytes, const Survey& survey, trace::TraceWriter& writer,
               Diagnostics& diagnostics)
      : reader_(bytes),
        survey_(survey),
        writer_(writer),
        dictionary_(writer.dictionary()),
        diagnostics_(diagnostics) {}

  Status Run(const ImportOptions& options);

 private:
  struct Row {
    trace::ThreadId thread;
    int64_t next_ns = 0;
  };

  Status Add(const FoldedLine& line, uint64_t offset);
  Row& ThreadOf(std::string_view name);
  trace::FrameId Frame(std::string_view text);

  BytesReader reader_;
  const Survey& survey_;
  trace::TraceWriter& writer_;
  trace::Dictionary& dictionary_;
  Diagnostics& diagnostics_;
  std::unordered_map<std::string, Row> threads_;
  std::unordered_map<std::string, trace::FrameId> frames_;
  int64_t end_ns_ = 0;
};

// "nginx-812/815" and "nginx-812" have ids, "java" gets the next number.
FoldedReader::Row& FoldedReader::ThreadOf(std::string_view name) {
  const auto [it, is_new] = threads_.try_emplace(std::string(name));
  if (!is_new) return it->second;
  std::string_view comm = name;
  std::optional<int64_t> pid;
  std::optional<int64_t> tid;
  const size_t dash = name.rfind('-');
  if (dash != std::string_view::npos && dash != 0) {
    const std::string_view ids = name.substr(dash + 1);
    const size_t slash = ids.find('/');
    pid = ParseDecimal(ids.substr(0, slash));
    tid = slash == std::string_view::npos ? pid : ParseDecimal(ids.substr(slash + 1));
    if (tid) comm = name.substr(0, dash);
  }
  const auto next = static_cast<int64_t>(threads_.size());
  const StringId text = dictionary_.Intern(comm);
  const trace::ProcessId process =
      dictionary_.AddProcess({.pid = pid.value_or(tid.value_or(next)), .name = text});
  it->second.thread =
      dictionary_.AddThread({.tid = tid.value_or(next), .process = process, .name = text});
  return it->second;
}

// Marks that stackcollapse appends: _[k] kernel, _[i] inlined, _[j] just-in-time,
// _[w] the waker's; "lib`func" is DTrace's, "[lib.so]" a module without a name.
trace::FrameId FoldedReader::Frame(std::string_view text) {
  const auto known = frames_.find(std::string(text));
  if (known != frames_.end()) return known->second;
  const std::string key(text);
  trace::Frame frame;
  if (text.size() > 4 && text.substr(text.size() - 4, 2) == "_[" && text.ends_with(']')) {
    const char mark = text[text.size() - 2];
    if (mark == 'k') frame.flags |= trace::kKernelMode;
    if (mark == 'i') frame.flags |= trace::kInlined;
    if (mark == 'k' || mark == 'i' || mark == 'j' || mark == 'w') text.remove_suffix(4);
  }
  const size_t bang = text.find_first_of("`!");
  std::string module = (frame.flags & trace::kKernelMode) != 0 ? "[kernel]" : "";
  if (bang != std::string_view::npos && bang != 0 && bang + 1 < text.size()) {
    module = ModuleName(text.substr(0, bang));
    text.remove_prefix(bang + 1);
  }
  if (!module.empty()) {
    frame.module = dictionary_.InternModule({.name = dictionary_.Intern(module)});
  }
  frame.function = dictionary_.Intern(symbol::Demangle(text));
  return frames_[key] = dictionary_.InternFrame(frame);
}

Status FoldedReader::Add(const FoldedLine& line, uint64_t offset) {
  std::string_view stack = line.stack;
  const size_t first_end = stack.find(';');
  const std::string_view first = stack.substr(0, first_end);
  const bool named = first_end != std::string_view::npos && LooksLikeThread(first);
  Row& row = ThreadOf(named ? first : "all");
  if (named) stack.remove_prefix(first_end + 1);
  std::vector<trace::FrameId> frames;
  while (!stack.empty() && frames.size() < kMaxStackFrames) {
    const std::string_view frame = stack.substr(0, stack.find(';'));
    if (!frame.empty()) frames.push_back(Frame(frame));
    stack.remove_prefix(std::min(stack.size(), frame.size() + 1));
  }
  const double dur_ns = line.value * survey_.unit_ns;
  if (dur_ns > static_cast<double>(kMaxTotalNs - row.next_ns)) {
    diagnostics_.Count("stack with a value beyond all time", 1, offset);
    return {};
  }
  trace::Event event{.time_ns = row.next_ns,
                     .dur_ns = std::llround(dur_ns),
                     .thread = row.thread,
                     .stack = dictionary_.InternStack(frames)};
  if (survey_.off_cpu) {
    event.kind = EventKind::kWait;
    event.flags = trace::kWakerUnknown;
  }
  row.next_ns += event.dur_ns;
  end_ns_ = std::max(end_ns_, row.next_ns);
  return writer_.Add(event);
}

Status FoldedReader::Run(const ImportOptions& options) {
  trace::Metadata& metadata = writer_.metadata();
  metadata.source = survey_.off_cpu ? "folded stacks, off CPU" : "folded stacks";
  metadata.properties["folded.unit"] = survey_.unit;
  metadata.has_switches = survey_.off_cpu;
  if (!survey_.off_cpu) metadata.sample_period_ns = options.default_period_ns;
  std::string text;
  for (;;) {
    const uint64_t offset = reader_.offset();
    CULPRIT_ASSIGN(const bool more, reader_.Line(text));
    if (!more) break;
    if (reader_.cut()) diagnostics_.Count("line too long, cut", 1, offset);
    if (text.empty() || text.front() == '#') continue;
    const auto line = ParseLine(text);
    if (line) {
      CULPRIT_TRY(Add(*line, offset));
    } else {
      diagnostics_.Count("line that is no folded stack", 1, offset);
    }
  }
  metadata.end_ns = end_ns_;
  if (writer_.events() == 0) return Error{.message = "no folded stack in it"};
  return {};
}

Match SniffFolded(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  size_t stacks = 0;
  size_t with_callers = 0;
  size_t others = 0;
  while (!head.empty() && stacks + others < kSniffLines) {
    const size_t end = head.find('\n');
    // The last line may be cut by the end of what was read.
    if (end == std::string_view::npos && stacks != 0) break;
    const std::string_view text = head.substr(0, end);
    head.remove_prefix(std::min(text.size() + 1, head.size()));
    if (Trim(text).empty() || text.front() == '#') continue;
    const auto line = ParseLine(text);
    ++(line ? stacks : others);
    if (line && line->stack.find(';') != std::string_view::npos) ++with_callers;
  }
  if (stacks <= others * 9 || with_callers * 2 < stacks || with_callers == 0) return Match::kNo;
  return others == 0 ? Match::kLikely : Match::kMaybe;
}

Status ReadFolded(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                  Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const Survey survey, SurveyInput(source, options));
  FoldedReader reader(source.bytes(), survey, writer, diagnostics);
  const Status status = reader.Run(options);
  if (status.ok()) return status;
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer FoldedImporter() {
  return {.name = "folded",
          .summary = "folded stacks of flame graphs, on and off CPU",
          .sniff = SniffFolded,
          .read = ReadFolded};
}

}  // namespace culprit::import_
