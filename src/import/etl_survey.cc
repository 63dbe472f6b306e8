// SPDX-License-Identifier: Apache-2.0
#include "import/etl_survey.h"

#include <algorithm>
#include <span>
#include <utility>

#include "import/etl_text.h"
#include "import/importer.h"

namespace culprit::import_ {
namespace {

constexpr size_t kEtlComputerNameOffset = 20;

class EtlSurveyor {
 public:
  EtlSurveyor(EtlSurvey& survey, Diagnostics& diagnostics)
      : survey_(survey), diagnostics_(diagnostics) {}

  // `offset` of the event, for messages.
  void Visit(const EtlEvent& event, uint64_t offset);
  void Finish();

 private:
  void Kernel(const EtlEvent& event);
  void Process(const EtlEvent& event, EtlLife life);
  void Thread(const EtlEvent& event, EtlLife life);
  void ThreadName(const EtlEvent& event);
  void Image(const EtlEvent& event, EtlLife life);
  void Stack(const EtlEvent& event);
  void StackReference(const EtlEvent& event, bool user);
  void StackKey(const EtlEvent& event);
  void DiskInit(const EtlEvent& event, uint8_t operation);
  void DiskEnd(const EtlEvent& event, uint8_t operation);
  void DiskFlush(const EtlEvent& event);
  void Interval(const EtlEvent& event);
  void Cpu(const EtlEvent& event);
  void DebugId(const EtlEvent& event);
  void Build(const EtlEvent& event);
  void Method(const EtlEvent& event);
  void MethodModule(const EtlEvent& event);
  std::span<const uint64_t> TakeAddresses(EtlFields& fields);
  void Bad(const EtlEvent& event);
  template <class Row>
  void Keep(std::vector<Row>& rows, const Row& row) {
    if (rows.size() < kMaxEtlRows) {
      rows.push_back(row);
    } else {
      diagnostics_.Count("process, thread or image beyond what is kept in memory");
    }
  }

