// SPDX-License-Identifier: Apache-2.0
// The kernel's side of a Perfetto trace: ftrace bundles, the process tree, the
// profiler's samples.
#include <algorithm>
#include <charconv>

#include "import/importer.h"
#include "import/perfetto_parser.h"
#include "import/perfetto_proto.h"
#include "import/tracepoint_table.h"

namespace culprit::import_ {
namespace {

using Kind = PerfettoFact::Kind;

constexpr uint64_t kMaxFtraceTime = uint64_t{1} << 61;
constexpr size_t kMaxCommand = 4096;
constexpr int64_t kNoFlags = -1;
constexpr uint32_t kUnwindNoError = 1;
// PerfEvents.Counter
constexpr uint32_t kCpuClock = 1;
constexpr uint32_t kTaskClock = 3;

// FtraceEvent
enum FtraceKind : uint32_t {
  kPrint = 3,
  kSchedSwitch = 4,
  kSchedWakeup = 17,
  kSchedWaking = 20,
  kSoftirqEntry = 24,
  kSoftirqExit = 25,
  kIrqEntry = 36,
  kIrqExit = 37,
  kBlockIssue = 45,
  kSchedWakeupNew = 114,
  kBlockComplete = 125,
  kTaskNew = 235,
  kTaskRename = 236,
  kProcessExec = 237,
  kProcessExit = 238,
  kProcessFork = 239,
  kSysEnter = 329,
  kSysExit = 330,
};

// The first eight fields of a flat message, by number.
struct Flat {
  std::array<uint64_t, 8> value = {};
  std::array<std::string_view, 8> text = {};

  explicit Flat(std::string_view message) {
    ProtoReader reader(message);
    ProtoField field;
    while (reader.Next(field)) {
      if (field.number >= value.size()) continue;
      value[field.number] = field.value;
      text[field.number] = field.bytes;
    }
  }
  int32_t Int32(size_t number) const { return static_cast<int32_t>(value[number]); }
  int64_t Int64(size_t number) const { return static_cast<int64_t>(value[number]); }
};

std::string DeviceName(uint64_t dev) {
  return std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff);
}

}  // namespace

void PerfettoParser::FtraceBundle(const Packet& packet) {
  uint64_t cpu = kMaxCpus;
  uint64_t clock = 0;
  int64_t shift_ns = 0;
  uint64_t own = 0;
  uint64_t boot = 0;
  ProtoField field;
  for (ProtoReader reader(packet.data); reader.Next(field);) {
    if (field.number == 1) cpu = field.value;
    if (field.number == 3 && field.value != 0) {
      diagnostics_.Count("gap while recording, number of lost events not known", 1, packet.offset);
    }
    if (field.number == 5) clock = field.value;
    if (field.number == 6) own = field.value;
    if (field.number == 7) boot = field.value;
  }
  if (cpu >= kMaxCpus) {
    diagnostics_.Count("bundle of ftrace events without a CPU", 1, packet.offset);
    return;
  }
  if (own != 0 && boot != 0 && own < kMaxFtraceTime && boot < kMaxFtraceTime) {
    shift_ns = static_cast<int64_t>(boot) - static_cast<int64_t>(own);
  }
  constexpr uint64_t kMonotonicRaw = 4;
  const auto on = static_cast<uint16_t>(cpu);
  for (ProtoReader reader(packet.data); reader.Next(field);) {
    if (field.number == 2) {
      FtraceEvent(field.bytes, on, shift_ns, clock == kMonotonicRaw, packet.offset);
    }
    if (field.number == 4) CompactSched(field.bytes, on, shift_ns, packet.offset);
  }
}

void PerfettoParser::FtraceEvent(std::string_view message, uint16_t cpu, int64_t shift_ns,
                                 bool raw_clock, uint64_t offset) {
  PerfettoFact fact{.b = kNoFlags, .offset = offset, .cpu = cpu};
  uint64_t time = kMaxFtraceTime;
  uint32_t kind = 0;
  std::string_view payload;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) {
      time = field.value;
    } else if (field.number == 2) {
      fact.tid = static_cast<int32_t>(field.value);
    } else if (field.number == 5 && field.wire == ProtoField::Wire::kVarint) {
      fact.b = static_cast<int64_t>(field.value & 0xff);
    } else if (field.wire == ProtoField::Wire::kBytes) {
      kind = field.number;
      payload = field.bytes;
    }
  }
  if (time >= kMaxFtraceTime || reader.failed()) {
    diagnostics_.Count("ftrace event that cannot be read", 1, offset);
    return;
  }
  fact.time_ns = static_cast<int64_t>(time) + shift_ns;
  if (raw_clock && shift_ns == 0) {
    fact.time_ns =
        clocks_.ToTraceTime(kMonotonicRawClock, 0, time).value_or(static_cast<int64_t>(time));
  }
  FtracePayload(kind, payload, fact);
}

