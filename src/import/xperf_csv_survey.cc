// SPDX-License-Identifier: Apache-2.0
#include "import/xperf_csv_survey.h"

#include <algorithm>
#include <unordered_map>

#include "import/etl_survey.h"
#include "import/etl_text.h"
#include "import/importer.h"
#include "import/perf_data_space.h"
#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxXperfFrameTexts = size_t{1} << 22;

uint32_t XperfThreadNumber(const XperfLine& line, XperfColumn column) {
  const auto tid = line.Number(column);
  return tid && *tid >= 0 && *tid < kEtlNoId ? static_cast<uint32_t>(*tid) : kEtlNoId;
}

class XperfSurveyor {
 public:
  XperfSurveyor(XperfSurvey& survey, trace::Dictionary& dictionary, Diagnostics& diagnostics)
      : survey_(survey), dictionary_(dictionary), diagnostics_(diagnostics) {}

  Status Run(const Bytes& bytes);

 private:
  Status ReadHeader(BytesReader& reader);
  void About(std::string_view line);
  void Visit(const XperfLine& line);
  void Image(const XperfLine& line);
  void StackLine(const XperfLine& line);
  void EndStack();
  void Disk(const XperfLine& line, uint8_t operation, bool is_init);
  void Interval(const XperfLine& line);
  void Owner(const XperfLine& line, XperfColumn process_column, XperfColumn thread_column);
  void Sample(const XperfLine& line);
  trace::FrameId Frame(const XperfLine& line, uint32_t tid);

  XperfSurvey& survey_;
  trace::Dictionary& dictionary_;
  Diagnostics& diagnostics_;
  PerfSpaces spaces_;
  std::unordered_map<uint32_t, int64_t> owners_;  // pid by tid
  EtlDiskTable disk_;
  size_t pointer_bytes_ = 8;
  std::unordered_map<std::string, trace::FrameId> frames_;  // by address and text
  // The stack being read.
  uint64_t stack_time_ = 0;
  uint32_t stack_tid_ = kEtlNoId;
  std::vector<uint64_t> stack_;
};

// "OS Version: 10.0.19043, Trace Size: ..., Trace Start: 132675686690347142, ..."
void XperfSurveyor::About(std::string_view line) {
  const auto after = [&](std::string_view key) {
    const size_t at = line.find(key);
    if (at == std::string_view::npos) return std::string_view();
    const std::string_view rest = line.substr(at + key.size());
    return Trim(rest.substr(0, rest.find(',')));
  };
  survey_.os_version = after("OS Version:");
  const auto number = [&](std::string_view key) { return ParseDecimal(after(key)).value_or(0); };
  survey_.start_time = static_cast<uint64_t>(std::max<int64_t>(0, number("Trace Start:")));
  survey_.events_lost = static_cast<uint64_t>(std::max<int64_t>(0, number("Events Lost:")));
  if (number("PointerSize:") == 4) pointer_bytes_ = 4;
}

void XperfSurveyor::Image(const XperfLine& line) {
  const auto base = line.Address(XperfColumn::kBase);
  const auto end = line.Address(XperfColumn::kEnd);
  const auto process = ParseXperfProcess(line.Get(XperfColumn::kProcess));
  if (!base || !end || !process) return;
  const bool kernel = IsEtlKernelAddress(*base, pointer_bytes_);
  spaces_.Map(kernel ? PerfSpaces::kKernelPid : process->pid,
              {.start = *base, .end = *end, .file_offset = 0, .module = 0});
}

