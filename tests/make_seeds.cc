// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of a fuzz target: make_seeds TARGET FOLDER.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"

int main(int argc, char** argv) {
  using culprit::trace::EncodeTrace;
  using culprit::trace::RandomTrace;
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_seeds TARGET FOLDER\n");
    return 2;
  }
  const std::string target = argv[1];
  const std::string folder = argv[2];
  if (target != "trace_reader_fuzz") {
    std::fprintf(stderr, "make_seeds: no seeds for %s\n", target.c_str());
    return 1;
  }
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto trace = RandomTrace({.seed = seed,
                                    .events = seed * seed * 10,
                                    .threads = 1 + seed % 4,
                                    .functions = 3 + seed,
                                    .wild = seed % 3 == 0});
    std::string bytes = EncodeTrace(trace, {.block_events = 30 + seed * 40});
    if (seed % 4 == 3) bytes.resize(bytes.size() * 2 / 3);
    const std::string path = folder + "/seed" + std::to_string(seed);
    const auto status = culprit::WriteWholeFile(path, bytes, culprit::Overwrite::kAllow);
    if (!status.ok()) {
      std::fprintf(stderr, "make_seeds: %s\n", status.error().ToString().c_str());
      return 1;
    }
  }
  return 0;
}
