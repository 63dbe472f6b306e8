// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/training_log.h"

#include <algorithm>

#include "guard/runtime/process.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/training_entry.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kFlushNs = 100'000'000;

std::atomic<uint64_t> g_log_limit;
std::atomic<bool> g_ended;
std::atomic<bool> g_times;

// While the runtime works for a thread, entries of functions that it calls are
// no part of the program.
class QuietHere {
 public:
  explicit QuietHere(ThreadState& state) : state_(state), before_(state.odd.in_runtime) {
    state.odd.in_runtime = true;
  }
  ~QuietHere() { state_.odd.in_runtime = before_; }

 private:
  ThreadState& state_;
  bool before_;
};

bool WriteAll(int fd, const uint64_t* words, size_t bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(words);
  struct stat status = {};
  if (RawFstat(fd, &status) != 0) return false;
  for (size_t done = 0; done < bytes;) {
    const long wrote = RawWrite(fd, data + done, bytes - done);
    if (wrote <= 0) {
      // Half a buffer would end in half a record.
      RawSyscall(SYS_ftruncate, fd, status.st_size);
      return false;
    }
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool WriteLogHeader(ThreadState& state, uint32_t tid) {
  struct stat status = {};
  if (RawFstat(state.log_file.fd(), &status) != 0) return false;
  const uint64_t now_ns = MonotonicNs();
  if (status.st_size == 0) {
    const wire::LogHeader header = {
        wire::Magic("CGLOG_01"), wire::kWireVersion, ThisProcess().pid, tid, ParentPid(), now_ns};
    static_assert(sizeof(header) % sizeof(uint64_t) == 0);
    if (!WriteAll(state.log_file.fd(), reinterpret_cast<const uint64_t*>(&header),
                  sizeof(header))) {
      return false;
    }
  }
  const uint64_t thread[] = {LogWord(wire::LogKind::kThread, 0, 0), now_ns, 0};
  return WriteAll(state.log_file.fd(), thread, sizeof(thread));
}

// By name again when the program closed the descriptor.
bool EnsureLogFile(ThreadState& state) {
  if (state.log_file.IsOurs()) return true;
  if (!EnsureProcess()) return false;
  const bool again = state.log_file.held();
  const uint32_t tid = state.tid.load(std::memory_order_relaxed);
  FileName name("log.");
  name.Add(ThisProcess().pid).Add(".").Add(tid);
  if (!OpenSessionFile(name.text(), O_WRONLY | O_APPEND | O_CREAT, state.log_file)) return false;
  return again || WriteLogHeader(state, tid);
}

bool WriteBuffer(ThreadState& state, size_t words) {
  if (!EnsureLogFile(state)) return false;
  if (state.lost_bytes != 0) {
    const uint64_t lost = LogWord(wire::LogKind::kLost, 0, state.lost_bytes);
    if (!WriteAll(state.log_file.fd(), &lost, sizeof(lost))) return false;
    state.lost_bytes = 0;
  }
  return WriteAll(state.log_file.fd(), state.log, words * sizeof(uint64_t));
}

void LoseBytes(ThreadState& state, uint64_t bytes) {
  state.lost_bytes += bytes;
  if (ThisProcess().stage.load(std::memory_order_acquire) == Process::kMade) {
    ThisProcess().header->lost_log_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
}

// Writes [log, next) of the state.
void WriteOut(ThreadState& state, const uint64_t* next) {
  if (state.log == nullptr || next <= state.log || next > state.log + kLogWords) return;
  const auto words = static_cast<size_t>(next - state.log);
  const uint64_t bytes = words * sizeof(uint64_t);
  const uint64_t total = ThisProcess().log_bytes.fetch_add(bytes) + bytes;
  if (total > g_log_limit.load(std::memory_order_relaxed)) {
    g_ended.store(true);
    StopTraining();
    LoseBytes(state, bytes);
  } else if (!WriteBuffer(state, words)) {
    LoseBytes(state, bytes);
  }
}

bool EnsureBuffer(ThreadState& state) {
  if (state.log == nullptr) {
    state.log = static_cast<uint64_t*>(MapMemory(kLogWords * sizeof(uint64_t)));
  }
  if (state.log == nullptr) return false;
  if (t_log.end == nullptr) t_log = {state.log, state.log + kLogWords};
  return true;
}

// A raw fork leaves the child with its parent's cursor, into memory that the
// kernel did not wipe; the child's state, which it did, knows no buffer.
void ForgetForeignBuffer(const ThreadState& state) {
  if (t_log.end != nullptr && t_log.end != state.log + kLogWords) t_log = {};
}

bool MakeRoom(ThreadState& state, uint32_t words) {
  ForgetForeignBuffer(state);
  if (!EnsureBuffer(state)) return false;
  if (t_log.next + words > t_log.end) FlushLog(state);
  return t_log.next + words <= t_log.end;
}

}  // namespace

// A buffer without room leads entries to the slow path, which looks at in_runtime.
UnloggedWork::UnloggedWork(ThreadState& state) : state_(state), end_(t_log.end) {
  state.odd.in_runtime = true;
  if (end_ != nullptr) t_log.end = t_log.next;
}
UnloggedWork::~UnloggedWork() {
  if (t_log.end != nullptr) t_log.end = end_;
  state_.odd.in_runtime = false;
}

void StartTraining(uint64_t log_bytes, bool times) {
  g_times.store(times);
  g_log_limit.store(log_bytes == 0 ? UINT64_MAX : log_bytes);
  g_ended.store(false);
  g_training.store(true);
}

void StopTraining() { g_training.store(false); }

bool IsTraining() { return g_training.load(std::memory_order_relaxed); }

bool LogsTimes() { return g_times.load(std::memory_order_relaxed) && IsTraining(); }

bool HasTrainingEnded() { return g_ended.load(std::memory_order_relaxed); }

void AppendLog(ThreadState& state, const uint64_t* words, uint32_t count) {
  if (!IsTraining()) return;
  const QuietHere quiet(state);
  if (!MakeRoom(state, count)) return;
  for (;;) {
    uint64_t* const next = t_log.next;
    for (uint32_t i = 0; i < count; ++i) next[i] = words[i];
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A handler that came between wrote over it: once more, behind its records.
    if (t_log.next != next) {
      if (!MakeRoom(state, count)) return;
      continue;
    }
    t_log.next = next + count;
    return;
  }
}

void AppendEntrySlowly(const uint64_t* words) {
  ThreadState* state = ThisThread();
  if (state == nullptr || state->odd.in_runtime) return;
  AppendLog(*state, words, kEntryWords);
}

// Who only computes is of interest too: its log is kept as if it had waited.
void AppendTimedEntry(const uint64_t* words) {
  ThreadState* state = ThisThread();
  if (state == nullptr || state->odd.in_runtime) return;
  state->saw_wait = true;
  const uint64_t timed[] = {TimeWord(MonotonicNs()), words[0], words[1]};
  AppendLog(*state, timed, 1 + kEntryWords);
}

void LogCallPlace(uint64_t sp, uint64_t site) {
  ThreadState* state = LogsTimes() ? ThisThread() : nullptr;
  if (state == nullptr || state->odd.in_runtime) return;
  const uint64_t now_ns = MonotonicNs();
  const uint64_t words[] = {TimeWord(now_ns), LogWord(wire::LogKind::kPlace, 0, sp >> 4), site};
  AppendLog(*state, words, 3);
  FlushLogIfOld(*state, now_ns);
}

// With times, whose system calls these were is told in the next buffer.
void FlushLog(ThreadState& state) {
  if (state.log == nullptr || t_log.end == nullptr) return;
  const QuietHere quiet(state);
  const uint64_t begin_ns = LogsTimes() ? MonotonicNs() : 0;
  WriteOut(state, t_log.next);
  t_log.next = state.log;
  if (begin_ns == 0) return;
  const uint64_t words[] = {LogWord(wire::LogKind::kOwnWork, 0, 0), begin_ns, MonotonicNs()};
  for (const uint64_t word : words) *t_log.next++ = word;
}

void FlushLogIfOld(ThreadState& state, uint64_t now_ns) {
  state.saw_wait = true;
  if (state.flushed_ns == 0) state.flushed_ns = now_ns;
  if (now_ns - state.flushed_ns < kFlushNs) return;
  state.flushed_ns = now_ns;
  FlushLog(state);
}

// The cursor of a thread that is gone went with it.
void EndLog(ThreadState& state) {
  const bool own = KnownThread() == &state;
  if (own && (state.saw_wait || state.log_file.held())) FlushLog(state);
  state.log_file.Close();
}

// With times, whatever this thread calls from here on is the runtime's, or not logged.
void EndAllLogs() {
  const long pid = RawGetPid();
  if (ThreadState* own = LogsTimes() ? KnownThread() : nullptr; own != nullptr) {
    const uint64_t words[] = {LogWord(wire::LogKind::kOwnWork, 0, 0), MonotonicNs(), INT64_MAX};
    AppendLog(*own, words, 3);
  }
  ForEachThread([&](ThreadState& state) {
    const uint32_t tid = state.tid.load(std::memory_order_acquire);
    if (!state.saw_wait || state.log == nullptr) return;
    if (RawSyscall(SYS_tgkill, pid, tid, 0) != 0) return;
    WriteOut(state, state.cursor->next);
    state.cursor->next = state.log;
  });
}

}  // namespace culprit::guard::runtime