// "ntoskrnl.exe!KiSwapContext"; without a name the address stands in its place,
// which the image's base makes the same for every run. "?!?": nothing is known.
trace::FrameId XperfSurveyor::Frame(const XperfLine& line, uint32_t tid) {
  const std::string_view text = line.Get(XperfColumn::kFunction);
  const auto address = line.Address(XperfColumn::kAddress);
  const size_t bang = text.find('!');
  const bool named = bang != std::string_view::npos && !text.substr(bang + 1).starts_with("0x") &&
                     !text.substr(bang + 1).starts_with('?');
  std::string key(text);
  const auto owner = owners_.find(tid);
  const int64_t pid = owner == owners_.end() ? PerfSpaces::kKernelPid : owner->second;
  if (!named) key += " " + std::string(line.Get(XperfColumn::kAddress)) + " " + std::to_string(pid);
  const auto it = frames_.find(key);
  if (it != frames_.end()) return it->second;
  trace::Frame frame;
  const std::string module = ModuleNameOf(Trim(text.substr(0, std::min(bang, text.size()))));
  frame.module = dictionary_.InternModule(
      {.name = dictionary_.Intern(module.empty() || module == "?" ? "[unknown]" : module)});
  if (named) frame.function = dictionary_.Intern(text.substr(bang + 1));
  if (address && IsEtlKernelAddress(*address, pointer_bytes_)) frame.flags = trace::kKernelMode;
  if (!named && address) {
    const bool kernel = (frame.flags & trace::kKernelMode) != 0;
    const PerfMap* map = spaces_.Find(kernel ? PerfSpaces::kKernelPid : pid, *address);
    frame.offset = map == nullptr ? *address : *address - map->start;
  }
  const trace::FrameId id = dictionary_.InternFrame(frame);
  if (frames_.size() < kMaxXperfFrameTexts) frames_.emplace(std::move(key), id);
  return id;
}

void XperfSurveyor::EndStack() {
  if (stack_tid_ != kEtlNoId) survey_.stacks.AddWalk(stack_tid_, stack_time_, false, stack_);
  stack_.clear();
  stack_tid_ = kEtlNoId;
}

void XperfSurveyor::StackLine(const XperfLine& line) {
  const auto time = line.Number(XperfColumn::kTime);
  const uint32_t tid = XperfThreadNumber(line, XperfColumn::kThread);
  if (!time || *time < 0 || tid == kEtlNoId) return;
  if (tid != stack_tid_ || static_cast<uint64_t>(*time) != stack_time_) EndStack();
  survey_.has_stacks = true;
  stack_tid_ = tid;
  stack_time_ = static_cast<uint64_t>(*time);
  if (stack_.size() < kMaxStackFrames) stack_.push_back(Frame(line, tid).value);
}

// What a sample says of its place is kept as the second part of a stack, which
// counts where the first, from stack lines, is missing.
void XperfSurveyor::Sample(const XperfLine& line) {
  const auto time = line.Number(XperfColumn::kTime);
  const uint32_t tid = XperfThreadNumber(line, XperfColumn::kThread);
  if (!time || *time < 0 || tid == 0 || tid == kEtlNoId) return;
  // A comma in one of the names before would move the columns.
  if (line.fields.size() != line.event->columns || line.Get(XperfColumn::kFunction).empty()) return;
  const uint64_t frame = Frame(line, tid).value;
  survey_.stacks.AddWalk(tid, static_cast<uint64_t>(*time), true, {&frame, 1});
}

void XperfSurveyor::Disk(const XperfLine& line, uint8_t operation, bool is_init) {
  const auto time = line.Number(XperfColumn::kTime);
  const auto packet = line.Address(XperfColumn::kPacket);
  if (!time || *time < 0 || !packet) return;
  EtlDiskTable::Row row{.time = static_cast<uint64_t>(*time),
                        .packet = *packet,
                        .is_init = is_init,
                        .operation = operation,
                        .tid = XperfThreadNumber(line, XperfColumn::kThread)};
  if (!is_init) {
    const auto disk = line.Number(XperfColumn::kDisk);
    if (disk && *disk >= 0 && *disk < EtlDiskRequest::kUnknownDisk) {
      row.disk = static_cast<uint32_t>(*disk);
    }
    row.bytes = static_cast<uint32_t>(
        std::min<uint64_t>(line.Address(XperfColumn::kBytes).value_or(0), UINT32_MAX));
    row.ticks =
        static_cast<uint64_t>(std::max<int64_t>(0, line.Number(XperfColumn::kElapsed).value_or(0)));
  }
  disk_.Add(row);
}

