// SPDX-License-Identifier: Apache-2.0
#include "import/uftrace_records.h"

#include <algorithm>

#include "import/perf_data_layout.h"

namespace culprit::import_ {
namespace {

constexpr size_t kUftraceRecordBytes = 16;
constexpr size_t kStepBytes = 8;  // arguments are padded to this
constexpr uint64_t kUftraceRecordMagic = 5;
constexpr uint64_t kUftraceMore = 1 << 2;
constexpr int64_t kMaxRecordGapNs = int64_t{1} << 50;  // 13 days
constexpr int64_t kMaxUftraceTimeNs = int64_t{1} << 61;
constexpr uint64_t kMaxEventNumber = 1 << 24;
constexpr size_t kSampleIdBytes = 16;  // pid, tid, time

uint64_t MagicOf(uint64_t word) { return word >> 3 & 7; }

}  // namespace

bool UftraceBounds::IsCode(uint64_t address) const {
  return std::any_of(code.begin(), code.end(), [&](const auto& range) {
    return address >= range.first && address < range.second;
  });
}

// The first record has no time before it: any that a clock could show will do.
bool UftraceTaskFile::Plausible(std::string_view bytes) const {
  const auto time_ns = static_cast<int64_t>(LoadInteger<uint64_t>(bytes.data(), false));
  const uint64_t word = LoadInteger<uint64_t>(bytes.data() + 8, false);
  if (MagicOf(word) != kUftraceRecordMagic || time_ns < last_ns_ || time_ns > bounds_.end_ns)
    return false;
  return last_ns_ == 0 ? time_ns < kMaxUftraceTimeNs : time_ns - last_ns_ < kMaxRecordGapNs;
}

// Among arguments there are pointers and counters: a look at the time alone would
// take some for one.
bool UftraceTaskFile::CanOnlyBeARecord(std::string_view bytes) const {
  if (!Plausible(bytes)) return false;
  const uint64_t word = LoadInteger<uint64_t>(bytes.data() + 8, false);
  const auto type = static_cast<UftraceType>(word & 3);
  const uint64_t address = word >> 16;
  if (type == UftraceType::kLost || type == UftraceType::kEvent) return address < kMaxEventNumber;
  return bounds_.code.empty() || bounds_.IsCode(address);
}

Result<bool> UftraceTaskFile::Resync() {
  for (;;) {
    CULPRIT_ASSIGN(const std::string_view bytes, reader_.Peek(kUftraceRecordBytes));
    if (bytes.size() < kUftraceRecordBytes) {
      reader_.Skip(bytes.size());
      return false;
    }
    if (CanOnlyBeARecord(bytes)) return true;
    reader_.Skip(kStepBytes);
  }
}

Result<bool> UftraceTaskFile::Next(UftraceRecord& record) {
  CULPRIT_ASSIGN(std::string_view bytes, reader_.Peek(kUftraceRecordBytes));
  if (bytes.empty()) return false;
  if (bytes.size() < kUftraceRecordBytes) {
    diagnostics_.Count("file ends inside a record", 1, reader_.offset());
    return false;
  }
  if (!Plausible(bytes)) {
    diagnostics_.Count("damaged record, skipped to the next", 1, reader_.offset());
    CULPRIT_ASSIGN(const bool found, Resync());
    if (!found) return false;
    CULPRIT_ASSIGN(bytes, reader_.Peek(kUftraceRecordBytes));
  }
  const uint64_t word = LoadInteger<uint64_t>(bytes.data() + 8, false);
  record = {.time_ns = static_cast<int64_t>(LoadInteger<uint64_t>(bytes.data(), false)),
            .type = static_cast<UftraceType>(word & 3),
            .depth = static_cast<uint16_t>(word >> 6 & 0x3ff),
            .address = word >> 16,
            .offset = reader_.offset()};
  last_ns_ = record.time_ns;
  reader_.Skip(kUftraceRecordBytes);
  if ((word & kUftraceMore) != 0) CULPRIT_TRY(Resync());
  return true;
}

Result<bool> UftracePerfFile::Next(UftracePerfRecord& record) {
  reader_.Skip(skip_);
  skip_ = 0;
  CULPRIT_ASSIGN(std::string_view bytes, reader_.Peek(kRecordHeadBytes));
  if (bytes.empty()) return false;
  const uint16_t size =
      bytes.size() < kRecordHeadBytes ? 0 : LoadInteger<uint16_t>(bytes.data() + 6, false);
  if (size >= kRecordHeadBytes + kSampleIdBytes) {
    CULPRIT_ASSIGN(bytes, reader_.Peek(size));
  }
  if (size < kRecordHeadBytes + kSampleIdBytes || bytes.size() < size) {
    diagnostics_.Count("damaged record of perf, the rest of its file is not read", 1,
                       reader_.offset());
    return false;
  }
  FieldReader head(bytes, false);
  record = {.type = head.U32(), .misc = head.U16()};
  // Every record ends in who was running and when.
  FieldReader tail(bytes.substr(size - kSampleIdBytes), false);
  record.pid = tail.I32();
  record.tid = tail.I32();
  record.time_ns = static_cast<int64_t>(tail.U64());
  if (record.time_ns < 0 || record.time_ns >= kMaxUftraceTimeNs) {
    diagnostics_.Count("record of perf at an impossible time", 1, reader_.offset());
    record.type = 0;
    record.time_ns = last_ns_;
  }
  last_ns_ = record.time_ns;
  if (record.type == kRecordComm) {
    FieldReader body(bytes.substr(0, size - kSampleIdBytes), false);
    body.Skip(kRecordHeadBytes);
    record.pid = body.I32();
    record.tid = body.I32();
    record.name = body.CString();
  }
  skip_ = size;
  return true;
}

}  // namespace culprit::import_
