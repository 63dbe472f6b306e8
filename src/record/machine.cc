// SPDX-License-Identifier: Apache-2.0
#include "record/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "import/kernel_stacks.h"
#include "record/process_scan.h"

namespace culprit::record {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t Read(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)".
std::string PrettyName(std::string_view os_release) {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  const size_t at = os_release.find(kKey);
  if (at == std::string_view::npos) return {};
  std::string_view value = os_release.substr(at + kKey.size());
  value = value.substr(0, value.find('\n'));
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
  return std::string(value);
}

struct KernelFunction {
  uint64_t address = 0;
  bool is_entry = false;
};

bool ParseFunction(std::string_view line, KernelFunction& function) {
  const char* end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data(), end, function.address, 16);
  const size_t at = static_cast<size_t>(parsed.ptr - line.data());
  if (parsed.ec != std::errc() || at + 3 >= line.size()) return false;
  const char type = line[at + 1];
  if (type != 't' && type != 'T' && type != 'w' && type != 'W') return false;
  std::string_view name = line.substr(at + 3);
  name = name.substr(0, name.find_first_of("\t "));
  // Softirqs at the end of an interrupt run below it, but also elsewhere.
  function.is_entry =
      (import_::TraitsOf(name) & import_::kInterruptEntry) != 0 && !name.starts_with("irq_exit");
  return true;
}

}  // namespace

std::optional<trace::SyscallAbi> OwnSyscallAbi() {
  utsname names = {};
  if (uname(&names) != 0) return {};
  return trace::SyscallAbiOf(std::string_view(names.machine));
}

int64_t MonotonicNs() { return Read(CLOCK_MONOTONIC); }
int64_t WallNs() { return Read(CLOCK_REALTIME); }
void SleepNs(int64_t dur_ns) {
  const timespec time = {.tv_sec = 0, .tv_nsec = dur_ns};
  nanosleep(&time, nullptr);
}
int64_t OwnCpuNs() { return Read(CLOCK_PROCESS_CPUTIME_ID); }
int64_t ThreadCpuNs() { return Read(CLOCK_THREAD_CPUTIME_ID); }

void FillMachine(trace::Metadata& metadata) {
  utsname name = {};
  if (uname(&name) == 0) {
    metadata.machine = name.nodename;
    metadata.kernel = name.release;
    metadata.arch = name.machine;
  }
  metadata.os = PrettyName(ReadKernelFile("/etc/os-release"));
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  if (cpus > 0) metadata.cpus = static_cast<uint32_t>(cpus);
  metadata.clock = "CLOCK_MONOTONIC";
}

std::vector<AddressRange> InterruptEntries(std::string_view kallsyms, size_t max_ranges) {
  std::vector<KernelFunction> functions;
  while (!kallsyms.empty()) {
    const std::string_view line = kallsyms.substr(0, kallsyms.find('\n'));
    kallsyms.remove_prefix(std::min(kallsyms.size(), line.size() + 1));
    KernelFunction function;
    if (ParseFunction(line, function) && function.address != 0) functions.push_back(function);
  }
  std::stable_sort(
      functions.begin(), functions.end(),
      [](const KernelFunction& a, const KernelFunction& b) { return a.address < b.address; });
  std::vector<AddressRange> ranges;
  for (size_t i = 0; i + 1 < functions.size(); ++i) {
    if (!functions[i].is_entry || functions[i + 1].address == functions[i].address) continue;
    if (!ranges.empty() && ranges.back().end == functions[i].address) {
      ranges.back().end = functions[i + 1].address;
    } else {
      ranges.push_back({.start = functions[i].address, .end = functions[i + 1].address});
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const AddressRange& a, const AddressRange& b) {
    return a.end - a.start > b.end - b.start;
  });
  if (ranges.size() > max_ranges) ranges.resize(max_ranges);
  return ranges;
}

}  // namespace culprit::record
