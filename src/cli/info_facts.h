// SPDX-License-Identifier: Apache-2.0
//
// What `culprit info` tells, gathered from a trace or a corpus and not yet
// made into text or JSON. Gathering decodes every event once, traces in
// parallel; partial results are added in the order of the catalog, so the
// outcome does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "cli/truth_file.h"
#include "corpus/corpus.h"
#include "trace/breakdown.h"

namespace culprit::cli {

struct InfoFacts {
  bool is_corpus = false;
  std::string path;
  uint64_t traces = 0;
  uint64_t incomplete = 0;  // traces that were cut off or damaged
  uint64_t bytes = 0;
  uint64_t events = 0;
  int64_t dur_ns = 0;  // summed over traces
  uint64_t threads = 0;
  uint32_t min_cpus = 0;
  uint32_t max_cpus = 0;
  // Distinct values over the traces: "machine", "os", "app", ...
  std::map<std::string, std::vector<std::string>> origins;
  std::map<std::string, std::string> properties;  // of a single trace
  std::vector<corpus::ScenarioRow> scenarios;
  bool threads_as_instances = false;  // there were no instances
  trace::Breakdown breakdown;
  std::vector<std::string> unreadable;  // traces that could not be opened, with the reason
  std::vector<PlantedBug> truth;
};

Result<InfoFacts> GatherTraceInfo(const std::string& path);
Result<InfoFacts> GatherCorpusInfo(const std::string& folder, size_t jobs, Progress& progress);

std::string InfoText(const InfoFacts& facts, size_t top, size_t width, bool color);
std::string InfoJson(const InfoFacts& facts, size_t top);

}  // namespace culprit::cli