  EtlSurvey& survey_;
  Diagnostics& diagnostics_;
  EtlDiskTable disk_;
  std::vector<uint64_t> addresses_;
  uint64_t offset_ = 0;
  uint64_t other_kernel_ = 0;
  uint64_t other_providers_ = 0;
  uint64_t messages_ = 0;
};

void EtlSurveyor::Bad(const EtlEvent& event) {
  const char* what = "event too short for its fields";
  if (event.provider == EtlProvider::kKernel) what = "kernel event too short for its fields";
  diagnostics_.Count(what, 1, offset_);
}

void EtlSurveyor::Process(const EtlEvent& event, EtlLife life) {
  EtlFields fields(event);
  EtlProcessRow row{.time = event.time, .life = life};
  if (event.version == 0) {
    row.pid = static_cast<uint32_t>(fields.Pointer());
    fields.Pointer();
  } else {
    fields.Pointer();
    row.pid = fields.U32();
    fields.Skip(12);  // parent, session, exit status
    if (event.version >= 3) fields.Pointer();
    if (event.version >= 4) fields.U32();
  }
  fields.SkipUser();
  if (fields.failed()) return Bad(event);
  row.name = survey_.strings.Intern(TakeNarrowText(fields.reader()));
  if (event.version >= 2) row.command_line = survey_.strings.Intern(TakeWideText(fields.reader()));
  Keep(survey_.processes, row);
}

void EtlSurveyor::Thread(const EtlEvent& event, EtlLife life) {
  EtlFields fields(event);
  EtlThreadRow row{.time = event.time, .life = life};
  row.pid = fields.U32();
  row.tid = fields.U32();
  if (event.version == 0) std::swap(row.pid, row.tid);
  if (fields.failed()) return Bad(event);
  if (event.version >= 3) {
    fields.SkipPointers(7);
    fields.Skip(8);  // tag of the service, priorities, flags
    const std::string name = TakeWideText(fields.reader());
    if (!name.empty()) row.name = survey_.strings.Intern(name);
  }
  if (row.tid != 0) Keep(survey_.threads, row);
}

void EtlSurveyor::ThreadName(const EtlEvent& event) {
  EtlFields fields(event);
  EtlThreadRow row{.time = event.time};
  row.pid = fields.U32();
  row.tid = fields.U32();
  if (fields.failed()) return Bad(event);
  row.name = survey_.strings.Intern(TakeWideText(fields.reader()));
  if (row.tid != 0) Keep(survey_.threads, row);
}

void EtlSurveyor::Image(const EtlEvent& event, EtlLife life) {
  EtlFields fields(event);
  EtlImageRow row{.time = event.time, .life = life, .pid = event.pid};
  row.base = fields.Pointer();
  if (event.version == 0) {
    row.size = fields.U32();
  } else {
    row.size = fields.Pointer();
    row.pid = fields.U32();
  }
  if (event.version >= 2) {
    fields.Skip(12);  // checksum, date, signature
    fields.Pointer();
    fields.Skip(16);
  }
  if (fields.failed()) return Bad(event);
  if (IsEtlKernelAddress(row.base, fields.pointer_bytes())) row.pid = 0;
  row.path = survey_.strings.Intern(TakeWideText(fields.reader()));
  Keep(survey_.images, row);
}

std::span<const uint64_t> EtlSurveyor::TakeAddresses(EtlFields& fields) {
  addresses_.clear();
  while (fields.reader().remaining() >= fields.pointer_bytes() &&
         addresses_.size() < kMaxStackFrames) {
    addresses_.push_back(fields.Pointer());
  }
  return addresses_;
}

void EtlSurveyor::Stack(const EtlEvent& event) {
  EtlFields fields(event);
  const uint64_t event_time = fields.U64();
  fields.U32();
  const uint32_t tid = fields.U32();
  if (fields.failed()) return Bad(event);
  const auto addresses = TakeAddresses(fields);
  if (addresses.empty()) return;
  const bool user = !IsEtlKernelAddress(addresses.front(), event.pointer_bytes);
  survey_.stacks.AddWalk(tid, event_time, user, addresses);
}

void EtlSurveyor::StackReference(const EtlEvent& event, bool user) {
  EtlFields fields(event);
  const uint64_t event_time = fields.U64();
  fields.U32();
  const uint32_t tid = fields.U32();
  const uint64_t key = fields.Pointer();
  if (fields.failed()) return Bad(event);
  survey_.stacks.AddReference(tid, event_time, user, key, event.time);
}

void EtlSurveyor::StackKey(const EtlEvent& event) {
  EtlFields fields(event);
  const uint64_t key = fields.Pointer();
  if (fields.failed()) return Bad(event);
  survey_.stacks.DefineKey(key, event.time, TakeAddresses(fields));
}

void EtlSurveyor::DiskInit(const EtlEvent& event, uint8_t operation) {
  EtlFields fields(event);
  EtlDiskTable::Row row{.time = event.time, .is_init = true, .operation = operation};
  row.packet = fields.Pointer();
  if (fields.failed()) return Bad(event);
  row.tid = event.version >= 3 ? fields.U32() : event.tid;
  if (fields.failed()) row.tid = event.tid;
  disk_.Add(row);
}

void EtlSurveyor::DiskEnd(const EtlEvent& event, uint8_t operation) {
  EtlFields fields(event);
  EtlDiskTable::Row row{.time = event.time, .operation = operation};
  row.disk = fields.U32();
  fields.U32();
  row.bytes = fields.U32();
  fields.U32();
  fields.U64();
  fields.Pointer();
  row.packet = fields.Pointer();
  row.ticks = fields.U64();
  if (fields.failed()) return Bad(event);
  row.tid = event.version >= 3 ? fields.U32() : event.tid;
  if (fields.failed()) row.tid = event.tid;
  disk_.Add(row);
}

void EtlSurveyor::DiskFlush(const EtlEvent& event) {
  EtlFields fields(event);
  EtlDiskTable::Row row{.time = event.time, .operation = 2};
  row.disk = fields.U32();
  fields.U32();
  row.ticks = fields.U64();
  row.packet = fields.Pointer();
  if (fields.failed()) return Bad(event);
  row.tid = event.version >= 3 ? fields.U32() : event.tid;
  if (fields.failed()) row.tid = event.tid;
  disk_.Add(row);
}

void EtlSurveyor::Interval(const EtlEvent& event) {
  EtlFields fields(event);
  const uint32_t source = fields.U32();
  const uint32_t interval = fields.U32();
  if (fields.failed()) return Bad(event);
  if (interval == 0) return;
  if (source == kEtlTimerSource) survey_.interval_100ns = interval;
  if (source == kEtlCycleSource) survey_.interval_cycles = interval;
}

void EtlSurveyor::Cpu(const EtlEvent& event) {
  EtlFields fields(event);
  survey_.cpu_mhz = fields.U32();
  fields.Skip(kEtlComputerNameOffset - 4);
  if (fields.failed()) return Bad(event);
  survey_.machine = TakeWideText(fields.reader());
}

void EtlSurveyor::DebugId(const EtlEvent& event) {
  EtlFields fields(event);
  const uint64_t base = fields.Pointer();
  uint32_t pid = fields.U32();
  const std::string id = TakeDebugId(fields.reader());
  if (fields.failed()) return Bad(event);
  if (IsEtlKernelAddress(base, fields.pointer_bytes())) pid = 0;
  if (survey_.debug_ids.size() < kMaxEtlRows) survey_.debug_ids[{pid, base}] = id;
}

void EtlSurveyor::Build(const EtlEvent& event) {
  EtlFields fields(event);
  fields.U64();  // when it was installed
  survey_.build = TakeWideText(fields.reader());
  survey_.product = TakeWideText(fields.reader());
}

void EtlSurveyor::Method(const EtlEvent& event) {
  EtlFields fields(event);
  EtlMethodRow row{.pid = event.pid};
  fields.U64();
  row.module = fields.U64();
  row.start = fields.U64();
  row.size = fields.U32();
  fields.Skip(8);  // token, flags
  if (fields.failed()) return Bad(event);
  std::string name = TakeWideText(fields.reader());
  const std::string method = TakeWideText(fields.reader());
  if (name == "NULL") name.clear();  // helpers of the runtime have no class
  if (!name.empty() && !method.empty()) name += ".";
  name += method;
  if (name.empty()) return;
  row.name = survey_.strings.Intern(name);
  Keep(survey_.methods, row);
}

void EtlSurveyor::MethodModule(const EtlEvent& event) {
  EtlFields fields(event);
  const uint64_t id = fields.U64();
  fields.Skip(16);  // assembly, flags
  if (fields.failed()) return Bad(event);
  const std::string path = TakeWideText(fields.reader());
  if (path.empty() || survey_.method_modules.size() >= kMaxEtlRows) return;
  survey_.method_modules[{event.pid, id}] = survey_.strings.Intern(path);
}

void EtlSurveyor::Kernel(const EtlEvent& event) {
  switch (event.code) {
    case kEtlProcessStart:
      return Process(event, EtlLife::kStart);
    case kEtlProcessEnd:
      return Process(event, EtlLife::kEnd);
    case kEtlProcessRundownStart:
    case kEtlProcessRundownEnd:
      return Process(event, EtlLife::kListed);
    case kEtlThreadStart:
      return Thread(event, EtlLife::kStart);
    case kEtlThreadEnd:
      return Thread(event, EtlLife::kEnd);
    case kEtlThreadRundownStart:
    case kEtlThreadRundownEnd:
      return Thread(event, EtlLife::kListed);
    case kEtlThreadName:
      return ThreadName(event);
    case kEtlImageLoad:
      return Image(event, EtlLife::kStart);
    case kEtlImageUnload:
      return Image(event, EtlLife::kEnd);
    case kEtlImageRundownStart:
    case kEtlImageRundownEnd:
      return Image(event, EtlLife::kListed);
    case kEtlStack:
      return Stack(event);
    case kEtlStackKeyCreate:
    case kEtlStackKeyDelete:
    case kEtlStackKeyRundown:
      return StackKey(event);
    case kEtlStackRefKernel:
      return StackReference(event, false);
    case kEtlStackRefUser:
      return StackReference(event, true);
    case kEtlDiskReadInit:
      return DiskInit(event, 0);
    case kEtlDiskWriteInit:
      return DiskInit(event, 1);
    case kEtlDiskFlushInit:
      return DiskInit(event, 2);
    case kEtlDiskRead:
      return DiskEnd(event, 0);
    case kEtlDiskWrite:
      return DiskEnd(event, 1);
    case kEtlDiskFlush:
      return DiskFlush(event);
    case kEtlIntervalSet:
    case kEtlIntervalStart:
    case kEtlIntervalEnd:
      return Interval(event);
    case kEtlConfigCpu:
      return Cpu(event);
    case kEtlSample:
      ++survey_.samples;
      return;
    case kEtlCounterSample: {
      EtlFields fields(event);
      fields.Pointer();
      fields.U32();
      if (fields.U16() == kEtlCycleSource) ++survey_.cycle_samples;
      return;
    }
    case kEtlSwitch: {
      EtlFields fields(event);
      const uint32_t tid = fields.U32();
      if (tid != 0) survey_.stacks.AddSwitchIn(tid, event.time);
      return;
    }
    case kEtlReadyThread:
      return;
    case kEtlCompactSwitch:
      diagnostics_.Count("compact context switches, left out", 1, offset_);
      return;
    default:
      // What the logger says of itself is no event of the kernel.
      if (event.code >> 8 != kEtlGroupHeader) ++other_kernel_;
  }
}

void EtlSurveyor::Visit(const EtlEvent& event, uint64_t offset) {
  offset_ = offset;
  ++survey_.events;
  const bool rundown = event.provider == EtlProvider::kRuntimeRundown;
  switch (event.provider) {
    case EtlProvider::kKernel:
      return Kernel(event);
    case EtlProvider::kImageId:
      if (event.code == kEtlDebugIdRsds) DebugId(event);
      return;
    case EtlProvider::kSystemId:
      if (event.code == kEtlBuildInfo) Build(event);
      return;
    case EtlProvider::kRuntime:
    case EtlProvider::kRuntimeRundown:
      if (event.code == kEtlMethodLoad || event.code == kEtlMethodUnload) return Method(event);
      if (event.code == kEtlModuleUnload ||
          event.code == (rundown ? kEtlModuleRundown : kEtlModuleLoad)) {
        return MethodModule(event);
      }
      ++other_providers_;
      return;
    case EtlProvider::kOther:
      ++other_providers_;
      return;
    case EtlProvider::kMessage:
      ++messages_;
      return;
  }
}

void EtlSurveyor::Finish() {
  const auto by_time = [](const auto& a, const auto& b) { return a.time < b.time; };
  std::stable_sort(survey_.processes.begin(), survey_.processes.end(), by_time);
  std::stable_sort(survey_.threads.begin(), survey_.threads.end(), by_time);
  std::stable_sort(survey_.images.begin(), survey_.images.end(), by_time);
  survey_.stacks.Finish(diagnostics_);
  survey_.requests = disk_.Take(diagnostics_);
  if (other_kernel_ != 0)
    diagnostics_.Count("kernel event of another kind, left out", other_kernel_);
  if (other_providers_ != 0) {
    diagnostics_.Count("event of another provider, left out", other_providers_);
  }
  if (messages_ != 0) diagnostics_.Count("trace message, left out", messages_);
}

}  // namespace

bool IsEtlFact(const EtlEvent& event) {
  return event.provider == EtlProvider::kKernel &&
         (event.code == kEtlSwitch || event.code == kEtlReadyThread || event.code == kEtlSample ||
          event.code == kEtlCounterSample);
}

bool IsEtlKernelAddress(uint64_t address, size_t pointer_bytes) {
  return pointer_bytes == 4 ? address >= 0x8000'0000u : address >= 0x8000'0000'0000u;
}

Result<EtlSurvey> SurveyEtl(const Bytes& bytes, const EtlHeader& header,
                            const std::vector<EtlBuffer>& buffers, Diagnostics& diagnostics) {
  EtlSurvey survey;
  EtlSurveyor surveyor(survey, diagnostics);
  std::string records;
  for (const EtlBuffer& buffer : buffers) {
    CULPRIT_TRY(LoadEtlBuffer(bytes, header, buffer, records, diagnostics));
    EtlWalk walk(records, buffer.cpu);
    EtlSpan span;
    EtlEvent event;
    while (walk.Next(event)) {
      surveyor.Visit(event, buffer.offset);
      if (!IsEtlFact(event)) continue;
      span.first = std::min(span.first, event.time);
      span.last = std::max(span.last, event.time);
    }
    if (walk.damaged()) {
      diagnostics.Count("record that cannot be, rest of its buffer skipped", 1, buffer.offset);
    }
    survey.spans.push_back(span);
  }
  surveyor.Finish();
  return survey;
}

}  // namespace culprit::import_
