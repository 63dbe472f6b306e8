// SPDX-License-Identifier: Apache-2.0
#include "guard/cpu_meter.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "guard/proc_file.h"

namespace culprit::guard {

uint64_t ProcessCpuNs(int64_t pid) {
  const auto text = ReadProcFile(ProcPath(pid, "stat"));
  if (!text.ok()) return 0;
  // Field 2 is the name in parentheses, which may hold anything; utime is field 14.
  size_t at = text.value().rfind(')');
  if (at == std::string::npos) return 0;
  for (int field = 2; field < 14; ++field) {
    at = text.value().find(' ', at + 1);
    if (at == std::string::npos) return 0;
  }
  char* rest = nullptr;
  const uint64_t user = std::strtoull(text.value().c_str() + at, &rest, 10);
  const uint64_t system = std::strtoull(rest, nullptr, 10);
  const long a_second = sysconf(_SC_CLK_TCK);
  return a_second <= 0 ? 0 : (user + system) * 1'000'000'000 / static_cast<uint64_t>(a_second);
}

void CpuMeter::Look(const std::vector<int64_t>& pids) {
  for (const int64_t pid : pids) {
    const uint64_t cpu_ns = ProcessCpuNs(pid);
    const auto [found, is_new] = spans_.try_emplace(pid, Span{cpu_ns, cpu_ns});
    if (cpu_ns > found->second.last_ns) found->second.last_ns = cpu_ns;
  }
}

uint64_t CpuMeter::cpu_ns() const {
  uint64_t sum_ns = 0;
  for (const auto& [pid, span] : spans_) sum_ns += span.last_ns - span.first_ns;
  return sum_ns;
}

}  // namespace culprit::guard
