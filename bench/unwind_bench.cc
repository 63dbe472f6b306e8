// SPDX-License-Identifier: Apache-2.0
// Unwind tables: what they take to make, and what a user stack walked by them costs
// beside the kernel's own walk by frame pointers.
//
//   unwind_bench FILE...
//
// Tables of the files are compiled and packed, by CPU time. Then, as root, two threads
// pass a token at every depth; every switch takes a user stack, by frame pointers and
// by tables in turn. The cost is the run time of the kernel programs, as the kernel
// accounts for it, for one user stack; what else the programs do is in both figures.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#include "record/bpf_engine.h"
#include "record/machine.h"
#include "record/unwind_feed.h"
#include "record/unwind_image.h"
#include "symbol/elf_file.h"

namespace {

using culprit::record::BpfEngine;
using culprit::record::MonotonicNs;
using culprit::record::UnwindFeed;
using culprit::record::UnwindImage;
using culprit::record::UnwindTable;

constexpr int kRounds = 4;
constexpr int64_t kRoundNs = 700'000'000;

double CpuMs() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

void CompileTable(const char* path) {
  const auto file = culprit::symbol::ElfFile::Open(path);
  if (!file.ok()) return;
  double best_ms = 1e9;
  UnwindImage last;
  size_t rules = 0;
  for (int round = 0; round < kRounds; ++round) {
    UnwindImage image;
    const double begin_ms = CpuMs();
    const auto table = UnwindTable::Build(file.value());
    if (!table.ok() || !image.Add(table.value())) return;
    best_ms = std::min(best_ms, CpuMs() - begin_ms);
    rules = image.rules().size();
    last = std::move(image);
  }
  const auto rows = static_cast<double>(last.rows());
  std::printf("%-44s %8.0f rows %5zu rules %6.1f ms %5.2f bytes a row\n", path, rows, rules,
              best_ms, static_cast<double>(last.used_bytes()) / rows);
}

volatile int g_sink = 0;

__attribute__((noinline)) void PassToken(int depth, int from, int to) {
  char byte = 0;
  if (depth > 0) {
    PassToken(depth - 1, from, to);
  } else if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1) {
    _exit(0);
  }
  g_sink = g_sink + 1;
}

pid_t StartTokens(int depth) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  int there[2];
  int back[2];
  if (pipe(there) != 0 || pipe(back) != 0) _exit(1);
  const std::thread other([&] {
    char byte = 0;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
    }
  });
  for (;;) PassToken(depth, back[0], there[1]);
}

struct Round {
  double ns_a_stack = 0;
  double frames = 0;
};

Round Measure(pid_t pid, bool tables) {
  auto started = BpfEngine::Start(
      {.blocks = false, .sample_period_ns = 0, .unwind_tables = tables, .remember_stacks = false});
  if (!started.ok()) return {};
  BpfEngine& engine = *started.value();
  if (!engine.AddTarget(pid).ok()) return {};
  std::unique_ptr<UnwindFeed> feed;
  if (tables) {
    auto opened = UnwindFeed::Start(engine.unwind_maps());
    if (!opened.ok()) return {};
    feed = std::move(opened).value();
    feed->Look({pid});
    feed->Settle(5'000'000'000);
  }
  const uint64_t time_ns = engine.KernelTimeNs();
  const int64_t begin_ns = MonotonicNs();
  engine.Begin(begin_ns);
  while (MonotonicNs() - begin_ns < kRoundNs) {
    poll(nullptr, 0, 10);
    engine.Drain([](std::string_view) {});
  }
  // Every user stack has a kernel stack beside it.
  const culprit::record::Counters counted = engine.ReadCounters().total;
  const auto stacks = static_cast<double>(counted.stacks + counted.recalled + counted.chains) / 2;
  const auto walks = engine.ReadUnwindCounters();
  return {.ns_a_stack = static_cast<double>(engine.KernelTimeNs() - time_ns) / stacks,
          .frames = static_cast<double>(walks.frames) /
                    static_cast<double>(std::max<uint64_t>(walks.walked, 1))};
}

void CompareWalks(int depth) {
  const pid_t pid = StartTokens(depth);
  Round best[2] = {{.ns_a_stack = 1e9}, {.ns_a_stack = 1e9}};
  for (int round = 0; round < kRounds; ++round) {
    for (const bool tables : {false, true}) {
      const Round now = Measure(pid, tables);
      if (now.ns_a_stack > 0 && now.ns_a_stack < best[tables].ns_a_stack) best[tables] = now;
    }
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  std::printf(
      "%.1f frames: %.0f ns of all programs a user stack by frame pointers, %.0f by tables\n",
      best[1].frames, best[0].ns_a_stack, best[1].ns_a_stack);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) CompileTable(argv[i]);
  if (!BpfEngine::Built() || geteuid() != 0) {
    std::printf("walking is measured as root, with the BPF engine\n");
    return 0;
  }
  for (const int depth : {2, 10, 30}) CompareWalks(depth);
  return 0;
}
