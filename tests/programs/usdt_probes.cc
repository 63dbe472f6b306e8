// SPDX-License-Identifier: Apache-2.0
// Marks its own work by USDT probes: five operations of 20 ms, one of them with
// another inside, and a thread that never marks anything. The notes are written by
// hand as sys/sdt.h writes them, the second pair with a semaphore: it is only
// reached while somebody counts on it. Tells when each began and ended.
#include <thread>

#include "truth.h"

// clang-format off
#define PROBE_NOTE(name, semaphore)                                       \
  asm volatile(                                                           \
      "990: nop\n"                                                        \
      ".pushsection .note.stapsdt, \"\", \"note\"\n"                      \
      ".balign 4\n"                                                       \
      ".4byte 992f-991f, 994f-993f, 3\n"                                  \
      "991: .asciz \"stapsdt\"\n"                                         \
      "992: .balign 4\n"                                                  \
      "993: .8byte 990b\n"                                                \
      ".8byte 0\n"                                                        \
      ".8byte " semaphore "\n"                                            \
      ".asciz \"planted\"\n"                                              \
      ".asciz \"" name "\"\n"                                             \
      ".asciz \"\"\n"                                                     \
      "994: .balign 4\n"                                                  \
      ".popsection\n")
// clang-format on

extern "C" {
__attribute__((section(".probes"), used)) volatile unsigned short planted_semaphore = 0;
}

namespace {

constexpr int kOperations = 5;
constexpr int64_t kOperationMs = 20;

PLANTED void OperationBegins() { PROBE_NOTE("work__start", "0"); }
PLANTED void OperationEnds() { PROBE_NOTE("work__done", "0"); }
PLANTED void CountedBegins() { PROBE_NOTE("counted__start", "planted_semaphore"); }
PLANTED void CountedEnds() { PROBE_NOTE("counted__done", "planted_semaphore"); }

void Work(bool nested) {
  const int64_t from_ns = programs::NowNs();
  OperationBegins();
  if (nested) OperationBegins();
  programs::SleepMs(kOperationMs);
  if (nested) OperationEnds();
  OperationEnds();
  programs::Tell(R"({"work":%ld,"from_ns":%ld,"until_ns":%ld})", static_cast<long>(programs::Tid()),
                 static_cast<long>(from_ns), static_cast<long>(programs::NowNs()));
}

}  // namespace

int main() {
  std::thread other([] { programs::SleepMs(kOperations * kOperationMs); });
  for (int i = 0; i < kOperations; ++i) Work(i == 2);
  if (planted_semaphore > 0) CountedBegins();
  programs::SleepMs(kOperationMs);
  if (planted_semaphore > 0) CountedEnds();
  other.join();
  return 0;
}
