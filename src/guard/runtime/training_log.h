// SPDX-License-Identifier: Apache-2.0
//
// The training log of each thread (wire.h, LogKind): a buffer of its own that is
// written to log.PID.TID when it is full, and at waits. A buffer is written whole
// or not at all; what could not be written is counted and told by kLost. When all
// logs of the process together reach the plan's bound, training ends.
//
// A thread writes to its own log alone, except that the log of a thread that is
// gone is ended by another. A signal handler may interrupt at any place: what it
// logs may be lost, never torn. The hot path is TrainingEntry (training_entry.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "guard/runtime/thread_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

inline constexpr size_t kLogWords = 32 * 1024;
inline constexpr ptrdiff_t kEntryWords = 2;  // of a kEnter record

constexpr uint64_t LogWord(wire::LogKind kind, uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(kind) << 60 | (a & 0xfffff) << 40 | (b & 0xff'ffff'ffff);
}

constexpr uint64_t TimeWord(uint64_t ns) {
  return static_cast<uint64_t>(wire::LogKind::kTime) << 60 | (ns & 0xfff'ffff'ffff'ffff);
}

// As long as it lives the runtime works for its own thread, which was not in it:
// functions of the C library that are called meanwhile are no part of the program,
// and are not logged.
class UnloggedWork {
 public:
  explicit UnloggedWork(ThreadState& state);
  ~UnloggedWork();
  UnloggedWork(const UnloggedWork&) = delete;
  UnloggedWork& operator=(const UnloggedWork&) = delete;

 private:
  ThreadState& state_;
  uint64_t* end_;
};

// Entries are logged, up to so many bytes of the process; with `times`, each with its
// time, and of the detoured calls only where they were made.
void StartTraining(uint64_t log_bytes, bool times);
void StopTraining();
bool IsTraining();
bool LogsTimes();
// The bound was reached: the entries are to be unpatched.
bool HasTrainingEnded();

// Appends a record; nothing when the thread is not training.
void AppendLog(ThreadState& state, const uint64_t* words, uint32_t count);

// What a full buffer, or a thread without one, does with an entry's record.
void AppendEntrySlowly(const uint64_t* words);

// An entry's record with its time.
void AppendTimedEntry(const uint64_t* words);

// The same for a detoured call, which has no entry of its own; nothing unless
// LogsTimes().
void LogCallPlace(uint64_t sp, uint64_t site);

// At a wait: culprit reads the logs while the program runs.
void FlushLogIfOld(ThreadState& state, uint64_t now_ns);
void FlushLog(ThreadState& state);

// Of a thread that ends: what matters is written, the file closed.
void EndLog(ThreadState& state);
void EndAllLogs();

}  // namespace culprit::guard::runtime
