// SPDX-License-Identifier: Apache-2.0
//
// strace: system calls with their times, of one process or of many (-f). Calls
// that others interrupt in the output are joined from their two halves. Without
// -T a call's duration is not known and counts as zero; without any time stamp
// (-tt, -ttt, -r) calls are laid one after the other.
//
// strace writes names; numbers need the architecture, which it does not write.
// A name that only x86-64 has settles it (every program start has several);
// without one it is arm64, whose names all exist on x86-64.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "assemble/assembler.h"
#include "import/importer.h"
#include "import/importers.h"
#include "import/perf_script_frames.h"
#include "import/strace_line.h"
#include "import/text_scan.h"
#include "symbol/symbolizer.h"
#include "trace/syscall_operation.h"

namespace culprit::import_ {
namespace {

constexpr size_t kSurveyBytes = 4 << 20;
constexpr int64_t kDayNs = int64_t{86'400} * 1'000'000'000;
constexpr int64_t kMaxGapNs = int64_t{10} * 365 * kDayNs;
constexpr size_t kMaxTornLines = 4;

bool MakesThread(std::string_view name) {
  return name == "clone" || name == "clone3" || name == "fork" || name == "vfork";
}

struct Survey {
  trace::SyscallAbi arch = trace::SyscallAbi::kArm64;
  bool relative = false;  // times since the line before
  int64_t main_tid = 1;   // who the lines without a pid belong to
};

Result<Survey> SurveyInput(const Bytes& bytes) {
  Survey survey;
  BytesReader reader(bytes);
  std::string text;
  std::unordered_set<int64_t> children;
  std::optional<int64_t> main_tid;
  size_t timed = 0;
  size_t backwards = 0;
  int64_t last_ns = INT64_MIN;
  while (reader.offset() < kSurveyBytes) {
    CULPRIT_ASSIGN(const bool more, reader.Line(text));
    if (!more) break;
    const auto line = ParseStraceLine(text);
    if (!line) continue;
    if (!line->name.empty() &&
        trace::SyscallNumber(line->name, trace::SyscallAbi::kArm64) == trace::kNoSyscall &&
        trace::SyscallNumber(line->name, trace::SyscallAbi::kX86_64) != trace::kNoSyscall) {
      survey.arch = trace::SyscallAbi::kX86_64;
    }
    if (MakesThread(line->name) && line->result.value_or(-1) > 0) children.insert(*line->result);
    if (line->tid && !main_tid && !children.contains(*line->tid)) main_tid = line->tid;
    if (line->clock != StraceLine::Clock::kSeconds) continue;
    ++timed;
    if (line->time_ns < last_ns) ++backwards;
    last_ns = line->time_ns;
  }
  survey.main_tid = main_tid.value_or(1);
  // Seconds since the line before go up and down; since the epoch only up.
  survey.relative = timed != 0 && (backwards * 8 > timed || last_ns < kDayNs);
  return survey;
}

class StraceReader {
 public:
  StraceReader(const Bytes& bytes, const Survey& survey, trace::TraceWriter& writer,
               Diagnostics& diagnostics)
      : reader_(bytes),
        survey_(survey),
        writer_(writer),
        diagnostics_(diagnostics),
        assembler_(writer) {}

  Status Run();

 private:
  Status Line(std::string_view text, uint64_t offset);
  Status Call(const StraceLine& line, std::string_view text, uint64_t offset);
  Status Flush();
  void DropTorn();
  int64_t TimeOf(const StraceLine& line);
  int64_t NumberOf(std::string_view name, uint64_t offset);
  static int64_t WithOperation(int64_t number, const StraceLine& line);
  void AddFrame(const StraceFrame& frame);

  // A whole call, kept until its stack lines have come.
  struct Held {
    int64_t time_ns = 0;
    int64_t dur_ns = 0;
    int64_t tid = 0;
    int64_t number = 0;
    int64_t result = 0;
  };

  BytesReader reader_;
  const Survey survey_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  assemble::Assembler assembler_;
  std::optional<Held> held_;
  std::vector<trace::FrameId> frames_;  // leaf first
  // On a terminal the program's own output tears lines apart: a line that only
  // begins a call is kept until the next ones have ended it.
  std::string torn_;
  size_t torn_lines_ = 0;
  uint64_t torn_offset_ = 0;
  int64_t now_ns_ = 0;
  int64_t last_of_day_ns_ = -1;
  uint64_t lines_ = 0;
};

// Never goes back: strace writes lines in order, so an earlier time of day is
// the next day's.
int64_t StraceReader::TimeOf(const StraceLine& line) {
  if (line.clock == StraceLine::Clock::kSeconds) {
    if (!survey_.relative) {
      now_ns_ = line.time_ns;
    } else if (line.time_ns <= kMaxGapNs && now_ns_ <= INT64_MAX / 4) {
      now_ns_ += line.time_ns;
    }
  } else if (line.clock == StraceLine::Clock::kOfDay) {
    if (line.time_ns + kDayNs / 2 < last_of_day_ns_ && now_ns_ <= INT64_MAX / 4) now_ns_ += kDayNs;
    now_ns_ += line.time_ns - std::max<int64_t>(last_of_day_ns_, 0);
    last_of_day_ns_ = line.time_ns;
  }
  return now_ns_;
}

int64_t StraceReader::NumberOf(std::string_view name, uint64_t offset) {
  const int64_t number = trace::SyscallNumber(name, survey_.arch);
  if (number == trace::kNoSyscall)
    diagnostics_.Count("system call without a known number", 1, offset);
  return number;
}

int64_t StraceReader::WithOperation(int64_t number, const StraceLine& line) {
  const std::optional<size_t> argument = trace::OperationArgument(line.name);
  if (!argument) return number;
  const std::string_view text = StraceArgument(line.arguments, *argument);
  return trace::PackCall(number, trace::ParseOperation(line.name, text));
}

void StraceReader::AddFrame(const StraceFrame& text) {
  if (!held_ || frames_.size() >= kMaxStackFrames) return;
  trace::Dictionary& dictionary = writer_.dictionary();
  trace::Frame frame;
  const std::string module = ModuleName(text.module);
  if (!module.empty()) {
    frame.module = dictionary.InternModule(
        {.name = dictionary.Intern(module), .path = dictionary.Intern(text.module)});
  }
  if (text.function.empty()) {
    frame.offset = text.address;
  } else {
    frame.function = dictionary.Intern(symbol::Demangle(text.function));
  }
  frames_.push_back(dictionary.InternFrame(frame));
}

Status StraceReader::Flush() {
  if (!held_) return {};
  const Held held = *held_;
  held_.reset();
  std::reverse(frames_.begin(), frames_.end());
  const trace::StackId stack = writer_.dictionary().InternStack(frames_);
  frames_.clear();
  return assembler_.Syscall(held.time_ns, held.dur_ns, held.tid, held.number, held.result, stack);
}

Status StraceReader::Line(std::string_view text, uint64_t offset) {
  if (Trim(text).empty()) return {};
  if (const auto frame = ParseStraceFrame(text)) {
    AddFrame(*frame);
    return {};
  }
  CULPRIT_TRY(Flush());
  if (const auto line = ParseStraceLine(text)) {
    DropTorn();
    return Call(*line, text, offset);
  }
  if (BeginsStraceCall(text)) {
    DropTorn();
    torn_ = text;
    torn_lines_ = 1;
    torn_offset_ = offset;
    return {};
  }
  if (torn_lines_ == 0) {
    // "strace: Process 12 attached" and the traced program's own output.
    if (!text.starts_with("strace: ")) {
      diagnostics_.Count("line that strace does not write", 1, offset);
    }
    return {};
  }
  torn_.append(text);
  if (const auto line = ParseStraceLine(torn_)) {
    torn_lines_ = 0;
    return Call(*line, torn_, torn_offset_);
  }
  if (++torn_lines_ > kMaxTornLines) DropTorn();
  return {};
}

void StraceReader::DropTorn() {
  if (torn_lines_ != 0) diagnostics_.Count("system call whose end is missing", 1, torn_offset_);
  torn_lines_ = 0;
}

Status StraceReader::Call(const StraceLine& line, std::string_view text, uint64_t offset) {
  ++lines_;
  const int64_t tid = line.tid.value_or(survey_.main_tid);
  const int64_t time_ns = TimeOf(line);
  if (line.kind == StraceKind::kSignal) return {};
  if (line.kind == StraceKind::kExit) {
    assembler_.Exit(time_ns, tid);
    return {};
  }
  const int64_t number = NumberOf(line.name, offset);
  if (number == trace::kNoSyscall) return {};
  if (line.kind == StraceKind::kUnfinished) {
    return assembler_.SyscallEnter(time_ns, assemble::kNoCpu, tid, WithOperation(number, line));
  }
  if (line.kind == StraceKind::kResumed) {
    return assembler_.SyscallExit(time_ns, assemble::kNoCpu, tid, number, line.result.value_or(0));
  }
  if (!line.dur_ns && line.result) {
    diagnostics_.Count("system call without a duration (strace -T writes it)", 1, offset);
  }
  const std::string_view program = line.first_argument;
  if (line.name == "execve" && line.result == 0 && !program.empty()) {
    const std::string_view base = program.substr(program.rfind('/') + 1);
    assembler_.ProcessName(tid, base, program);
    assembler_.Name(tid, tid, base);
  }
  if (MakesThread(line.name) && line.result.value_or(-1) > 0) {
    const bool thread = text.find("CLONE_THREAD") != std::string_view::npos;
    assembler_.Fork(time_ns, tid, thread ? assemble::kNoTid : *line.result, *line.result);
  }
  held_ = Held{.time_ns = time_ns,
               .dur_ns = line.dur_ns.value_or(0),
               .tid = tid,
               .number = WithOperation(number, line),
               .result = line.result.value_or(0)};
  if (line.clock == StraceLine::Clock::kNone) now_ns_ += std::max<int64_t>(held_->dur_ns, 1);
  return {};
}

Status StraceReader::Run() {
  writer_.metadata().source = "strace";
  writer_.metadata().arch = trace::MachineName(survey_.arch);
  writer_.metadata().properties["syscalls.arch"] = "guessed from the names of the calls";
  std::string text;
  for (;;) {
    const uint64_t offset = reader_.offset();
    CULPRIT_ASSIGN(const bool more, reader_.Line(text));
    if (!more) break;
    if (reader_.cut()) diagnostics_.Count("line too long, cut", 1, offset);
    CULPRIT_TRY(Line(text, offset));
  }
  DropTorn();
  CULPRIT_TRY(Flush());
  CULPRIT_TRY(assembler_.Finish());
  diagnostics_.Merge(assembler_.diagnostics());
  if (lines_ == 0) return Error{.message = "no system call of strace in it"};
  return {};
}

Match SniffStrace(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  size_t calls = 0;
  size_t others = 0;
  while (!head.empty() && calls + others < 100) {
    const size_t end = std::min(head.find('\n'), head.size());
    const std::string_view text = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (Trim(text).empty() || ParseStraceFrame(text) || text.starts_with("strace: ")) continue;
    ++(ParseStraceLine(text) ? calls : others);
  }
  return calls > others * 2 ? Match::kLikely : Match::kNo;
}

Status ReadStrace(const Source& source, const ImportOptions&, trace::TraceWriter& writer,
                  Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const Survey survey, SurveyInput(source.bytes()));
  StraceReader reader(source.bytes(), survey, writer, diagnostics);
  const Status status = reader.Run();
  if (status.ok()) return status;
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer StraceImporter() {
  return {.name = "strace",
          .summary = "text of strace, best with -f -ttt -T",
          .sniff = SniffStrace,
          .read = ReadStrace};
}

}  // namespace culprit::import_
