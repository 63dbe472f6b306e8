// SPDX-License-Identifier: Apache-2.0
// Costly maximal patterns, beside BIDE.
//
//   mine_bench [STACKS SHARE [JOBS]]
//
// Stacks walked down a random call graph of the shape of StackMine's studies:
// average depth 37, thousands of functions, few of them hot, some recursion,
// costs after Zipf. Each run is a process of its own, so that its CPU time and
// peak memory (the input is in it) are its own. BIDE has ten seconds.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.h"
#include "bide.h"
#include "mine/maximal.h"

namespace {

using culprit::mine::Symbol;
using culprit::mine::WeightedSequences;

class CallGraph {
 public:
  CallGraph(size_t functions, std::mt19937_64& random) : callees_(functions) {
    constexpr size_t kLayers = 52;
    const size_t layer_size = functions / kLayers;
    functions = layer_size * kLayers;
    for (size_t f = 0; f < functions; ++f) {
      const size_t layer = f / layer_size;
      if (layer + 1 >= kLayers) continue;
      for (size_t callees = random() % 10 < 6 ? 1 : 2 + Zipf(random, 3); callees > 0; --callees) {
        const size_t to = std::min(kLayers - 1, layer + (random() % 10 < 9 ? 1 : 2));
        const size_t which = random() % 10 < 9 ? random() % layer_size : Zipf(random, layer_size);
        callees_[f].push_back(static_cast<Symbol>(to * layer_size + which));
      }
    }
    roots_ = layer_size;
  }

  void Walk(std::mt19937_64& random, std::vector<Symbol>& stack) const {
    stack.clear();
    Symbol at = static_cast<Symbol>(Zipf(random, roots_));
    for (;;) {
      stack.push_back(at);
      // Some functions recurse, now and then, through the last few callers.
      if (at % 64 == 5 && stack.size() > 4 && random() % 8 == 0) {
        for (size_t i = 0; i < 3; ++i) stack.push_back(stack[stack.size() - 3]);
      }
      // Few functions block, and none of the first callers.
      if (callees_[at].empty() || (stack.size() > 30 && at % 8 == 0)) return;
      const std::vector<Symbol>& callees = callees_[at];
      at = callees[std::min(Zipf(random, callees.size()), Zipf(random, callees.size()))];
    }
  }

 private:
  // 0 .. count-1, the r-th with a share of about 1/r.
  static size_t Zipf(std::mt19937_64& random, size_t count) {
    const double uniform = static_cast<double>(random() >> 11U) * 0x1p-53;
    const double drawn = std::pow(static_cast<double>(count) + 1, uniform) - 1;
    return std::min(static_cast<size_t>(drawn), count - 1);
  }

  std::vector<std::vector<Symbol>> callees_;
  size_t roots_ = 1;
};

WeightedSequences MakeStacks(size_t stacks) {
  std::mt19937_64 random(37);
  const size_t functions = stacks <= 50'000 ? 3'600 : 8'800;
  const CallGraph graph(functions, random);
  WeightedSequences made;
  made.symbols.reserve(stacks * 38);
  made.ends.reserve(stacks);
  made.costs.reserve(stacks);
  std::vector<Symbol> stack;
  for (size_t i = 0; i < stacks; ++i) {
    graph.Walk(random, stack);
    const uint64_t rank = 1 + random() % 10'000;
    made.Add(stack, static_cast<int64_t>(10'000'000 / rank));
  }
  return made;
}

struct Measured {
  double cpu_seconds = 0;
  double wall_seconds = 0;
  double peak_mb = 0;
  size_t patterns = 0;
  bool complete = false;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

Measured Measure(const std::function<void(Measured&)>& run) {
  int pipe_ends[2];
  CULPRIT_CHECK(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  CULPRIT_CHECK(child >= 0);
  if (child == 0) {
    Measured measured;
    const auto begin = std::chrono::steady_clock::now();
    run(measured);
    measured.wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    CULPRIT_CHECK(write(pipe_ends[1], &measured, sizeof(measured)) == sizeof(measured));
    _exit(0);
  }
  close(pipe_ends[1]);
  Measured measured;
  const bool got = read(pipe_ends[0], &measured, sizeof(measured)) == sizeof(measured);
  close(pipe_ends[0]);
  int status = 0;
  rusage usage = {};
  CULPRIT_CHECK(wait4(child, &status, 0, &usage) == child);
  if (!got) measured = {};
  measured.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  measured.peak_mb = static_cast<double>(usage.ru_maxrss) / 1e3;
  return measured;
}

void Print(const char* who, const Measured& measured, double ours_seconds) {
  std::printf("  %-14s %8.3f s CPU %8.3f s wall %7.0f MB  ", who, measured.cpu_seconds,
              measured.wall_seconds, measured.peak_mb);
  if (measured.complete) {
    std::printf("%zu patterns", measured.patterns);
  } else {
    std::printf("not finished, %zu patterns so far", measured.patterns);
  }
  if (ours_seconds > 0) {
    std::printf(", %s%.0fx", measured.complete ? "" : "> ", measured.cpu_seconds / ours_seconds);
  }
  std::printf("\n");
  std::fflush(stdout);
}

Measured Ours(const WeightedSequences& stacks, int64_t lambda, size_t jobs) {
  return Measure([&](Measured& measured) {
    const auto result = culprit::mine::MineMaximal(stacks, {.lambda = lambda, .jobs = jobs});
    measured.patterns = result.patterns.size();
    measured.complete = !result.truncated;
  });
}

void Run(size_t count, double share, bool peer, size_t jobs) {
  const WeightedSequences stacks = MakeStacks(count);
  const int64_t total = std::accumulate(stacks.costs.begin(), stacks.costs.end(), int64_t{0});
  const auto lambda = static_cast<int64_t>(std::ceil(share * static_cast<double>(total)));
  std::printf("%zu stacks, average depth %.1f, lambda %.2f %%\n", count,
              static_cast<double>(stacks.symbols.size()) / static_cast<double>(count), share * 100);
  const Measured ours = Ours(stacks, lambda, 1);
  Print("culprit", ours, 0);
  if (jobs > 1) Print("culprit, cores", Ours(stacks, lambda, jobs), 0);
  if (!peer) return;
  const Measured theirs = Measure([&](Measured& measured) {
    culprit::bench::Bide bide(stacks, lambda, 10);
    measured.complete = bide.Mine();
    measured.patterns = bide.patterns().size();
  });
  Print("BIDE", theirs, ours.cpu_seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3) {
    Run(std::strtoull(argv[1], nullptr, 10), std::strtod(argv[2], nullptr), false,
        argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
    return 0;
  }
  Run(5'000, 0.30, true, 1);
  Run(5'000, 0.10, true, 1);
  Run(5'000, 0.01, true, 1);
  Run(41'000, 0.01, true, 2);
  Run(200'000, 0.01, false, 2);
  Run(689'000, 0.01, false, 2);
  Run(689'000, 0.005, true, 2);
  return 0;
}
