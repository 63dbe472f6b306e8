// SPDX-License-Identifier: Apache-2.0
// Inference from system calls, beside a straightforward implementation.
//
//   episode_bench [MILLIONS [JOBS]]
//
// A made server trace of the size of the paper's largest (5.3 million calls by
// default): ten threads that handle requests of a dozen kinds, and one of them
// caught in a loop of poll and read for the last third. Measured are reading,
// both methods, and of the abnormal units' episodes and the units' nearest
// neighbours alone the plain way to do it: one state machine a candidate over
// every sequence, all pairs of units. The plain way is run on a part, said
// beside it, and its answers are held against ours. CPU seconds of the process.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "episode/inference.h"
#include "episode/naive_episodes.h"
#include "episode/nearest_neighbours.h"
#include "trace/small_trace.h"

namespace {

using namespace culprit::episode;
using culprit::trace::EventKind;
using culprit::trace::SmallTrace;
using culprit::trace::TraceReader;

double CpuSeconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long PeakMegabytes() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// arm64: read, write, openat, close, fstat, futex, ppoll, epoll_pwait, recvfrom,
// sendto, lseek, mmap, munmap, fcntl.
constexpr int kNumbers[] = {63, 64, 56, 57, 80, 98, 73, 22, 207, 206, 62, 222, 215, 25};

// Calls of one kind of request, the same each time but for a few.
std::vector<int> RequestOf(size_t kind, std::mt19937_64& random) {
  std::vector<int> calls;
  std::mt19937_64 fixed(kind);
  const size_t length = 8 + fixed() % 24;
  for (size_t i = 0; i < length; ++i) {
    const int number = kNumbers[fixed() % std::size(kNumbers)];
    const size_t repeats = random() % 20 == 0 ? 2 : 1;
    for (size_t r = 0; r < repeats; ++r) calls.push_back(number);
  }
  return calls;
}

std::string MakeTrace(size_t calls, bool buggy, bool stacks) {
  constexpr size_t kThreads = 10;
  SmallTrace made(0, int64_t{1} << 50);
  made.trace.metadata.arch = "aarch64";
  made.trace.metadata.has_switches = false;
  std::vector<culprit::trace::StackId> functions;
  for (int i = 0; i < 40; ++i) {
    functions.push_back(made.Stack("server!main;server!handle;server!f" + std::to_string(i)));
  }
  std::mt19937_64 random(1);
  std::vector<int64_t> clock(kThreads, 1000);
  std::vector<culprit::trace::ThreadId> threads;
  for (size_t i = 0; i < kThreads; ++i) threads.push_back(made.Thread("w" + std::to_string(i)));
  made.trace.events.reserve(calls + 64);
  const auto call = [&](size_t thread, int number, size_t function) {
    const auto dur_ns =
        static_cast<int64_t>(500 + random() % 4000 + (random() % 500 == 0) * 300'000);
    made.trace.events.push_back({.time_ns = clock[thread],
                                 .dur_ns = dur_ns,
                                 .thread = threads[thread],
                                 .stack = stacks ? functions[function] : culprit::trace::StackId(),
                                 .cpu = 0,
                                 .kind = EventKind::kSyscall,
                                 .arg0 = number});
    clock[thread] += dur_ns + 200 + static_cast<int64_t>(random() % 3000);
  };
  const size_t healthy = buggy ? calls - calls / 3 : calls;
  while (made.trace.events.size() < healthy) {
    const size_t thread = random() % kThreads;
    const size_t kind = std::min(random() % 12, random() % 12);
    for (const int number : RequestOf(kind, random)) {
      call(thread, number, kind * 3 + static_cast<size_t>(number) % 3);
    }
    clock[thread] += 2'000'000;
  }
  while (made.trace.events.size() < calls) {
    call(0, 73, 38);
    call(0, 63, 38);
  }
  culprit::trace::SortByTime(made.trace.events);
  return EncodeTrace(made.trace);
}

struct Timer {
  double begin = CpuSeconds();
  double Taken() const { return CpuSeconds() - begin; }
};

void Show(const char* what, double seconds, const std::string& note = {}) {
  std::printf("  %-44s %8.2f s CPU  %s\n", what, seconds, note.c_str());
}

// One state machine a candidate, level by level as the paper has it.
void EpisodesBesideThePlainWay(const SyscallLog& log, const Units& units,
                               const Anomalies& anomalies) {
  std::vector<WeightedSequence> sequences;
  size_t calls = 0;
  for (size_t i = 0; i < units.units.size() && calls < 20'000; ++i) {
    if (anomalies.flags[i] == 0) continue;
    sequences.push_back({SymbolsOf(log, units.units[i])});
    if (sequences.back().symbols.size() > 20'000) sequences.back().symbols.resize(20'000);
    calls += sequences.back().symbols.size();
  }
  Symbol alphabet = 0;
  for (const WeightedSequence& sequence : sequences) {
    for (const Symbol symbol : sequence.symbols) {
      alphabet = std::max(alphabet, static_cast<Symbol>(symbol + 1));
    }
  }
  const Timer ours;
  const ClosedEpisodes mined = MineClosedEpisodes(sequences, {.support = 10});
  Show("closed episodes, by windows", ours.Taken(),
       std::to_string(calls) + " calls, " + std::to_string(mined.episodes.size()) + " episodes");
  const Timer plain;
  const auto naive = NaiveClosedEpisodes(sequences, alphabet, 10, kMaxEpisode);
  Show("closed episodes, one state machine each", plain.Taken(), "the same calls");
  CULPRIT_CHECK(naive.size() == mined.episodes.size());
}

void NeighboursBesideThePlainWay() {
  std::mt19937_64 random(3);
  PointTable points = {.dimensions = 10, .coordinates = {}};
  constexpr size_t kPoints = 20'000;
  // Like mean durations: most are nothing, some are long.
  for (size_t i = 0; i < kPoints * points.dimensions; ++i) {
    const uint64_t value = random() % 5 == 0 ? std::min(random() % 4000, random() % 4000) : 0;
    points.coordinates.push_back(static_cast<uint32_t>(value));
  }
  const Timer ours;
  const std::vector<uint64_t> nearest = NearestNeighbours(points, 1);
  Show("nearest neighbours, by a tree", ours.Taken(), "20,000 points, 10 dimensions");
  const Timer plain;
  for (size_t i = 0; i < kPoints; i += 10) {
    uint64_t best = UINT64_MAX;
    for (size_t j = 0; j < kPoints; ++j) {
      uint64_t sum = 0;
      for (size_t d = 0; d < points.dimensions; ++d) {
        const int64_t difference = int64_t{points.coordinates[i * points.dimensions + d]} -
                                   points.coordinates[j * points.dimensions + d];
        sum += static_cast<uint64_t>(difference * difference);
      }
      if (i != j) best = std::min(best, sum);
    }
    CULPRIT_CHECK(best == nearest[i]);
  }
  Show("nearest neighbours, all pairs", plain.Taken() * 10, "a tenth of the points, times ten");
}

}  // namespace

int main(int argc, char** argv) {
  const double millions = argc > 1 ? std::atof(argv[1]) : 5.3;
  const size_t jobs = argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 0;
  const auto calls = static_cast<size_t>(millions * 1e6);
  const auto open = [](std::string bytes) {
    return std::move(TraceReader::FromBytes(std::move(bytes), "made")).value();
  };
  Profile profile;
  {
    const TraceReader staging = open(MakeTrace(200'000, false, true));
    const Timer timer;
    ProfileBuilder builder({.jobs = jobs});
    builder.Add(staging);
    profile = builder.Finish();
    Show("profile of 200,000 calls with stacks", timer.Taken(),
         std::to_string(profile.functions.size()) + " functions");
  }
  const TraceReader normal_reader = open(MakeTrace(calls / 4, false, false));
  const TraceReader reader = open(MakeTrace(calls, true, false));
  std::printf("%zu system calls; peak so far, with making them: %ld MB\n", calls, PeakMegabytes());
  const Timer reading;
  const SyscallLog log = ReadSyscallLog(reader, {.jobs = jobs}, profile.symbols);
  const SyscallLog normal = ReadSyscallLog(normal_reader, {.jobs = jobs}, profile.symbols);
  Show("reading both traces", reading.Taken());
  for (const Method method : {Method::kExcess, Method::kPaper}) {
    const Timer timer;
    const Inference inference =
        Infer(profile, log, {&normal, 1}, nullptr, {.method = method, .jobs = jobs});
    Show(method == Method::kExcess ? "infer, by excess" : "infer, by the paper", timer.Taken(),
         std::to_string(inference.units.units.size()) + " units, " +
             std::to_string(inference.anomalies.abnormal) + " abnormal; first: " +
             (inference.functions.empty() ? "nobody" : inference.functions[0].function));
  }
  const Units units = SplitUnits(log);
  const Anomalies anomalies = FindAnomalies(log, units, jobs);
  EpisodesBesideThePlainWay(log, units, anomalies);
  NeighboursBesideThePlainWay();
  std::printf("peak memory: %ld MB\n", PeakMegabytes());
}
