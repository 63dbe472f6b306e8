// SPDX-License-Identifier: Apache-2.0
#include "record/cpu_samples.h"

#include <asm/perf_regs.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace culprit::record {
namespace {

constexpr size_t kPages = 8;
#if defined(__aarch64__)
constexpr uint64_t kProgramCounter = uint64_t{1} << PERF_REG_ARM64_PC;
#else
constexpr uint64_t kProgramCounter = uint64_t{1} << PERF_REG_X86_IP;
#endif

// As sample_type and sample_regs_user ask for it.
struct SampleFields {
  uint32_t pid, tid;
  uint64_t abi;  // PERF_SAMPLE_REGS_ABI_NONE: there are no registers, for there is no user
  uint64_t program_counter;
};

}  // namespace

Result<CpuSamples> CpuSamples::Open(uint64_t samples_a_second) {
  CpuSamples samples;
  for (const int cpu : OnlineCpus()) {
    perf_event_attr attr = {};
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.freq = 1;
    attr.sample_freq = samples_a_second;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = kProgramCounter;
    attr.disabled = 1;
    const int fd = OpenPerfEvent(attr, -1, cpu);
    if (fd < 0) {
      const bool forbidden = errno == EACCES || errno == EPERM;
      Error error = ErrnoError("sample CPUs", "");
      if (forbidden) error.hint = "run as root, or: sudo sysctl kernel.perf_event_paranoid=0";
      return error;
    }
    CULPRIT_ASSIGN(PerfRing ring, PerfRing::Map(fd, kPages));
    samples.rings_.push_back(std::move(ring));
  }
  return samples;
}

void CpuSamples::Sample(bool on) {
  if (on == on_) return;
  on_ = on;
  for (const PerfRing& ring : rings_) {
    ioctl(ring.fd(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
}

void CpuSamples::Take(const Visitor& visitor) {
  for (PerfRing& ring : rings_) {
    ring.Drain([&](std::string_view record) {
      perf_event_header header;
      SampleFields fields = {};
      if (record.size() < sizeof(header) + sizeof(fields)) return;
      memcpy(&header, record.data(), sizeof(header));
      memcpy(&fields, record.data() + sizeof(header), sizeof(fields));
      if (header.type != PERF_RECORD_SAMPLE || fields.abi == PERF_SAMPLE_REGS_ABI_NONE) return;
      visitor(fields.pid, fields.program_counter);
    });
  }
}

}  // namespace culprit::record
