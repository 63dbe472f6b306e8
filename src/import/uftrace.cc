// SPDX-License-Identifier: Apache-2.0
//
// The importer of uftrace's data folders: function entries and exits of every
// task to call events, and where perf files are present the context switches of
// the tasks, whose waits then have the functions they were in as their stacks.
// All files are merged by time. Kernel functions (kernel-cpuN.dat) are left out
// and counted. Memory: a buffer a file, at most kBufferBytes for all together
// beyond 4 KB each, symbol lists, open calls.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "assemble/assembler.h"
#include "base/text.h"
#include "import/importers.h"
#include "import/perf_data_layout.h"
#include "import/text_scan.h"
#include "import/uftrace_calls.h"
#include "import/uftrace_records.h"
#include "import/uftrace_symbols.h"
#include "import/uftrace_tasks.h"

namespace culprit::import_ {
namespace {

constexpr std::string_view kUftraceMagic("Ftrace!\0", 8);
constexpr size_t kUftraceHeadBytes = 40;
constexpr uint8_t kUftraceBigEndian = 2;
constexpr size_t kBufferBytes = 64 << 20;
constexpr uint64_t kMaxUftraceText = 64 << 20;
constexpr int64_t kMaxElapsedNs = int64_t{1} << 60;
constexpr int64_t kSlackNs = 2'000'000'000;

std::string ReadUftraceText(const Bytes* bytes) {
  std::string text;
  if (bytes == nullptr) return text;
  const Status status =
      bytes->ReadAt(0, static_cast<size_t>(std::min(bytes->size(), kMaxUftraceText)), text);
  return status.ok() ? text : std::string();
}

// "key:value" lines behind the head of `info`; a key may come again with "a=b".
std::string InfoValue(std::string_view info, std::string_view key) {
  for (size_t at = info.find(key); at != std::string_view::npos; at = info.find(key, at + 1)) {
    if (at != 0 && info[at - 1] != '\n' && info[at - 1] != '\0') continue;
    const std::string_view rest = info.substr(at + key.size());
    return std::string(Trim(rest.substr(0, std::min(rest.find('\n'), rest.size()))));
  }
  return {};
}

// "1234.dat"
std::optional<int64_t> UftraceTidOf(std::string_view path) {
  if (!path.ends_with(".dat")) return std::nullopt;
  return ParseDecimal(path.substr(0, path.size() - 4));
}

// "perf-cpu3.dat"
std::optional<int64_t> NumberedFile(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix) || !path.ends_with(".dat")) return std::nullopt;
  return ParseDecimal(path.substr(prefix.size(), path.size() - prefix.size() - 4));
}

struct UftraceTask {
  int64_t tid = 0;
  trace::ThreadId thread;
  UftraceTaskFile file;
  UftraceRecord record = {};
  UftraceCalls calls;
  size_t session = 0;
  int64_t session_until_ns = INT64_MIN;
  int64_t first_ns = INT64_MAX;  // seen
};

struct UftraceCpu {
  uint16_t number = 0;
  UftracePerfFile file;
  UftracePerfRecord record = {};
};

class UftraceReader {
 public:
  UftraceReader(const Source& source, symbol::Symbolizer* symbolizer, trace::TraceWriter& writer,
                Diagnostics& diagnostics)
      : source_(source),
        writer_(writer),
        diagnostics_(diagnostics),
        assembler_(writer),
        symbols_(source, writer.dictionary(), symbolizer, diagnostics) {}

  Status Run();

 private:
  // Of one moment the switch comes first.
  enum class Stream : uint8_t { kCpu, kTask };
  struct Turn {
    int64_t time_ns = 0;
    Stream stream = Stream::kCpu;
    size_t index = 0;
    bool operator>(const Turn& other) const {
      return std::tie(time_ns, stream, index) > std::tie(other.time_ns, other.stream, other.index);
    }
  };

