// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_sample.h"

#include <algorithm>
#include <bit>

namespace culprit::import_ {
namespace {

constexpr uint64_t kReadEnabled = 1;
constexpr uint64_t kReadRunning = 2;
constexpr uint64_t kReadId = 4;
constexpr uint64_t kReadGroup = 8;
constexpr uint64_t kReadLost = 16;
constexpr uint64_t kBranchIndex = 1 << 17;
constexpr uint64_t kBranchCounters = 1 << 19;
constexpr uint64_t kBranchEntryBytes = 24;
constexpr uint64_t kIdFields =
    kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu | kSampleIdentifier;

void SkipRead(uint64_t format, FieldReader& in) {
  const auto times = static_cast<uint64_t>(std::popcount(format & (kReadEnabled | kReadRunning)));
  const auto each = static_cast<uint64_t>(std::popcount(format & (kReadId | kReadLost)));
  if ((format & kReadGroup) == 0) return in.Skip(8 * (1 + times + each));
  const uint64_t count = in.U64();
  in.Skip(8 * times);
  in.Skip(count > in.remaining() ? UINT64_MAX : count * 8 * (1 + each));
}

void SkipBranches(const PerfAttr& attr, FieldReader& in) {
  const uint64_t count = in.U64();
  if ((attr.branch_sample_type & kBranchIndex) != 0) in.Skip(8);
  const uint64_t each =
      kBranchEntryBytes + ((attr.branch_sample_type & kBranchCounters) != 0 ? 8 : 0);
  in.Skip(count > in.remaining() ? UINT64_MAX : count * each);
}

void SkipRegisters(uint32_t count, FieldReader& in) {
  if (in.U64() != 0) in.Skip(uint64_t{count} * 8);
}

void ReadUserRegisters(const PerfAttr& attr, FieldReader& in, PerfSample& out) {
  out.user_abi = in.U64();
  if (out.user_abi == 0) return;
  out.user_registers = in.Bytes(uint64_t{8} * std::popcount(attr.user_register_mask));
}

// Room for a whole copy is reserved; how much of it was filled stands behind it.
void ReadUserStack(FieldReader& in, PerfSample& out) {
  const uint64_t size = in.U64();
  if (size == 0) return;
  out.user_stack = in.Bytes(size);
  out.user_stack = out.user_stack.substr(0, in.U64());
}

}  // namespace

bool ParsePerfSample(const PerfAttr& attr, std::string_view body, bool big, PerfSample& out) {
  FieldReader in(body, big);
  if (attr.Has(kSampleIdentifier)) in.Skip(8);
  if (attr.Has(kSampleIp)) {
    out.leaf = body.substr(std::min(in.position(), body.size()), 8);
    out.ip = in.U64();
  }
  if (attr.Has(kSampleTid)) {
    out.pid = in.I32();
    out.tid = in.I32();
  }
  if (attr.Has(kSampleTime)) out.time = in.U64();
  if (attr.Has(kSampleAddr)) in.Skip(8);
  if (attr.Has(kSampleId)) in.Skip(8);
  if (attr.Has(kSampleStreamId)) in.Skip(8);
  if (attr.Has(kSampleCpu)) {
    out.cpu = in.U32();
    in.Skip(4);
  }
  if (attr.Has(kSamplePeriod)) out.period = in.U64();
  if (attr.Has(kSampleRead)) SkipRead(attr.read_format, in);
  if (attr.Has(kSampleCallchain)) {
    const uint64_t count = in.U64();
    out.chain = in.Bytes(count > in.remaining() ? UINT64_MAX : count * 8);
  }
  if (attr.Has(kSampleRaw)) out.raw = in.Bytes(in.U32());
  // Only the user's stack and the control group are of use behind this point.
  if (!attr.Has(kSampleCgroup | kSampleRegsUser)) return !in.failed();
  if (attr.Has(kSampleRaw)) in.Skip((8 - in.position() % 8) % 8);
  if (attr.Has(kSampleBranchStack)) SkipBranches(attr, in);
  if (attr.Has(kSampleRegsUser)) ReadUserRegisters(attr, in, out);
  if (attr.Has(kSampleStackUser)) ReadUserStack(in, out);
  if (!attr.Has(kSampleCgroup)) return !in.failed();
  if (attr.Has(kSampleWeight | kSampleWeightStruct)) in.Skip(8);
  if (attr.Has(kSampleDataSource)) in.Skip(8);
  if (attr.Has(kSampleTransaction)) in.Skip(8);
  if (attr.Has(kSampleRegsIntr)) SkipRegisters(attr.interrupt_registers, in);
  if (attr.Has(kSamplePhysicalAddress)) in.Skip(8);
  out.cgroup = in.U64();
  return !in.failed();
}

size_t PerfSampleIdBytes(const PerfAttr& attr) {
  if (!attr.sample_id_all) return 0;
  return static_cast<size_t>(std::popcount(attr.sample_type & kIdFields)) * 8;
}

PerfSample ParsePerfSampleId(const PerfAttr& attr, std::string_view body, bool big) {
  PerfSample out;
  const size_t size = PerfSampleIdBytes(attr);
  if (size == 0 || size > body.size()) return out;
  FieldReader in(body.substr(body.size() - size), big);
  if (attr.Has(kSampleTid)) {
    out.pid = in.I32();
    out.tid = in.I32();
  }
  if (attr.Has(kSampleTime)) out.time = in.U64();
  if (attr.Has(kSampleId)) in.Skip(8);
  if (attr.Has(kSampleStreamId)) in.Skip(8);
  if (attr.Has(kSampleCpu)) out.cpu = in.U32();
  return out;
}

uint64_t PerfSampleTime(const PerfAttr& attr, std::string_view body, bool big) {
  if (!attr.Has(kSampleTime)) return 0;
  const size_t place = static_cast<size_t>(std::popcount(
                           attr.sample_type & (kSampleIdentifier | kSampleIp | kSampleTid))) *
                       8;
  return body.size() < place + 8 ? 0 : LoadInteger<uint64_t>(body.data() + place, big);
}

}  // namespace culprit::import_
