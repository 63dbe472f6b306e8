// SPDX-License-Identifier: Apache-2.0
// Two processes that hand a byte to and fro as fast as they can, for as many
// milliseconds as the operand says: more records than a small ring holds. Tells
// how often, and ends with code 7, so that a recorder's own code is told apart.
#include <sys/wait.h>

#include <cstdlib>

#include "truth.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 1;
  char byte = 0;
  if (fork() == 0) {
    close(there[1]);
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
    }
    _exit(0);
  }
  const int64_t end_ns = programs::NowNs() + std::atol(argv[1]) * 1'000'000;
  long turns = 0;
  for (; programs::NowNs() < end_ns; ++turns) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
  }
  close(there[1]);
  wait(nullptr);
  programs::Tell(R"({"turns":%ld})", turns);
  return 7;
}