  void SetBounds(std::string_view info);
  void OpenFiles();
  void OpenTask(int64_t tid, const Bytes& bytes, size_t buffer_bytes);
  void NameTasks();
  Status Advance(Stream stream, size_t index);
  Status Take(const Turn& turn);
  void TellBirths();
  Status Perf(const UftraceCpu& cpu);
  Status Record(UftraceTask& task);
  size_t SessionOf(UftraceTask& task);
  void Cover(int64_t time_ns);
  void Describe(std::string_view info);

  const Source& source_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  assemble::Assembler assembler_;
  UftraceSymbols symbols_;
  UftraceTasks tasks_;
  UftraceBounds bounds_;
  std::vector<std::unique_ptr<UftraceTask>> files_;
  std::map<int64_t, UftraceTask*> task_of_;
  std::vector<std::unique_ptr<UftraceCpu>> cpus_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::optional<int64_t> first_ns_;
  int64_t last_ns_ = 0;
  uint64_t entries_ = 0;
  uint64_t events_ = 0;
};

// "elapsed_time:9.738326683 sec", since before the first program began.
void UftraceReader::SetBounds(std::string_view info) {
  for (const UftraceProgram& program : tasks_.programs()) (void)symbols_.Session(program.sid);
  bounds_.code = symbols_.CodeRanges();
  const std::string text = InfoValue(info, "elapsed_time:");
  const auto elapsed_ns = ParseSecondsNs(std::string_view(text).substr(0, text.find(' ')));
  if (!elapsed_ns || tasks_.programs().empty()) return;
  const int64_t begin_ns = tasks_.programs().front().time_ns;
  if (*elapsed_ns < kMaxElapsedNs && begin_ns < kMaxElapsedNs) {
    bounds_.end_ns = begin_ns + *elapsed_ns + kSlackNs;
  }
}

void UftraceReader::OpenTask(int64_t tid, const Bytes& bytes, size_t buffer_bytes) {
  const trace::ThreadId thread = assembler_.ThreadOf(tid);
  files_.push_back(std::make_unique<UftraceTask>(
      UftraceTask{.tid = tid,
                  .thread = thread,
                  .file = UftraceTaskFile(bytes, buffer_bytes, bounds_, diagnostics_),
                  .calls = UftraceCalls(thread, writer_, diagnostics_)}));
  task_of_[tid] = files_.back().get();
}

void UftraceReader::OpenFiles() {
  const size_t buffer_bytes =
      std::clamp<size_t>(kBufferBytes / source_.files().size(), 4096, 256 << 10);
  for (const SourceFile& file : source_.files()) {
    if (const auto tid = UftraceTidOf(file.path); tid && *tid > 0) {
      OpenTask(*tid, *file.bytes, buffer_bytes);
    } else if (const auto cpu = NumberedFile(file.path, "perf-cpu");
               cpu && *cpu < assemble::kNoCpu) {
      cpus_.push_back(std::make_unique<UftraceCpu>(
          UftraceCpu{.number = static_cast<uint16_t>(std::max<int64_t>(*cpu, 0)),
                     .file = UftracePerfFile(*file.bytes, buffer_bytes, diagnostics_)}));
    } else if (NumberedFile(file.path, "kernel-cpu") && file.bytes->size() != 0) {
      diagnostics_.Count("file of kernel functions, not read");
    }
  }
}

void UftraceReader::NameTasks() {
  for (const auto& [tid, task] : task_of_) {
    const UftraceRun run = tasks_.RunOf(tid, INT64_MIN);
    if (run.program == nullptr) continue;
    const std::string_view path = run.program->path;
    assembler_.Name(tasks_.PidOf(tid), tid, BaseName(path));
  }
  for (const UftraceProgram& program : tasks_.programs()) {
    const std::string_view path = program.path;
    const std::string_view name = BaseName(path);
    assembler_.Name(program.pid, program.pid, name);
    assembler_.ProcessName(program.pid, name, path);
  }
}