void PerfettoParser::FtracePayload(uint32_t kind, std::string_view message, PerfettoFact fact) {
  const Flat f(message);
  switch (kind) {
    case kSchedSwitch:
      fact.kind = Kind::kSwitch;
      fact.tid = f.Int32(2);
      fact.b = f.Int64(4);
      fact.a = f.Int32(6);
      facts_.AddName(fact.time_ns, f.Int32(2), -1, f.text[1]);
      facts_.AddName(fact.time_ns, f.Int32(6), -1, f.text[5]);
      break;
    case kSchedWaking:
    case kSchedWakeup:
    case kSchedWakeupNew:
      fact.kind = kind == kSchedWaking   ? Kind::kWaking
                  : kind == kSchedWakeup ? Kind::kWakeup
                                         : Kind::kWakeupNew;
      fact.a = f.Int32(2);
      facts_.AddName(fact.time_ns, f.Int32(2), -1, f.text[1]);
      break;
    case kTaskNew:
      fact.kind = Kind::kFork;
      fact.a = f.Int32(1);
      fact.b = f.Int32(1);
      if ((f.value[3] & kCloneThread) != 0) {
        const auto known = process_of_.find(fact.tid);
        fact.b = known == process_of_.end() ? -1 : known->second;
      }
      process_of_[f.Int32(1)] = fact.b;
      break;
    case kProcessFork:
      fact.kind = Kind::kFork;
      fact.tid = f.Int32(2);
      fact.a = f.Int32(4);
      fact.b = -1;
      break;
    case kTaskRename:
      return facts_.AddName(fact.time_ns, f.Int32(1), -1, f.text[3]);
    case kProcessExec:
      return facts_.AddName(fact.time_ns, f.Int32(2), -1, ShortName(f.text[1]));
    case kProcessExit:
      fact.kind = Kind::kExit;
      fact.tid = f.Int32(2);
      break;
    case kSysEnter:
      fact.kind = Kind::kEnter;
      fact.a = f.Int64(1);
      break;
    case kSysExit:
      fact.kind = Kind::kReturn;
      fact.a = f.Int64(1);
      fact.b = f.Int64(2);
      break;
    case kBlockIssue:
    case kBlockComplete: {
      const bool issue = kind == kBlockIssue;
      const uint64_t bytes = issue && f.value[4] != 0 ? f.value[4] : f.value[3] * 512;
      fact.kind = issue ? Kind::kIssue : Kind::kComplete;
      fact.a = f.Int64(2);
      fact.b = static_cast<int64_t>(std::min<uint64_t>(bytes, UINT32_MAX));
      fact.text = facts_.Text(DeviceName(f.value[1]));
      fact.flags = static_cast<uint8_t>(BlockOperation(f.text[5]));
      break;
    }
    case kIrqEntry:
      fact.kind = Kind::kIrqEntry;
      fact.text = facts_.Text(f.text[2].empty() ? std::string_view("irq") : f.text[2]);
      break;
    case kIrqExit:
      fact.kind = Kind::kIrqExit;
      break;
    case kSoftirqEntry:
    case kSoftirqExit:
      fact.kind = kind == kSoftirqEntry ? Kind::kSoftirqEntry : Kind::kSoftirqExit;
      fact.a = f.Int32(1);
      break;
    case kPrint:
      if (!ParseTraceMark(f.text[2]).has_value()) return;
      fact.kind = Kind::kMark;
      fact.text = facts_.Text(f.text[2]);
      break;
    default:
      return;
  }
  facts_.Add(fact);
}

// Columns of numbers: times are counted from the one before, names are indexes
// into a table of the bundle.
void PerfettoParser::CompactSched(std::string_view message, uint16_t cpu, int64_t shift_ns,
                                  uint64_t offset) {
  std::array<std::vector<uint64_t>, 13> columns;
  std::vector<std::string_view> names;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 5) {
      names.push_back(field.bytes);
    } else if (field.number < columns.size()) {
      AppendNumbers(field, columns[field.number]);
    }
  }
  const auto name = [&](uint64_t index) {
    return index < names.size() ? names[index] : std::string_view();
  };
  const auto at = [&](size_t column, size_t row, uint64_t none) {
    return row < columns[column].size() ? columns[column][row] : none;
  };
  const auto add = [&](size_t time_column, size_t tid_column, size_t name_column, auto fill) {
    uint64_t time = 0;
    for (size_t i = 0; i < columns[time_column].size(); ++i) {
      time += columns[time_column][i];
      if (time >= kMaxFtraceTime || i >= columns[tid_column].size()) {
        diagnostics_.Count("compact scheduler event that cannot be read", 1, offset);
        return;
      }
      PerfettoFact fact{.time_ns = static_cast<int64_t>(time) + shift_ns,
                        .a = static_cast<int32_t>(columns[tid_column][i]),
                        .tid = PerfettoFact::kRunningThread,
                        .offset = offset,
                        .cpu = cpu};
      fill(fact, i);
      facts_.AddName(fact.time_ns, static_cast<int32_t>(fact.a), -1,
                     name(at(name_column, i, UINT64_MAX)));
      facts_.Add(fact);
    }
  };
  add(1, 3, 6, [&](PerfettoFact& fact, size_t i) {
    fact.kind = Kind::kSwitch;
    fact.b = static_cast<int64_t>(at(2, i, 0));
  });
  add(7, 8, 11, [&](PerfettoFact& fact, size_t i) {
    fact.kind = Kind::kWaking;
    fact.b = columns[12].empty() ? kNoFlags : static_cast<int64_t>(at(12, i, 0) & 0xff);
  });
}

