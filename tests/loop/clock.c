// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a watch: its calendar clock is the machine's plus as many seconds as
// the file CULPRIT_CLOCK says, read anew at each call (a mapped int64_t). So a
// clock can jump for the processes of a test and for nobody else. Monotonic clocks are
// left alone, as they are when an administrator sets the time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* shift;

__attribute__((constructor)) static void Begin(void) {
  const char* path = getenv("CULPRIT_CLOCK");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* memory = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (memory != MAP_FAILED) shift = memory;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*original)(clockid_t, struct timespec*);
  if (original == NULL)
    original = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = original(clock, time);
  if (result == 0 && shift != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += *shift;
  }
  return result;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* to) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}
