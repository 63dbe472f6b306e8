// SPDX-License-Identifier: Apache-2.0
#include "record/bpf_ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace culprit::record {
namespace {

// So much is read before the writers may have it again: each time is a line of the cache
// that they have to fetch.
constexpr uint64_t kGiveBackBytes = 64 << 10;

uint64_t RecordBytes(uint32_t length) {
  return (uint64_t{length} + BPF_RINGBUF_HDR_SZ + 7) & ~uint64_t{7};
}

}  // namespace

Result<BpfRing> BpfRing::Open(int map_fd, uint64_t bytes) {
  BpfRing ring;
  ring.bytes_ = bytes;
  ring.page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* consumer =
      mmap(nullptr, ring.page_, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, /*offset=*/0);
  if (consumer == MAP_FAILED) return ErrnoError("map the ring", "");
  ring.consumer_ = static_cast<char*>(consumer);
  void* producer = mmap(nullptr, ring.page_ + 2 * bytes, PROT_READ, MAP_SHARED, map_fd,
                        static_cast<off_t>(ring.page_));
  if (producer == MAP_FAILED) return ErrnoError("map the ring", "");
  ring.producer_ = static_cast<const char*>(producer);
  return ring;
}

BpfRing::BpfRing(BpfRing&& other) noexcept { *this = std::move(other); }

BpfRing& BpfRing::operator=(BpfRing&& other) noexcept {
  if (this == &other) return *this;
  Close();
  bytes_ = other.bytes_;
  page_ = other.page_;
  consumer_ = std::exchange(other.consumer_, nullptr);
  producer_ = std::exchange(other.producer_, nullptr);
  return *this;
}

BpfRing::~BpfRing() { Close(); }

void BpfRing::Close() {
  if (consumer_ != nullptr) munmap(consumer_, page_);
  if (producer_ != nullptr) munmap(const_cast<char*>(producer_), page_ + 2 * bytes_);
  consumer_ = nullptr;
  producer_ = nullptr;
}

uint64_t BpfRing::used() const {
  const auto* read = reinterpret_cast<const uint64_t*>(consumer_);
  const auto* written = reinterpret_cast<const uint64_t*>(producer_);
  return __atomic_load_n(written, __ATOMIC_ACQUIRE) - __atomic_load_n(read, __ATOMIC_RELAXED);
}

void BpfRing::Drain(const Visitor& visitor) {
  auto* read = reinterpret_cast<uint64_t*>(consumer_);
  const auto* written = reinterpret_cast<const uint64_t*>(producer_);
  const char* data = producer_ + page_;
  uint64_t at = __atomic_load_n(read, __ATOMIC_RELAXED);
  uint64_t given_back = at;
  const uint64_t end = __atomic_load_n(written, __ATOMIC_ACQUIRE);
  while (at < end) {
    const char* record = data + (at & (bytes_ - 1));
    const uint32_t head =
        __atomic_load_n(reinterpret_cast<const uint32_t*>(record), __ATOMIC_ACQUIRE);
    if ((head & BPF_RINGBUF_BUSY_BIT) != 0) break;
    const uint32_t length = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if ((head & BPF_RINGBUF_DISCARD_BIT) == 0) visitor({record + BPF_RINGBUF_HDR_SZ, length});
    at += RecordBytes(length);
    if (at - given_back < kGiveBackBytes) continue;
    __atomic_store_n(read, at, __ATOMIC_RELEASE);
    given_back = at;
  }
  __atomic_store_n(read, at, __ATOMIC_RELEASE);
}

}  // namespace culprit::record
