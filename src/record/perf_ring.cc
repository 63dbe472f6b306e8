// SPDX-License-Identifier: Apache-2.0
#include "record/perf_ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

namespace culprit::record {
namespace {

constexpr size_t kFewestPages = 4;

}  // namespace

int OpenPerfEvent(perf_event_attr& attr, int pid, int cpu, int group) {
  attr.size = sizeof(attr);
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC));
}

// "0-3,8,10-11".
std::vector<int> OnlineCpus() {
  std::vector<int> cpus;
  std::string text;
  std::getline(std::ifstream("/sys/devices/system/cpu/online"), text);
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) break;
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') parsed = std::from_chars(parsed.ptr + 1, end, last);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = parsed.ptr + 1;
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

// An ordinary user may lock little memory.
Result<PerfRing> PerfRing::Map(int fd, size_t pages) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (; pages >= kFewestPages; pages /= 2) {
    void* memory = mmap(nullptr, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) return PerfRing(fd, memory, pages * page);
  }
  Error error = ErrnoError("map the ring of a perf event", "");
  error.hint = "raise kernel.perf_event_mlock_kb, or run as root";
  close(fd);
  return error;
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      wrapped_(std::move(other.wrapped_)) {}

PerfRing::~PerfRing() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (memory_ != nullptr) munmap(memory_, bytes_ + page);
  if (fd_ >= 0) close(fd_);
}

void PerfRing::Drain(const Visitor& visitor) {
  auto* control = static_cast<perf_event_mmap_page*>(memory_);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const char* data = static_cast<const char*>(memory_) + page;
  const uint64_t head = std::atomic_ref<__u64>(control->data_head).load(std::memory_order_acquire);
  uint64_t tail = control->data_tail;
  while (head - tail >= sizeof(perf_event_header)) {
    const size_t at = tail % bytes_;
    perf_event_header header;
    // Records are 8-aligned, so a header never wraps.
    memcpy(&header, data + at, sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) break;
    if (at + header.size <= bytes_) {
      visitor({data + at, header.size});
    } else {
      wrapped_.assign(data + at, bytes_ - at);
      wrapped_.append(data, header.size - (bytes_ - at));
      visitor(wrapped_);
    }
    tail += header.size;
  }
  std::atomic_ref<__u64>(control->data_tail).store(head, std::memory_order_release);
}

}  // namespace culprit::record