// ProcessTree: processes = 1 (pid 1, cmdline 3), threads = 2 (tid 1, name 2,
// tgid 3).
void PerfettoParser::ProcessTree(const Packet& packet, int64_t time_ns) {
  ProtoReader reader(packet.data);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 2) {
      const Flat thread(field.bytes);
      process_of_[thread.Int32(1)] = thread.Int32(3);
      facts_.AddName(time_ns, thread.Int32(1), thread.Int32(3), thread.text[2]);
    }
    if (field.number != 1) continue;
    int64_t pid = -1;
    std::string command;
    std::string_view first;
    ProtoReader process(field.bytes);
    ProtoField part;
    while (process.Next(part)) {
      if (part.number == 1) pid = part.Signed32();
      if (part.number != 3 || part.bytes.size() + command.size() > kMaxCommand) continue;
      if (command.empty()) first = part.bytes;
      command += (command.empty() ? "" : " ") + std::string(part.bytes);
    }
    if (pid <= 0) continue;
    process_of_[pid] = pid;
    facts_.AddName(time_ns, static_cast<int32_t>(pid), pid, {});
    const std::string_view name = first.substr(first.rfind('/') + 1);
    if (name.empty()) continue;
    facts_.Add({.time_ns = time_ns,
                .a = pid,
                .b = facts_.Text(command).value,
                .text = facts_.Text(name),
                .kind = Kind::kProcess});
  }
}

// SystemInfo: utsname = 1 (sysname 1, version 2, release 3, machine 4).
void PerfettoParser::SystemInfo(std::string_view message) {
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number != 1 || field.wire != ProtoField::Wire::kBytes) continue;
    const Flat name(field.bytes);
    trace::Metadata& metadata = writer_.metadata();
    metadata.os = name.text[1];
    metadata.kernel = name.text[3];
    metadata.arch = name.text[4];
    int major = 0;
    int minor = 0;
    const std::string& release = metadata.kernel;
    const char* end = release.data() + release.size();
    const auto [dot, error] = std::from_chars(release.data(), end, major);
    if (error != std::errc() || dot == end) continue;
    std::from_chars(dot + 1, end, minor);
    // Before 4.14 the states went on beyond eight bits, the last of them dead.
    if (major < 4 || (major == 4 && minor < 14)) {
      facts_.set_states({.blocked = 0x7ff, .dead = 0x70});
    }
  }
}

// PerfSample: cpu 1, pid 2, tid 3, callstack_iid 4, unwind_error 16,
// kernel_records_lost 17, sample_skipped_reason 18.
void PerfettoParser::PerfSample(const Packet& packet, int64_t time_ns) {
  PerfettoSequence& sequence = *SequenceOf(packet.sequence);
  PerfettoFact fact{.time_ns = time_ns, .offset = packet.offset, .kind = Kind::kSample};
  int64_t pid = -1;
  uint64_t callstack = 0;
  bool skipped = false;
  bool truncated = false;
  ProtoReader reader(packet.data);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1 && field.value < kMaxCpus) fact.cpu = static_cast<uint16_t>(field.value);
    if (field.number == 2) pid = field.Signed32();
    if (field.number == 3) fact.tid = static_cast<int32_t>(field.value);
    if (field.number == 4) callstack = field.value;
    if (field.number == 16) truncated = field.value != kUnwindNoError;
    if (field.number == 17) {
      diagnostics_.Count("profiler record lost by the kernel",
                         std::min<uint64_t>(field.value, UINT32_MAX), packet.offset);
      return;
    }
    if (field.number == 18) skipped = true;
  }
  if (skipped) diagnostics_.Count("sample whose stack the profiler skipped", 1, packet.offset);
  const PerfTimebase& base = sequence.timebase;
  if (!base.tracepoint.empty() && base.tracepoint != "sched:sched_switch") {
    ++unused_;
    return;
  }
  if (callstack != 0) {
    fact.stack = sequence.Stack(callstack, truncated, writer_.dictionary(), symbolizer_);
  }
  if (base.tracepoint == "sched:sched_switch") {
    if (!fact.stack.valid()) return;
    fact.kind = Kind::kSwitchSample;
  } else if (base.frequency != 0) {
    fact.b =
        static_cast<int64_t>(1'000'000'000 / std::min<uint64_t>(base.frequency, 1'000'000'000));
  } else if ((base.counter == kCpuClock || base.counter == kTaskClock) && base.period != 0) {
    fact.b = static_cast<int64_t>(std::min<uint64_t>(base.period, 1'000'000'000));
  } else {
    fact.b = default_period_ns_;
  }
  if (fact.kind == Kind::kSample) sample_period_ns_ = fact.b;
  process_of_[fact.tid] = pid;
  facts_.AddName(time_ns, fact.tid, pid, {});
  facts_.Add(fact);
}

}  // namespace culprit::import_
