// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of a fuzz target: make_seeds TARGET FOLDER.
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"

namespace {

using culprit::trace::EncodeTrace;
using culprit::trace::RandomTrace;
using Seeds = std::vector<std::string>;

Seeds TraceSeeds() {
  Seeds seeds;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto trace = RandomTrace({.seed = seed,
                                    .events = seed * seed * 10,
                                    .threads = 1 + seed % 4,
                                    .functions = 3 + seed,
                                    .wild = seed % 3 == 0});
    std::string bytes = EncodeTrace(trace, {.block_events = 30 + seed * 40});
    if (seed % 4 == 3) bytes.resize(bytes.size() * 2 / 3);
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}

// A line or two of each text format; binary formats start from nothing but
// their magic bytes.
Seeds SeedsOf(const std::string& target) {
  if (target == "trace_reader_fuzz") return TraceSeeds();
  if (target == "perf_script_fuzz") {
    return {"app 12/13 [001] 1.000001: 1000 cpu-clock:\n\t  4010 main+0x10 (/bin/app)\n\n",
            "app 12 [001] 1.5: sched:sched_switch: prev_comm=app prev_pid=12 prev_prio=120 "
            "prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n\n"};
  }
  if (target == "folded_fuzz") return {"main;f;g 12\nmain;f 3\n"};
  if (target == "ftrace_text_fuzz") {
    return {
        "# tracer: nop\n app-12 (12) [001] d..2 1.000001: sched_waking: comm=b pid=13 "
        "prio=120 target_cpu=001\n app-12 (12) [001] ... 1.2: tracing_mark_write: B|12|x\n"};
  }
  if (target == "strace_fuzz") {
    return {
        "12 1700000000.000001 read(3, \"x\", 1) = 1 <0.000010>\n"
        "12 1700000000.1 futex(0x1, FUTEX_WAIT, 1 <unfinished ...>\n"};
  }
  if (target == "perf_data_fuzz") return {std::string("PERFILE2") + std::string(120, '\0')};
  if (target == "trace_dat_fuzz")
    return {
        "\x17\x08"
        "Dtracing7"};
  if (target == "pprof_fuzz") return {"--- contention:\ncycles/second = 1000\n10 2 @ 0x10 0x20\n"};
  return {
      std::string("\x7f"
                  "ELF")};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_seeds TARGET FOLDER\n");
    return 2;
  }
  size_t number = 0;
  for (const std::string& seed : SeedsOf(argv[1])) {
    const std::string path = std::string(argv[2]) + "/seed" + std::to_string(number++);
    const auto status = culprit::WriteWholeFile(path, seed, culprit::Overwrite::kAllow);
    if (!status.ok()) {
      std::fprintf(stderr, "make_seeds: %s\n", status.error().ToString().c_str());
      return 1;
    }
  }
  return 0;
}
