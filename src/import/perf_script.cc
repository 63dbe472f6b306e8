// SPDX-License-Identifier: Apache-2.0
//
// perf script: text that people paste and attach. A record is a head line
// (perf_script_line.h), its stack lines (perf_script_frames.h) and a blank line.
//
// Of several sampled events one stands for CPU time: a clock or cycles if there
// is one in the first megabyte, else the first; the others are counted and left
// out, because adding them up would count time twice. A clock's period is in
// nanoseconds; of other events only a frequency tells the time of a sample
// (-F in the header or freq= in the event's name), else the default does.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>

#include "assemble/assembler.h"
#include "base/text.h"
#include "import/bytes_search.h"
#include "import/importers.h"
#include "import/perf_script_frames.h"
#include "import/perf_script_line.h"
#include "import/text_scan.h"
#include "import/tracepoint_text.h"

namespace culprit::import_ {
namespace {

using assemble::Assembler;
using assemble::kNoTid;

constexpr size_t kSurveyBytes = 1 << 20;

bool IsClock(std::string_view base) { return base == "cpu-clock" || base == "task-clock"; }
bool IsTimeLike(std::string_view base) {
  return IsClock(base) || base == "cycles" || base == "cpu-cycles" || base == "ref-cycles" ||
         base == "cycles-ct";
}

// What the first megabyte tells: the machine, and which event stands for time.
struct Survey {
  std::string sample_event;
  int64_t period_ns = 0;  // from a frequency; 0: not said
  std::string machine;
  std::string kernel;
  std::string arch;
  uint32_t cpus = 0;
};

void SurveyFrequency(std::string_view text, std::string_view key, Survey& survey) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos || survey.period_ns != 0) return;
  std::string_view digits = TrimLeft(text.substr(at + key.size()));
  size_t length = 0;
  while (length < digits.size() && IsDigit(digits[length])) ++length;
  const auto hertz = ParseDecimal(digits.substr(0, length));
  if (hertz && *hertz > 0 && *hertz <= kNsPerSecond) survey.period_ns = kNsPerSecond / *hertz;
}

void SurveyComment(std::string_view line, Survey& survey) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view key = Trim(line.substr(1, colon - 1));
  const std::string_view value = Trim(line.substr(colon + 1));
  if (key == "hostname") survey.machine = value;
  if (key == "os release") survey.kernel = value;
  if (key == "arch") survey.arch = value;
  if (key == "nrcpus online") {
    const auto cpus = ParseDecimal(value);
    if (cpus && *cpus > 0 && *cpus < assemble::kNoCpu) survey.cpus = static_cast<uint32_t>(*cpus);
  }
  if (key == "cmdline") {
    SurveyFrequency(value, " -F ", survey);
    SurveyFrequency(value, " --freq ", survey);
    SurveyFrequency(value, " --freq=", survey);
  }
}

Result<Survey> SurveyInput(const Bytes& bytes) {
  Survey survey;
  BytesReader reader(bytes);
  std::string line;
  bool found_time = false;
  while (reader.offset() < kSurveyBytes) {
    CULPRIT_ASSIGN(const bool more, reader.Line(line));
    if (!more) break;
    if (line.starts_with('#')) SurveyComment(line, survey);
    if (line.empty() || line.front() == '#' || line.front() == '\t') continue;
    auto head = ParsePerfScriptHead(line, true);
    if (!head) head = ParsePerfScriptHead(line, false);
    if (!head || IsTracepoint(head->event) || head->event.starts_with("PERF_RECORD_")) continue;
    const bool time_like = IsTimeLike(BaseEvent(head->event));
    if (survey.sample_event.empty() || (time_like && !found_time)) {
      survey.sample_event = head->event;
      SurveyFrequency(head->event, "freq=", survey);
    }
    found_time = found_time || time_like;
  }
  return survey;
}

// The threads that a recording of some processes tells of: all that its events
// are of. Null if it is of the whole machine, as the idle task's switches show.
Result<std::shared_ptr<const std::unordered_set<int64_t>>> RecordedThreads(const Bytes& bytes) {
  auto recorded = std::make_shared<std::unordered_set<int64_t>>();
  BytesReader reader(bytes);
  for (std::string line;;) {
    CULPRIT_ASSIGN(const bool more, reader.Line(line));
    if (!more) break;
    if (line.empty() || line.front() == '#' || line.front() == '\t') continue;
    const auto head = ParsePerfScriptHead(line, true);
    if (!head) continue;
    if (head->tid > 0) recorded->insert(head->tid);
    if (head->tid == 0 && head->event.ends_with("sched_switch"))
      return std::shared_ptr<const std::unordered_set<int64_t>>();
  }
  return std::shared_ptr<const std::unordered_set<int64_t>>(std::move(recorded));
}

