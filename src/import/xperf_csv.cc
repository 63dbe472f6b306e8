// SPDX-License-Identifier: Apache-2.0
//
// Text of `xperf -i FILE.etl -o FILE.txt -symbols -a dumper`, for traces whose
// symbols are only to be had on Windows: its stack lines carry names. Read twice,
// like the log file itself: stacks and disk requests first (xperf_csv_survey.h),
// then the lines in their order, which is that of time. What the lines mean is
// said in etl_facts.h; times are in microseconds here. Memory is the survey's.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "assemble/assembler.h"
#include "import/etl_frames.h"
#include "import/importers.h"
#include "import/text_scan.h"
#include "import/xperf_csv_survey.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kXperfUnixEpoch100Ns = 116'444'736'000'000'000;  // since 1601
constexpr uint64_t kXperfLatestStart100Ns = kXperfUnixEpoch100Ns + 60'000'000'000'000'000;
constexpr int64_t kMaxXperfInterval100Ns = 100'000'000;
constexpr int64_t kMaxXperfMicroseconds = int64_t{1} << 50;
constexpr int64_t kXperfSystemPid = 4;

class XperfReader {
 public:
  XperfReader(const XperfSurvey& survey, trace::TraceWriter& writer, Diagnostics& diagnostics)
      : survey_(survey), writer_(writer), diagnostics_(diagnostics), assembler_(writer) {
    for (size_t i = 0; i < survey.requests.size(); ++i) {
      if (survey.requests[i].finished) ends_.push_back(i);
    }
    std::sort(ends_.begin(), ends_.end(), [&](size_t a, size_t b) {
      return std::make_pair(survey.requests[a].end, a) < std::make_pair(survey.requests[b].end, b);
    });
  }

  Status Run(const Bytes& bytes);

 private:
  Status Visit(const XperfLine& line, uint64_t offset);
  Status Switch(const XperfLine& line, int64_t time);
  Status Ready(const XperfLine& line, int64_t time);
  Status Sample(const XperfLine& line, int64_t time);
  Status CatchUp(uint64_t time);
  void Process(const XperfLine& line);
  void Thread(const XperfLine& line, int64_t time);
  // Says whose thread it is, once.
  void Belongs(std::string_view process_text, int64_t tid);
  int64_t Tid(const XperfLine& line, XperfColumn column) const;
  uint16_t Cpu(const XperfLine& line) const;
  trace::StackId Stack(const EtlStack& stack);
  // Which device an interrupt in that thread was of; empty: no telling.
  std::string_view Device(int64_t tid, int64_t time) const;

  const XperfSurvey& survey_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  assemble::Assembler assembler_;
  std::unordered_map<int64_t, int64_t> owners_;  // pid by tid
  std::unordered_set<int64_t> asleep_;           // threads that wait for a time only
  // By part: of stack lines, and of samples without any.
  std::array<std::unordered_map<uint32_t, trace::StackId>, 2> stacks_;
  std::vector<size_t> ends_;  // requests in order of their end
  size_t next_start_ = 0;
  size_t next_end_ = 0;
  uint64_t other_lines_ = 0;
};

int64_t XperfReader::Tid(const XperfLine& line, XperfColumn column) const {
  const auto tid = line.Number(column);
  return tid && *tid >= 0 && *tid < kEtlNoId ? *tid : assemble::kNoTid;
}

uint16_t XperfReader::Cpu(const XperfLine& line) const {
  const auto cpu = line.Number(XperfColumn::kCpu);
  return cpu && *cpu >= 0 && *cpu < kMaxCpus ? static_cast<uint16_t>(*cpu) : assemble::kNoCpu;
}

trace::StackId XperfReader::Stack(const EtlStack& stack) {
  if (stack.empty()) return {};
  const bool leaf_only = stack.kernel == EtlStack::kNone;
  const uint32_t part = leaf_only ? stack.user : stack.kernel;
  const auto [it, is_new] = stacks_[leaf_only ? 1 : 0].try_emplace(part);
  if (!is_new) return it->second;
  const auto numbers = survey_.stacks.Addresses(part);
  std::vector<trace::FrameId> frames;
  if (leaf_only && survey_.has_stacks) {
    trace::Frame truncated;
    truncated.function = writer_.dictionary().Intern(trace::kTruncatedFunction);
    frames.push_back(writer_.dictionary().InternFrame(truncated));
  }
  for (size_t i = numbers.size(); i-- > 0;) frames.emplace_back(static_cast<size_t>(numbers[i]));
  return it->second = writer_.dictionary().InternStack(frames);
}

std::string_view XperfReader::Device(int64_t tid, int64_t time) const {
  if (tid < 0) return {};
  const EtlStack stack =
      survey_.stacks.Find(static_cast<uint32_t>(tid), static_cast<uint64_t>(time));
  const auto numbers = survey_.stacks.Addresses(stack.kernel);
  const trace::Dictionary& dictionary = writer_.dictionary();
  for (const uint64_t number : numbers.first(std::min(numbers.size(), kMaxEtlInterruptFrames))) {
    const trace::Frame& frame = dictionary.frames()[number];
    const StringId name = dictionary.modules()[frame.module.value].name;
    const std::string_view device = EtlDeviceOf(dictionary.Text(name));
    if (!device.empty()) return device;
  }
  return {};
}

