// SPDX-License-Identifier: Apache-2.0
// A server of sorts, for inference: rounds of system calls by functions of known
// names, for so many milliseconds. With "hurry" it also tries to accept from a
// socket that has nobody, again and again, and wakes nobody on a futex.
//
//   call_loop MS [hurry]
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>

#include "truth.h"

namespace {

PLANTED void ServeRequest(int in, int out) {
  char bytes[64] = {};
  if (write(out, bytes, sizeof(bytes)) < 0 || read(in, bytes, sizeof(bytes)) < 0) _exit(91);
  if (lseek(out, 0, SEEK_CUR) < 0 && errno != ESPIPE) _exit(92);
}

PLANTED void WriteLog(int log) {
  if (pwrite(log, "line\n", 5, 0) != 5) _exit(93);
  struct stat status = {};
  if (fstat(log, &status) != 0) _exit(94);
}

PLANTED void AcceptAgain(int listener) {
  for (int i = 0; i < 20; ++i) {
    if (accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) >= 0) _exit(95);
  }
}

PLANTED void AcceptOnce(int listener) {
  if (accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) >= 0) _exit(96);
  fcntl(listener, F_SETFL, O_NONBLOCK);
}

PLANTED void WakeWaiters(uint32_t* word, int times) {
  for (int i = 0; i < times; ++i) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr);
}

PLANTED void WaitForWaker(uint32_t* word) {
  const timespec soon = {.tv_sec = 0, .tv_nsec = 1000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &soon);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t end_ns = programs::NowNs() + (argc > 1 ? std::atoll(argv[1]) : 1000) * 1'000'000;
  const bool hurry = argc > 2 && std::string(argv[2]) == "hurry";
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int log = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (listener < 0 || log < 0 || listen(listener, 1) != 0) return 1;
  uint32_t word = 0;
  while (programs::NowNs() < end_ns) {
    for (int i = 0; i < 4; ++i) ServeRequest(ends[0], ends[1]);
    WriteLog(log);
    AcceptOnce(listener);
    WaitForWaker(&word);
    WakeWaiters(&word, hurry ? 30 : 1);
    if (hurry) AcceptAgain(listener);
    programs::SleepMs(1);
  }
  return 0;
}
