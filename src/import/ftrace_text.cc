// SPDX-License-Identifier: Apache-2.0
//
// ftrace as text: the trace file of tracefs, trace-cmd report, atrace, and
// Android's systrace pages, which hold the same lines between HTML or inside a
// JavaScript string. Line heads are ftrace_line.h's, payloads tracepoint_text.h's.
//
// A kernel stack is a block of its own that follows the event it belongs to,
// possibly with events of other CPUs between. Where the input has such blocks,
// events are held back in a short window so that the stack finds its event.
#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>

#include "assemble/assembler.h"
#include "import/bytes_search.h"
#include "import/ftrace_line.h"
#include "import/importer.h"
#include "import/importers.h"
#include "import/perf_script_frames.h"
#include "import/text_scan.h"
#include "import/tracepoint_table.h"
#include "import/tracepoint_text.h"

namespace culprit::import_ {
namespace {

constexpr size_t kStackWindow = 256;

// A line kept until its stack may have come; `line` views into `text`.
struct HeldEvent {
  std::string text;
  FtraceLine line;
  uint64_t offset = 0;
  std::string device;
  std::vector<trace::FrameId> stack;  // leaf first
  bool has_user_stack = false;
};

// What runs in interrupt context on a CPU, as the irq events tell.
struct CpuWork {
  std::string irq;
  std::string softirq;
};

// A line of systrace's JavaScript string: "...\n\" with quotes escaped.
void Unescape(std::string& line) {
  if (!line.ends_with("\\n\\")) return;
  line.resize(line.size() - 3);
  size_t to = 0;
  for (size_t from = 0; from < line.size(); ++from) {
    if (line[from] == '\\' && from + 1 < line.size()) ++from;
    line[to++] = line[from];
  }
  line.resize(to);
}

class FtraceReader {
 public:
  FtraceReader(const Bytes& bytes, const TracepointOptions& tracepoints, bool has_stacks,
               trace::TraceWriter& writer, Diagnostics& diagnostics)
      : reader_(bytes),
        window_(has_stacks ? kStackWindow : 0),
        writer_(writer),
        diagnostics_(diagnostics),
        assembler_(writer),
        tracepoints_(writer, assembler_, diagnostics, tracepoints) {}

  Status Run();

 private:
  Status Line(std::string& text, uint64_t offset);
  bool StackLine(std::string_view text);
  void BeginStack(const FtraceLine& line);
  trace::FrameId Frame(std::string_view text);
  void Interrupts(const FtraceLine& line);
  std::string_view DeviceOn(uint16_t cpu) const;
  Status FlushTo(size_t count);
  void Other(std::string_view text, uint64_t offset);