void XperfReader::Belongs(std::string_view process_text, int64_t tid) {
  if (tid <= 0) return;
  const auto process = ParseXperfProcess(process_text);
  if (!process) return;
  const auto [it, is_new] = owners_.try_emplace(tid, process->pid);
  if (!is_new && it->second == process->pid) return;
  it->second = process->pid;
  assembler_.ProcessName(process->pid, process->name);
  assembler_.Name(process->pid, tid, process->name);
  if (process->pid == kXperfSystemPid) assembler_.Kind(tid, trace::ThreadKind::kKernel);
}

void XperfReader::Process(const XperfLine& line) {
  const auto process = ParseXperfProcess(line.Get(XperfColumn::kProcess));
  if (!process) return;
  assembler_.ProcessName(process->pid, process->name, line.Get(XperfColumn::kCommandLine));
}

void XperfReader::Thread(const XperfLine& line, int64_t time) {
  const int64_t tid = Tid(line, XperfColumn::kThread);
  const auto process = ParseXperfProcess(line.Get(XperfColumn::kProcess));
  if (tid <= 0 || !process) return;
  if (line.event->kind == XperfKind::kThreadStart) {
    owners_.erase(tid);
    assembler_.Fork(time * 1000, assemble::kNoTid, process->pid, tid);
  }
  Belongs(line.Get(XperfColumn::kProcess), tid);
  if (line.event->kind == XperfKind::kThreadEnd) assembler_.Exit(time * 1000, tid);
}

Status XperfReader::CatchUp(uint64_t time) {
  constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  const auto& requests = survey_.requests;
  for (;;) {
    const uint64_t start = next_start_ < requests.size() ? requests[next_start_].start : kNever;
    const uint64_t end = next_end_ < ends_.size() ? requests[ends_[next_end_]].end : kNever;
    if (std::min(start, end) > time || std::min(start, end) == kNever) return {};
    const size_t number = start <= end ? next_start_++ : ends_[next_end_++];
    const EtlDiskRequest& request = requests[number];
    const bool known = request.disk != EtlDiskRequest::kUnknownDisk;
    const std::string device = known ? std::to_string(request.disk) : "unknown";
    assemble::BlockFact fact{.time_ns = static_cast<int64_t>(std::min(start, end)) * 1000,
                             .device = device,
                             .sector = number,
                             .bytes = request.bytes,
                             .operation = request.operation};
    if (request.tid != kEtlNoId) fact.tid = request.tid;
    if (start > end) {
      CULPRIT_TRY(assembler_.BlockComplete(fact));
      continue;
    }
    if (request.has_init && request.tid != kEtlNoId) {
      fact.stack = Stack(survey_.stacks.Find(request.tid, request.start));
    }
    CULPRIT_TRY(assembler_.BlockIssue(fact));
  }
}

Status XperfReader::Switch(const XperfLine& line, int64_t time) {
  const int64_t prev = Tid(line, XperfColumn::kOldThread);
  const int64_t next = Tid(line, XperfColumn::kNewThread);
  Belongs(line.Get(XperfColumn::kOldProcess), prev);
  Belongs(line.Get(XperfColumn::kNewProcess), next);
  const std::string_view state = line.Get(XperfColumn::kOldState);
  assemble::SwitchFact fact{.time_ns = time * 1000,
                            .cpu = Cpu(line),
                            .prev_tid = prev,
                            .next_tid = next,
                            .prev_runnable = state == "Ready" || state == "Running" ||
                                             state == "Standby" || state == "DeferredReady",
                            .prev_exiting = state == "Terminated"};
  if (prev > 0 && prev != next) {
    const std::string_view reason = line.Get(XperfColumn::kWaitReason);
    const bool sleeps = reason == "DelayExecution" || reason == "WrDelayExecution";
    if (sleeps && !fact.prev_runnable) {
      asleep_.insert(prev);
    } else {
      asleep_.erase(prev);
    }
    fact.prev_stack = Stack(
        survey_.stacks.FindSwitchedOut(static_cast<uint32_t>(prev), static_cast<uint64_t>(time)));
  }
  return assembler_.Switch(fact);
}

Status XperfReader::Ready(const XperfLine& line, int64_t time) {
  const int64_t waker = Tid(line, XperfColumn::kThread);
  const int64_t wakee = Tid(line, XperfColumn::kReadyThread);
  Belongs(line.Get(XperfColumn::kProcess), waker);
  Belongs(line.Get(XperfColumn::kReadyProcess), wakee);
  assemble::WakingFact fact{
      .time_ns = time * 1000, .cpu = Cpu(line), .waker_tid = waker, .wakee_tid = wakee};
  const std::string_view in_dpc = line.Get(XperfColumn::kInDpc);
  const bool interrupt = waker == 0 || in_dpc == "1" || in_dpc == "TRUE" || in_dpc == "Yes";
  fact.context = interrupt ? assemble::WakeContext::kInterrupt : assemble::WakeContext::kThread;
  if (interrupt) fact.device = asleep_.contains(wakee) ? "timer" : Device(waker, time);
  if (waker >= 0) {
    fact.stack =
        Stack(survey_.stacks.Find(static_cast<uint32_t>(waker), static_cast<uint64_t>(time)));
  }
  return assembler_.Waking(fact);
}

