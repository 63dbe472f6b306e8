// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_maps.h"

#ifdef CULPRIT_HAS_BPF_ENGINE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace culprit::record {

struct UnwindMaps::State {
  ~State() {
    if (ring != nullptr) ring_buffer__free(ring);
    for (const int fd : chunk_fds) close(fd);
    if (wake_fd >= 0) close(wake_fd);
  }

  UnwindMapFds fds;
  ring_buffer* ring = nullptr;
  int wake_fd = -1;
  std::vector<int> chunk_fds;
  const Visitor* visitor = nullptr;
};

UnwindMaps::UnwindMaps(std::unique_ptr<State> state) : state_(std::move(state)) {}
UnwindMaps::~UnwindMaps() = default;

Result<std::unique_ptr<UnwindMaps>> UnwindMaps::Open(const UnwindMapFds& fds) {
  auto state = std::make_unique<State>();
  state->fds = fds;
  state->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->wake_fd < 0) return ErrnoError("make an event descriptor", "");
  const auto forward = [](void* argument, void* data, size_t size) {
    if (size < sizeof(UnwindRequest)) return 0;
    (*static_cast<State*>(argument)->visitor)(*static_cast<const UnwindRequest*>(data));
    return 0;
  };
  state->ring = ring_buffer__new(fds.requests, forward, state.get(), nullptr);
  if (state->ring == nullptr) return ErrnoError("map the walker's requests", "");
  return std::unique_ptr<UnwindMaps>(new UnwindMaps(std::move(state)));
}

void UnwindMaps::Wait(int timeout_ms, const Visitor& visitor) {
  pollfd fds[2] = {{.fd = ring_buffer__epoll_fd(state_->ring), .events = POLLIN, .revents = 0},
                   {.fd = state_->wake_fd, .events = POLLIN, .revents = 0}};
  poll(fds, 2, timeout_ms);
  uint64_t wakes = 0;
  while (read(state_->wake_fd, &wakes, sizeof(wakes)) > 0) {
  }
  state_->visitor = &visitor;
  // Takes the wake-up of the ring, too, which consuming alone would leave standing.
  ring_buffer__poll(state_->ring, 0);
  state_->visitor = nullptr;
}

void UnwindMaps::Wake() const {
  const uint64_t one = 1;
  // A counter that is full has woken already.
  if (write(state_->wake_fd, &one, sizeof(one)) < 0) return;
}

bool UnwindMaps::SetChunk(size_t number, std::span<const uint32_t> words) {
  const uint32_t zero = 0;
  const auto key = static_cast<uint32_t>(number);
  const bool is_new = number >= state_->chunk_fds.size();
  if (is_new) {
    const int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(uint32_t),
                                  kUnwindChunkWords * sizeof(uint32_t), 1, nullptr);
    if (fd < 0) return false;
    state_->chunk_fds.push_back(fd);
  }
  const int fd = state_->chunk_fds[number];
  if (bpf_map_update_elem(fd, &zero, words.data(), BPF_ANY) != 0) return false;
  return !is_new || bpf_map_update_elem(state_->fds.chunks, &key, &fd, BPF_ANY) == 0;
}

bool UnwindMaps::SetRules(size_t first, std::span<const UnwindRule> rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto key = static_cast<uint32_t>(first + i);
    if (bpf_map_update_elem(state_->fds.rules, &key, &rules[i], BPF_ANY) != 0) return false;
  }
  return true;
}

bool UnwindMaps::SetRanges(uint32_t first, std::span<const UnwindRange> ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto key = static_cast<uint32_t>(first + i);
    if (bpf_map_update_elem(state_->fds.ranges, &key, &ranges[i], BPF_ANY) != 0) return false;
  }
  return true;
}

bool UnwindMaps::SetProcess(int64_t pid, const UnwindProcess& process) {
  const auto key = static_cast<uint32_t>(pid);
  return bpf_map_update_elem(state_->fds.processes, &key, &process, BPF_ANY) == 0;
}

void UnwindMaps::ForgetProcess(int64_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  bpf_map_delete_elem(state_->fds.processes, &key);
}

}  // namespace culprit::record

#else   // without the engine nothing opens them

namespace culprit::record {

struct UnwindMaps::State {};

UnwindMaps::UnwindMaps(std::unique_ptr<State> state) : state_(std::move(state)) {}
UnwindMaps::~UnwindMaps() = default;

Result<std::unique_ptr<UnwindMaps>> UnwindMaps::Open(const UnwindMapFds&) {
  return Error{.message = "built without the BPF engine"};
}

void UnwindMaps::Wait(int, const Visitor&) {}
void UnwindMaps::Wake() const {}
bool UnwindMaps::SetChunk(size_t, std::span<const uint32_t>) { return false; }
bool UnwindMaps::SetRules(size_t, std::span<const UnwindRule>) { return false; }
bool UnwindMaps::SetRanges(uint32_t, std::span<const UnwindRange>) { return false; }
bool UnwindMaps::SetProcess(int64_t, const UnwindProcess&) { return false; }
void UnwindMaps::ForgetProcess(int64_t) {}

}  // namespace culprit::record
#endif  // CULPRIT_HAS_BPF_ENGINE