Status UftraceReader::Advance(Stream stream, size_t index) {
  if (stream == Stream::kCpu) {
    CULPRIT_ASSIGN(const bool more, cpus_[index]->file.Next(cpus_[index]->record));
    if (more) turns_.push({cpus_[index]->record.time_ns, stream, index});
    return {};
  }
  CULPRIT_ASSIGN(const bool more, files_[index]->file.Next(files_[index]->record));
  if (more) turns_.push({files_[index]->record.time_ns, stream, index});
  return {};
}

void UftraceReader::Cover(int64_t time_ns) {
  first_ns_ = std::min(first_ns_.value_or(time_ns), time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
}

// The first task of a program was there before the recording. A birth is told by
// the new task itself, so it may have been seen to run before.
void UftraceReader::TellBirths() {
  trace::Dictionary& dictionary = writer_.dictionary();
  for (const UftraceBirth& birth : tasks_.births()) {
    const auto task = task_of_.find(birth.tid);
    if (task == task_of_.end() || (birth.tid == birth.pid && birth.parent == birth.pid)) continue;
    dictionary.thread(task->second->thread).start_ns =
        std::min(birth.time_ns, task->second->first_ns);
  }
}

Status UftraceReader::Perf(const UftraceCpu& cpu) {
  const UftracePerfRecord& record = cpu.record;
  if (record.tid <= 0) return {};
  if (record.type == kRecordComm) {
    assembler_.Name(record.pid, record.tid, record.name);
    return {};
  }
  if (record.type == kRecordExit) {
    assembler_.Exit(record.time_ns, record.tid);
    return {};
  }
  if (record.type != kRecordSwitch) return {};
  const auto task = task_of_.find(record.tid);
  if (task != task_of_.end()) {
    task->second->first_ns = std::min(task->second->first_ns, record.time_ns);
  }
  assemble::SwitchFact fact{.time_ns = record.time_ns, .cpu = cpu.number};
  if ((record.misc & kMiscSwitchOut) == 0) {
    fact.next_tid = record.tid;
    return assembler_.Switch(fact);
  }
  fact.prev_tid = record.tid;
  fact.prev_runnable = (record.misc & kMiscSwitchOutPreempt) != 0;
  if (task != task_of_.end()) fact.prev_stack = task->second->calls.stack();
  return assembler_.Switch(fact);
}

size_t UftraceReader::SessionOf(UftraceTask& task) {
  if (task.record.time_ns >= task.session_until_ns) {
    const UftraceRun run = tasks_.RunOf(task.tid, task.record.time_ns);
    task.session = run.program == nullptr ? 0 : symbols_.Session(run.program->sid);
    task.session_until_ns = run.until_ns;
  }
  return task.session;
}

Status UftraceReader::Record(UftraceTask& task) {
  task.first_ns = std::min(task.first_ns, task.record.time_ns);
  switch (task.record.type) {
    case UftraceType::kEntry:
      ++entries_;
      return task.calls.Entry(task.record, symbols_.FrameAt(SessionOf(task), task.record.address));
    case UftraceType::kExit:
      return task.calls.Exit(task.record);
    case UftraceType::kLost:
      diagnostics_.Count("record lost by the recorder", task.record.address, task.record.offset);
      return {};
    case UftraceType::kEvent:
      ++events_;
      return {};
  }
  return {};
}

Status UftraceReader::Take(const Turn& turn) {
  switch (turn.stream) {
    case Stream::kCpu:
      Cover(turn.time_ns);
      CULPRIT_TRY(Perf(*cpus_[turn.index]));
      return Advance(turn.stream, turn.index);
    case Stream::kTask:
      Cover(turn.time_ns);
      CULPRIT_TRY(Record(*files_[turn.index]));
      return Advance(turn.stream, turn.index);
  }
  return {};
}

void UftraceReader::Describe(std::string_view info) {
  trace::Metadata& metadata = writer_.metadata();
  metadata.begin_ns = std::min(metadata.begin_ns, *first_ns_);
  if (!metadata.has_switches) metadata.begin_ns = *first_ns_;
  metadata.end_ns = std::max(metadata.end_ns, last_ns_);
  const std::string version = InfoValue(info, "uftrace_version:");
  metadata.source = "uftrace " + version.substr(0, version.find(' '));
  // "v0.13 ( aarch64 dwarf python3 ... )"
  if (const size_t open = version.find("( "); open != std::string::npos) {
    const std::string_view rest = std::string_view(version).substr(open + 2);
    metadata.arch = rest.substr(0, std::min(rest.find(' '), rest.size()));
  }
  metadata.clock = "monotonic";
  metadata.machine = InfoValue(info, "osinfo:hostname=");
  metadata.kernel = InfoValue(info, "osinfo:kernel=Linux ");
  metadata.os = "Linux";
  const std::string program = InfoValue(info, "exename:");
  metadata.app = BaseName(program);
  metadata.properties["uftrace.command"] = InfoValue(info, "cmdline:");
  metadata.properties["uftrace.entries"] = std::to_string(entries_);
  metadata.properties["uftrace.events_unused"] = std::to_string(events_);
}

Status UftraceReader::Run() {
  const std::string info = ReadUftraceText(source_.Find("info"));
  if (info.size() > 14 && static_cast<uint8_t>(info[14]) == kUftraceBigEndian) {
    return Error{.message = "recorded on a big-endian machine, which is not read"};
  }
  tasks_ = UftraceTasks(ReadUftraceText(source_.Find("task.txt")), diagnostics_);
  for (const UftraceLibrary& library : tasks_.libraries()) {
    symbols_.AddModule(symbols_.Session(library.sid), library.base, library.path);
  }
  SetBounds(info);
  OpenFiles();
  NameTasks();
  for (size_t i = 0; i < cpus_.size(); ++i) CULPRIT_TRY(Advance(Stream::kCpu, i));
  for (size_t i = 0; i < files_.size(); ++i) CULPRIT_TRY(Advance(Stream::kTask, i));
  while (!turns_.empty()) {
    const Turn turn = turns_.top();
    turns_.pop();
    CULPRIT_TRY(Take(turn));
  }
  if (!first_ns_) {
    return Error{.message = "no record in it", .hint = "TID.dat files belong beside info"};
  }
  for (const auto& task : files_) CULPRIT_TRY(task->calls.Finish(last_ns_));
  CULPRIT_TRY(assembler_.Finish(last_ns_));
  TellBirths();
  Describe(std::string_view(info).substr(std::min(info.size(), kUftraceHeadBytes)));
  diagnostics_.Merge(assembler_.diagnostics());
  return {};
}

Match SniffUftrace(const Source& source, std::string_view head) {
  if (!source.is_folder()) return head.starts_with(kUftraceMagic) ? Match::kLikely : Match::kNo;
  const Bytes* info = source.Find("info");
  std::string begin;
  if (info == nullptr || !info->ReadAt(0, kUftraceMagic.size(), begin).ok()) return Match::kNo;
  return begin == kUftraceMagic ? Match::kCertain : Match::kNo;
}

Status ReadUftrace(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                   Diagnostics& diagnostics) {
  if (!source.is_folder()) {
    return Error{.message = "only the info file of a uftrace recording",
                 .file = source.name(),
                 .hint = "import the whole folder"};
  }
  std::optional<symbol::Symbolizer> symbolizer;
  if (options.symbols) symbolizer.emplace(symbol::SymbolizerOptions{.sysroot = options.sysroot});
  UftraceReader reader(source, symbolizer ? &*symbolizer : nullptr, writer, diagnostics);
  const Status status = reader.Run();
  if (symbolizer) diagnostics.Merge(symbolizer->diagnostics());
  if (status.ok()) return status;
  Error error = status.error();
  if (error.file.empty()) error.file = source.name();
  return error;
}

}  // namespace

Importer UftraceImporter() {
  return {.name = "uftrace",
          .summary = "data folders of uftrace record",
          .sniff = SniffUftrace,
          .read = ReadUftrace};
}

}  // namespace culprit::import_
