// SPDX-License-Identifier: Apache-2.0
// Three processes in a row: the first makes a message, the second works on it and
// passes it on, the third waits for the second, which waits for the first. A
// message says who sent it and when.
#include <sys/wait.h>

#include "truth.h"

namespace {

constexpr int kMessages = 3;
constexpr int64_t kWorkMs = 20;

struct Message {
  int64_t sender = 0;
  int64_t sent_ns = 0;
};

void Send(int pipe) {
  const Message message = {.sender = programs::Tid(), .sent_ns = programs::NowNs()};
  if (write(pipe, &message, sizeof(message)) != sizeof(message)) _exit(1);
}

PLANTED void ReceiveFromTheOneBefore(int pipe) {
  Message message;
  programs::Wait wait = {.from_ns = programs::NowNs()};
  if (read(pipe, &message, sizeof(message)) != sizeof(message)) _exit(1);
  wait.until_ns = programs::NowNs();
  wait.wake_ns = message.sent_ns;
  programs::TellWait("pipe", wait, message.sender, "ReceiveFromTheOneBefore");
}

void First(int out) {
  for (int i = 0; i < kMessages; ++i) {
    programs::SleepMs(2 * kWorkMs);
    Send(out);
  }
}

void Second(int in, int out) {
  for (int i = 0; i < kMessages; ++i) {
    ReceiveFromTheOneBefore(in);
    programs::SleepMs(kWorkMs);
    Send(out);
  }
}

void Third(int in) {
  for (int i = 0; i < kMessages; ++i) ReceiveFromTheOneBefore(in);
}

}  // namespace

int main() {
  int one[2];
  int two[2];
  if (pipe(one) != 0 || pipe(two) != 0) return 1;
  if (fork() == 0) {
    Second(one[0], two[1]);
    _exit(0);
  }
  if (fork() == 0) {
    Third(two[0]);
    _exit(0);
  }
  First(one[1]);
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  return failed == 0 ? 0 : 1;
}