Status XperfReader::Sample(const XperfLine& line, int64_t time) {
  const int64_t tid = Tid(line, XperfColumn::kThread);
  Belongs(line.Get(XperfColumn::kProcess), tid);
  if (tid < 0) return {};
  return assembler_.Sample({.time_ns = time * 1000,
                            .cpu = Cpu(line),
                            .tid = tid,
                            .stack = Stack(survey_.stacks.Find(static_cast<uint32_t>(tid),
                                                               static_cast<uint64_t>(time)))});
}

Status XperfReader::Visit(const XperfLine& line, uint64_t offset) {
  const XperfKind kind = line.event->kind;
  if (kind == XperfKind::kOther) {
    ++other_lines_;
    return {};
  }
  if (kind == XperfKind::kStack) return {};
  const auto time = line.Number(XperfColumn::kTime);
  if (!time || *time < 0 || *time > kMaxXperfMicroseconds) {
    diagnostics_.Count("line without a time", 1, offset);
    return {};
  }
  CULPRIT_TRY(CatchUp(static_cast<uint64_t>(*time)));
  switch (kind) {
    case XperfKind::kSwitch:
      return Switch(line, *time);
    case XperfKind::kReady:
      return Ready(line, *time);
    case XperfKind::kSample:
      return Sample(line, *time);
    case XperfKind::kProcessStart:
    case XperfKind::kProcessEnd:
    case XperfKind::kProcessListed:
      Process(line);
      return {};
    case XperfKind::kThreadStart:
    case XperfKind::kThreadEnd:
    case XperfKind::kThreadListed:
      Thread(line, *time);
      return {};
    default:
      return {};
  }
}

Status XperfReader::Run(const Bytes& bytes) {
  BytesReader reader(bytes, survey_.data_offset);
  XperfLine parsed;
  for (std::string line;;) {
    const uint64_t offset = reader.offset();
    CULPRIT_ASSIGN(const bool more, reader.Line(line));
    if (!more) break;
    const std::string_view text = TrimLine(line);
    if (text.empty() || text.starts_with("OS Version:")) continue;
    if (survey_.layout.Parse(text, parsed)) {
      CULPRIT_TRY(Visit(parsed, offset));
    } else {
      ++other_lines_;
    }
  }
  CULPRIT_TRY(CatchUp(std::numeric_limits<uint64_t>::max()));
  if (other_lines_ != 0) diagnostics_.Count("line of another event, left out", other_lines_);
  CULPRIT_TRY(assembler_.Finish());
  diagnostics_.Merge(assembler_.diagnostics());
  return {};
}

Match SniffXperf(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const bool begins = TrimLine(head.substr(0, head.find('\n'))) == "BeginHeader";
  const bool columns = head.find("TimeStamp") != std::string_view::npos;
  return begins && columns ? Match::kCertain : Match::kNo;
}

Status ReadXperf(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                 Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const XperfSurvey survey,
                 SurveyXperf(source.bytes(), writer.dictionary(), diagnostics));
  if (!survey.has_header) {
    return Error{.message = "an xperf dump that is cut within its header",
                 .file = source.name(),
                 .hint = "write it again with `xperf -i FILE.etl -o FILE.txt -a dumper`"};
  }
  trace::Metadata& metadata = writer.metadata();
  metadata.source = "xperf dumper";
  metadata.os = survey.os_version.empty() ? "Windows" : "Windows " + survey.os_version;
  metadata.clock = "microseconds";
  if (survey.layout.Has(XperfKind::kSample)) {
    const bool known = survey.interval_100ns > 0 && survey.interval_100ns <= kMaxXperfInterval100Ns;
    metadata.sample_period_ns = known ? survey.interval_100ns * 100 : options.default_period_ns;
  }
  if (survey.events_lost != 0) {
    diagnostics.Count("event that the recorder lost", survey.events_lost);
  }
  CULPRIT_TRY(XperfReader(survey, writer, diagnostics).Run(source.bytes()));
  if (survey.start_time > kXperfUnixEpoch100Ns && survey.start_time < kXperfLatestStart100Ns) {
    metadata.wall_start_ns =
        static_cast<int64_t>((survey.start_time - kXperfUnixEpoch100Ns) * 100) + metadata.begin_ns;
  }
  return {};
}

}  // namespace

Importer XperfCsvImporter() {
  return {.name = "xperf-csv",
          .summary = "text of xperf -a dumper",
          .sniff = SniffXperf,
          .read = ReadXperf};
}

}  // namespace culprit::import_