void XperfSurveyor::Interval(const XperfLine& line) {
  const std::string_view source = line.Get(XperfColumn::kSource);
  const auto interval = line.Number(XperfColumn::kInterval);
  if ((source == "0" || source == "Timer") && interval && *interval > 0) {
    survey_.interval_100ns = *interval;
  }
}

// Every line that names a thread and its process tells whose stacks are whose.
void XperfSurveyor::Owner(const XperfLine& line, XperfColumn process_column,
                          XperfColumn thread_column) {
  const uint32_t tid = XperfThreadNumber(line, thread_column);
  const auto process = ParseXperfProcess(line.Get(process_column));
  if (process && tid != kEtlNoId) owners_[tid] = process->pid;
}

void XperfSurveyor::Visit(const XperfLine& line) {
  if (line.event->kind == XperfKind::kStack) return StackLine(line);
  EndStack();
  Owner(line, XperfColumn::kProcess, XperfColumn::kThread);
  Owner(line, XperfColumn::kNewProcess, XperfColumn::kNewThread);
  switch (line.event->kind) {
    case XperfKind::kImage:
      return Image(line);
    case XperfKind::kInterval:
      return Interval(line);
    case XperfKind::kSample:
      return Sample(line);
    case XperfKind::kSwitch: {
      const auto time = line.Number(XperfColumn::kTime);
      const uint32_t tid = XperfThreadNumber(line, XperfColumn::kNewThread);
      if (time && *time >= 0 && tid != 0 && tid != kEtlNoId) {
        survey_.stacks.AddSwitchIn(tid, static_cast<uint64_t>(*time));
      }
      return;
    }
    case XperfKind::kDiskReadInit:
      return Disk(line, 0, true);
    case XperfKind::kDiskWriteInit:
      return Disk(line, 1, true);
    case XperfKind::kDiskFlushInit:
      return Disk(line, 2, true);
    case XperfKind::kDiskRead:
      return Disk(line, 0, false);
    case XperfKind::kDiskWrite:
      return Disk(line, 1, false);
    case XperfKind::kDiskFlush:
      return Disk(line, 2, false);
    default:
      return;
  }
}

Status XperfSurveyor::ReadHeader(BytesReader& reader) {
  bool inside = false;
  for (std::string line;;) {
    CULPRIT_ASSIGN(const bool more, reader.Line(line));
    if (!more) return {};
    const std::string_view text = TrimLine(line);
    if (text.ends_with("BeginHeader")) inside = true;
    if (text.starts_with("EndHeader")) break;
    if (inside && text.find(',') != std::string_view::npos) survey_.layout.AddHeader(text);
  }
  survey_.has_header = true;
  survey_.data_offset = reader.offset();
  return {};
}

Status XperfSurveyor::Run(const Bytes& bytes) {
  BytesReader reader(bytes);
  CULPRIT_TRY(ReadHeader(reader));
  XperfLine parsed;
  for (std::string line;;) {
    CULPRIT_ASSIGN(const bool more, reader.Line(line));
    if (!more) break;
    const std::string_view text = TrimLine(line);
    if (text.starts_with("OS Version:")) {
      About(text);
    } else if (survey_.layout.Parse(text, parsed)) {
      Visit(parsed);
    }
  }
  EndStack();
  survey_.stacks.Finish(diagnostics_);
  survey_.requests = disk_.Take(diagnostics_);
  return {};
}

}  // namespace

Result<XperfSurvey> SurveyXperf(const Bytes& bytes, trace::Dictionary& dictionary,
                                Diagnostics& diagnostics) {
  XperfSurvey survey;
  CULPRIT_TRY(XperfSurveyor(survey, dictionary, diagnostics).Run(bytes));
  return survey;
}

}  // namespace culprit::import_
