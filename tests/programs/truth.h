// SPDX-License-Identifier: Apache-2.0
//
// What the programs of known behaviour tell about themselves: one JSON object a
// line on standard output, written in one piece so that lines of several
// processes do not mix. Times are CLOCK_MONOTONIC, the clock of a recording, so
// they can be held against its events one by one.
//
//   {"wait": ..., "tid": T, "by": T or "timer" or "disk", "from_ns": A,
//    "wake_ns": B, "until_ns": C, "in": "Function"}
//
// T began to block after A and went on before C; who ended it set about it at B.
// So the wait begins after A and ends between B and C, whatever the scheduler
// did meanwhile. Where nobody knows when the wake-up was due, B is A.
//
//   {"run": ..., "tid": T, "cpu_ns": N, "in": "Function"}
//
// T used N of CPU time inside that function, by its thread's own clock.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>

// Functions whose names are looked for in stacks.
#define PLANTED __attribute__((noinline))

namespace programs {

inline int64_t Clock(clockid_t id) {
  timespec now = {};
  clock_gettime(id, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}
inline int64_t NowNs() { return Clock(CLOCK_MONOTONIC); }
inline int64_t ThreadCpuNs() { return Clock(CLOCK_THREAD_CPUTIME_ID); }
inline int64_t Tid() { return syscall(SYS_gettid); }

inline void SleepMs(int64_t ms) {
  const timespec span = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
  nanosleep(&span, nullptr);
}

__attribute__((format(printf, 1, 2))) inline void Tell(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
  va_end(arguments);
  line[length] = '\n';
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length) + 1) < 0) _exit(90);
}

struct Wait {
  int64_t from_ns = 0;
  int64_t wake_ns = 0;
  int64_t until_ns = 0;
};

inline void TellWait(const char* what, const Wait& wait, int64_t by_tid, const char* function) {
  Tell(R"({"wait":"%s","tid":%ld,"by":%ld,"from_ns":%ld,"wake_ns":%ld,"until_ns":%ld,"in":"%s"})",
       what, static_cast<long>(Tid()), static_cast<long>(by_tid), static_cast<long>(wait.from_ns),
       static_cast<long>(wait.wake_ns), static_cast<long>(wait.until_ns), function);
}
inline void TellWait(const char* what, const Wait& wait, const char* by_device,
                     const char* function) {
  Tell(R"({"wait":"%s","tid":%ld,"by":"%s","from_ns":%ld,"wake_ns":%ld,"until_ns":%ld,"in":"%s"})",
       what, static_cast<long>(Tid()), by_device, static_cast<long>(wait.from_ns),
       static_cast<long>(wait.wake_ns), static_cast<long>(wait.until_ns), function);
}
inline void TellRun(const char* what, int64_t cpu_ns, const char* function) {
  Tell(R"({"run":"%s","tid":%ld,"cpu_ns":%ld,"in":"%s"})", what, static_cast<long>(Tid()),
       static_cast<long>(cpu_ns), function);
}

}  // namespace programs