class PerfScriptReader {
 public:
  PerfScriptReader(const Bytes& bytes, const ImportOptions& options, Survey survey,
                   const TracepointOptions& tracepoints, trace::TraceWriter& writer,
                   Diagnostics& diagnostics)
      : reader_(bytes),
        options_(options),
        survey_(std::move(survey)),
        writer_(writer),
        diagnostics_(diagnostics),
        assembler_(writer),
        tracepoints_(writer, assembler_, diagnostics, tracepoints),
        frames_(writer.dictionary()) {}

  Status Run(bool has_switch_events);

 private:
  Status Line(std::string_view line, uint64_t offset);
  void Begin(const PerfScriptHead& head, uint64_t offset);
  Status Flush();
  Status Sample(const std::vector<trace::FrameId>& frames);
  Status Record(std::string_view name);
  Status Switched(std::string_view payload);
  int64_t PeriodNs() const;

  BytesReader reader_;
  const ImportOptions& options_;
  const Survey survey_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  Assembler assembler_;
  TracepointText tracepoints_;
  FrameLines frames_;
  bool has_switch_events_ = false;
  // The record being read; its views point into head_line_.
  bool in_record_ = false;
  std::string head_line_;
  PerfScriptHead head_;
  uint64_t head_offset_ = 0;
  uint64_t records_ = 0;
  uint64_t samples_ = 0;
  int64_t next_time_ns_ = 0;  // for the dialect without times
};

int64_t PerfScriptReader::PeriodNs() const {
  if (IsClock(BaseEvent(head_.event)) && head_.period.value_or(0) > 1 &&
      *head_.period <= 3600 * kNsPerSecond) {
    return *head_.period;
  }
  return survey_.period_ns != 0 ? survey_.period_ns : options_.default_period_ns;
}

void PerfScriptReader::Begin(const PerfScriptHead& head, uint64_t offset) {
  in_record_ = true;
  head_offset_ = offset;
  head_ = head;
  if (!head.time_ns) {
    head_.time_ns = next_time_ns_;
    next_time_ns_ += PeriodNs();
  }
}

Status PerfScriptReader::Line(std::string_view line, uint64_t offset) {
  if (line.empty()) return Flush();
  if (line.front() == '#') return {};
  if (line.front() != '\t') {
    const bool has_time = ParsePerfScriptHead(line, true).has_value();
    if (has_time || (!in_record_ && ParsePerfScriptHead(line, false))) {
      CULPRIT_TRY(Flush());
      head_line_ = line;
      Begin(*ParsePerfScriptHead(head_line_, has_time), offset);
      return {};
    }
  }
  if (in_record_ && (frames_.Add(line) || IsSpace(line.front()))) return {};
  diagnostics_.Count("line that perf script does not write", 1, offset);
  return {};
}

Status PerfScriptReader::Flush() {
  if (!in_record_) return {};
  in_record_ = false;
  ++records_;
  const bool tracepoint = IsTracepoint(head_.event);
  // Without stacks perf prints the address on the head line.
  if (!tracepoint && !head_.payload.empty()) frames_.Add(head_.payload);
  const std::vector<trace::FrameId> frames = frames_.Take(tracepoint);
  if (head_.event.starts_with("PERF_RECORD_")) return Record(head_.event.substr(12));
  if (!tracepoint) return Sample(frames);
  return tracepoints_.Feed({.time_ns = *head_.time_ns,
                            .cpu = head_.cpu,
                            .pid = head_.pid,
                            .tid = head_.tid,
                            .comm = head_.comm,
                            .name = head_.event.substr(head_.event.rfind(':') + 1),
                            .payload = head_.payload,
                            .offset = head_offset_,
                            .stack = frames});
}

Status PerfScriptReader::Sample(const std::vector<trace::FrameId>& frames) {
  if (head_.event != survey_.sample_event) {
    diagnostics_.Count("sample of another event than " + survey_.sample_event, 1, head_offset_);
    return {};
  }
  if (head_.tid < 0) {
    diagnostics_.Count("sample of no thread", 1, head_offset_);
    return {};
  }
  tracepoints_.Name(head_.pid, head_.tid, head_.comm);
  const int64_t period_ns = PeriodNs();
  if (samples_++ == 0) writer_.metadata().sample_period_ns = period_ns;
  return assembler_.Sample({.time_ns = *head_.time_ns,
                            .cpu = head_.cpu,
                            .tid = head_.tid,
                            .period_ns = period_ns,
                            .stack = tracepoints_.Stack(frames)});
}