  BytesReader reader_;
  const size_t window_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  assemble::Assembler assembler_;
  TracepointText tracepoints_;
  std::deque<HeldEvent> held_;
  HeldEvent* stack_owner_ = nullptr;  // whose stack lines come now
  bool in_stack_ = false;
  std::unordered_map<uint16_t, CpuWork> work_;
  uint64_t events_ = 0;
  bool html_ = false;
};

// " => func", " => func+0x10/0x20", " => func <ffff...>", " => func (ffff...)",
// " => func [ext4]", and of user stacks " => /lib/libc.so.6[+0x1234]".
trace::FrameId FtraceReader::Frame(std::string_view text) {
  trace::Dictionary& dictionary = writer_.dictionary();
  trace::Frame frame;
  const size_t bracket = text.find("[+0x");
  if (bracket != std::string_view::npos && text.ends_with(']')) {
    const std::string_view path = Trim(text.substr(0, bracket));
    const auto offset = ParseHexadecimal(text.substr(bracket + 2, text.size() - bracket - 3));
    frame.module = dictionary.InternModule(
        {.name = dictionary.Intern(ModuleName(path)), .path = dictionary.Intern(path)});
    frame.offset = offset.value_or(0);
    return dictionary.InternFrame(frame);
  }
  std::string_view rest = text;
  std::string_view name = TakeToken(rest);
  name = name.substr(0, name.find("+0x"));
  const bool module = rest.starts_with('[') && rest.find(']') != std::string_view::npos;
  frame.module = dictionary.InternModule(
      {.name = dictionary.Intern(module ? rest.substr(0, rest.find(']') + 1) : "[kernel]")});
  frame.flags = trace::kKernelMode;
  const auto address = ParseHexadecimal(name);
  if (address && name.size() >= 8) {
    frame.offset = *address;
  } else {
    frame.function = dictionary.Intern(name);
  }
  return dictionary.InternFrame(frame);
}

bool FtraceReader::StackLine(std::string_view text) {
  if (!in_stack_) return false;
  text = TrimLeft(text);
  if (!text.starts_with("=>")) return false;
  text = Trim(text.substr(2));
  if (stack_owner_ != nullptr && !text.empty() && stack_owner_->stack.size() < kMaxStackFrames) {
    stack_owner_->stack.push_back(Frame(text));
  }
  return true;
}

// The newest event of that CPU and thread is whose stack this is.
void FtraceReader::BeginStack(const FtraceLine& line) {
  in_stack_ = true;
  stack_owner_ = nullptr;
  const bool user = line.event == "<user stack trace>" || line.event == "user_stack";
  for (auto it = held_.rbegin(); it != held_.rend(); ++it) {
    if (it->line.cpu != line.cpu || it->line.tid != line.tid) continue;
    const bool taken = user ? it->has_user_stack : !it->stack.empty();
    if (!taken) stack_owner_ = &*it;
    if (user) it->has_user_stack = true;
    return;
  }
}

void FtraceReader::Interrupts(const FtraceLine& line) {
  CpuWork& work = work_[line.cpu];
  if (line.event == "irq_handler_entry") work.irq = FieldText(line.payload, "name=");
  if (line.event == "irq_handler_exit") work.irq.clear();
  if (line.event == "hrtimer_expire_entry") work.irq = "timer";
  if (line.event == "hrtimer_expire_exit") work.irq.clear();
  if (line.event == "softirq_entry") work.softirq = FieldText(line.payload, "vec=");
  if (line.event == "softirq_exit") work.softirq.clear();
}

std::string_view FtraceReader::DeviceOn(uint16_t cpu) const {
  const auto it = work_.find(cpu);
  if (it == work_.end()) return {};
  if (!it->second.irq.empty()) return DeviceOfIrq(it->second.irq);
  return DeviceOfSoftirq(ParseDecimal(it->second.softirq).value_or(-1));
}

// Lines that are no events: heads, and what was lost.
void FtraceReader::Other(std::string_view text, uint64_t offset) {
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty() || trimmed.front() == '#' || html_) return;
  if (trimmed.starts_with("<!DOCTYPE") || trimmed.starts_with("<html")) {
    html_ = true;
    return;
  }
  if (trimmed.starts_with("cpus=")) {
    const auto cpus = ParseDecimal(trimmed.substr(5));
    if (cpus && *cpus > 0 && *cpus < assemble::kNoCpu) {
      writer_.metadata().cpus = static_cast<uint32_t>(*cpus);
    }
    return;
  }
  const size_t lost = trimmed.find("[LOST ");
  if (trimmed.starts_with("CPU:") &&
      (lost != std::string_view::npos || trimmed.find("DROPPED]") != std::string_view::npos)) {
    std::string_view rest =
        lost == std::string_view::npos ? std::string_view("1") : trimmed.substr(lost + 6);
    const auto count = ParseDecimal(TakeToken(rest));
    diagnostics_.Count("event lost by the recorder",
                       static_cast<uint64_t>(std::max<int64_t>(1, count.value_or(1))), offset);
    return;
  }
  if (events_ != 0) diagnostics_.Count("line that is no event", 1, offset);
}

Status FtraceReader::Line(std::string& text, uint64_t offset) {
  Unescape(text);
  if (StackLine(text)) return {};
  in_stack_ = false;
  const auto line = ParseFtraceLine(text);
  if (!line) {
    Other(text, offset);
    return {};
  }
  ++events_;
  if (line->event.ends_with("stack trace>") || line->event == "kernel_stack" ||
      line->event == "user_stack") {
    BeginStack(*line);
    return {};
  }
  Interrupts(*line);
  HeldEvent held{.text = std::move(text), .offset = offset};
  if (line->event == "sched_waking" || line->event == "sched_wakeup") {
    held.device = DeviceOn(line->cpu);
  }
  held_.push_back(std::move(held));
  held_.back().line = *ParseFtraceLine(held_.back().text);
  return FlushTo(window_);
}

Status FtraceReader::FlushTo(size_t count) {
  while (held_.size() > count) {
    const HeldEvent& held = held_.front();
    const FtraceLine& line = held.line;
    if (stack_owner_ == &held) stack_owner_ = nullptr;
    if (line.tgid >= 0) tracepoints_.Name(line.tgid, line.tid, line.comm);
    CULPRIT_TRY(tracepoints_.Feed({.time_ns = line.time_ns,
                                   .cpu = line.cpu,
                                   .pid = line.tgid,
                                   .tid = line.tid,
                                   .comm = line.comm,
                                   .name = line.event,
                                   .payload = line.payload,
                                   .flags = line.flags,
                                   .device = held.device,
                                   .offset = held.offset,
                                   .stack = held.stack}));
    held_.pop_front();
  }
  return {};
}

Status FtraceReader::Run() {
  writer_.metadata().source = "ftrace text";
  std::string text;
  for (;;) {
    const uint64_t offset = reader_.offset();
    CULPRIT_ASSIGN(const bool more, reader_.Line(text));
    if (!more) break;
    if (reader_.cut() && !html_) diagnostics_.Count("line too long, cut", 1, offset);
    CULPRIT_TRY(Line(text, offset));
  }
  CULPRIT_TRY(FlushTo(0));
  CULPRIT_TRY(assembler_.Finish());
  diagnostics_.Merge(assembler_.diagnostics());
  if (events_ == 0) return Error{.message = "no event of ftrace in it"};
  return {};
}

Match SniffFtraceText(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  const bool html = head.starts_with("<!DOCTYPE") || head.starts_with("<html");
  if (head.starts_with("# tracer: ")) return Match::kCertain;
  if (html && (head.find("trace-data") != std::string_view::npos ||
               head.find("linuxPerfData") != std::string_view::npos)) {
    return Match::kLikely;
  }
  size_t events = 0;
  size_t others = 0;
  while (!head.empty() && events + others < 100) {
    const size_t end = std::min(head.find('\n'), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (Trim(line).empty() || line.front() == '#' || Trim(line).starts_with("=>")) continue;
    ++(ParseFtraceLine(line) ? events : others);
  }
  return events > others ? Match::kLikely : Match::kNo;
}

Status ReadFtraceText(const Source& source, const ImportOptions&, trace::TraceWriter& writer,
                      Diagnostics& diagnostics) {
  const Bytes& bytes = source.bytes();
  CULPRIT_ASSIGN(const bool waking, Contains(bytes, "sched_waking:"));
  CULPRIT_ASSIGN(const bool stacks, Contains(bytes, "stack trace>"));
  FtraceReader reader(bytes, {.wakeups_wake = !waking}, stacks, writer, diagnostics);
  const Status status = reader.Run();
  if (status.ok()) return status;
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer FtraceTextImporter() {
  return {.name = "ftrace-text",
          .summary = "text of ftrace, trace-cmd report, atrace and systrace",
          .sniff = SniffFtraceText,
          .read = ReadFtraceText};
}

}  // namespace culprit::import_