// Side-band records: "(7:8):(1:1)" of FORK and EXIT, ": ls:7/8" of COMM.
Status PerfScriptReader::Record(std::string_view name) {
  std::string_view text = head_.payload;
  if (name == "FORK" || name == "EXIT") {
    const size_t colon = text.find(':');
    const size_t close = text.find(')');
    if (text.empty() || text.front() != '(' || colon > close || close == std::string_view::npos) {
      return {};
    }
    const auto pid = ParseDecimal(text.substr(1, colon - 1));
    const auto tid = ParseDecimal(text.substr(colon + 1, close - colon - 1));
    if (!pid || !tid || *tid <= 0) return {};
    if (name == "EXIT") {
      assembler_.Exit(*head_.time_ns, *tid);
    } else {
      assembler_.Fork(*head_.time_ns, head_.tid, *pid, *tid);
    }
    return {};
  }
  if (name == "COMM") {
    const size_t colon = text.rfind(':');
    const size_t begin = text.find(": ");
    if (colon != std::string_view::npos && begin != std::string_view::npos && begin < colon) {
      tracepoints_.Name(head_.pid, head_.tid, Trim(text.substr(begin + 2, colon - begin - 2)));
    }
    return {};
  }
  if (name.starts_with("SWITCH") && !has_switch_events_) return Switched(text);
  return {};
}

// "OUT", "OUT preempt", "IN"; system-wide also "next pid/tid: 7/8". The other
// side of a switch that names only one is not known.
Status PerfScriptReader::Switched(std::string_view payload) {
  assemble::SwitchFact fact{.time_ns = *head_.time_ns, .cpu = head_.cpu};
  const std::string_view direction = TakeToken(payload);
  const size_t slash = payload.rfind('/');
  const auto other =
      slash == std::string_view::npos ? std::nullopt : ParseDecimal(payload.substr(slash + 1));
  if (direction == "OUT") {
    fact.prev_tid = head_.tid;
    fact.prev_runnable = payload.starts_with("preempt");
    fact.next_tid = other.value_or(kNoTid);
    return assembler_.Switch(fact);
  }
  // System-wide, the OUT before it has said both sides.
  if (direction != "IN" || other) return {};
  fact.next_tid = head_.tid;
  return assembler_.Switch(fact);
}

Status PerfScriptReader::Run(bool has_switch_events) {
  has_switch_events_ = has_switch_events;
  trace::Metadata& metadata = writer_.metadata();
  metadata.source = "perf script";
  metadata.machine = survey_.machine;
  metadata.kernel = survey_.kernel;
  metadata.arch = survey_.arch;
  metadata.cpus = survey_.cpus;
  if (!survey_.sample_event.empty()) metadata.properties["sample.event"] = survey_.sample_event;
  std::string line;
  for (;;) {
    const uint64_t offset = reader_.offset();
    CULPRIT_ASSIGN(const bool more, reader_.Line(line));
    if (!more) break;
    if (reader_.cut()) diagnostics_.Count("line too long, cut", 1, offset);
    CULPRIT_TRY(Line(line, offset));
  }
  CULPRIT_TRY(Flush());
  CULPRIT_TRY(assembler_.Finish());
  diagnostics_.Merge(assembler_.diagnostics());
  if (records_ == 0) return Error{.message = "no record of perf script in it"};
  return {};
}

Match SniffPerfScript(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  size_t records = 0;
  size_t others = 0;
  Match match = Match::kNo;
  while (!head.empty() && records + others < 100) {
    const size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (line.empty() || line.front() == '#' || line.front() == '\t') continue;
    if (ParsePerfScriptHead(line, true)) {
      ++records;
      match = Match::kLikely;
    } else if (ParsePerfScriptHead(line, false)) {
      ++records;
      match = std::max(match, Match::kMaybe);
    } else if (!IsSpace(line.front()) &&
               !ParseHexadecimal(Trim(line).substr(0, Trim(line).find(' ')))) {
      // Below a frame its source line may stand, after spaces.
      ++others;
    }
  }
  return records > others ? match : Match::kNo;
}

Status ReadPerfScript(const Source& source, const ImportOptions& options,
                      trace::TraceWriter& writer, Diagnostics& diagnostics) {
  const Bytes& bytes = source.bytes();
  CULPRIT_ASSIGN(Survey survey, SurveyInput(bytes));
  TracepointOptions tracepoints;
  CULPRIT_ASSIGN(const bool waking, Contains(bytes, "sched_waking:"));
  CULPRIT_ASSIGN(const bool switches, Contains(bytes, "sched_switch:"));
  tracepoints.wakeups_wake = !waking;
  if (switches) {
    CULPRIT_ASSIGN(tracepoints.recorded, RecordedThreads(bytes));
  }
  if (const auto arch = trace::SyscallAbiOf(survey.arch)) {
    tracepoints.arch = *arch;
    tracepoints.arch_known = true;
  }
  PerfScriptReader reader(bytes, options, std::move(survey), tracepoints, writer, diagnostics);
  const Status status = reader.Run(switches);
  if (status.ok()) return status;
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer PerfScriptImporter() {
  return {.name = "perf-script",
          .summary = "text of perf script, samples and tracepoints",
          .sniff = SniffPerfScript,
          .read = ReadPerfScript};
}

}  // namespace culprit::import_
