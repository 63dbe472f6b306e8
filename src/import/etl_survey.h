// SPDX-License-Identifier: Apache-2.0
//
// EtlSurvey: what must be known of an ETW recording before its events can be
// told in order. Stacks follow the events they belong to, processes and images
// are often only listed at the end, the ids of images come with a merge. So the
// file is read twice: once for this, once for switches, wakings and samples,
// which are all that is left then.
//
// Memory: the stacks and disk requests (etl_stack_table.h, etl_disk_table.h) and
// kMaxEtlRows each of processes, threads, images and compiled methods; beyond,
// they are counted. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/string_table.h"
#include "import/etl_disk_table.h"
#include "import/etl_event.h"
#include "import/etl_file.h"
#include "import/etl_stack_table.h"

namespace culprit::import_ {

inline constexpr size_t kMaxEtlRows = size_t{1} << 22;

enum class EtlLife : uint8_t {
  kStart,
  kEnd,
  kListed,  // it was there already, or still, when the recorder listed all
};

struct EtlProcessRow {
  uint64_t time = 0;
  EtlLife life = EtlLife::kListed;
  uint32_t pid = 0;
  StringId name;
  StringId command_line;
};

struct EtlThreadRow {
  uint64_t time = 0;
  EtlLife life = EtlLife::kListed;
  uint32_t pid = 0;
  uint32_t tid = 0;
  StringId name;
};

struct EtlImageRow {
  uint64_t time = 0;
  EtlLife life = EtlLife::kListed;
  uint32_t pid = 0;
  uint64_t base = 0;
  uint64_t size = 0;
  StringId path;
};

// A function that a just-in-time compiler made.
struct EtlMethodRow {
  uint32_t pid = 0;
  uint64_t start = 0;
  uint32_t size = 0;
  uint64_t module = 0;
  StringId name;
};

// The times that a buffer's switches, wakings and samples span.
struct EtlSpan {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
};

struct EtlSurvey {
  StringTable strings;
  std::vector<EtlProcessRow> processes;  // these three in order of time
  std::vector<EtlThreadRow> threads;
  std::vector<EtlImageRow> images;
  std::vector<EtlMethodRow> methods;                                 // in order of the file
  std::map<std::pair<uint32_t, uint64_t>, StringId> method_modules;  // by pid and id
  std::map<std::pair<uint32_t, uint64_t>, std::string> debug_ids;    // by pid and base
  EtlStackTable stacks;
  std::vector<EtlDiskRequest> requests;  // in order of their start
  std::vector<EtlSpan> spans;            // by buffer

  uint64_t events = 0;
  uint64_t samples = 0;
  uint64_t cycle_samples = 0;
  uint32_t interval_100ns = 0;   // of samples by the timer; 0: not said
  uint32_t interval_cycles = 0;  // of samples by cycles
  uint32_t cpu_mhz = 0;
  std::string machine;
  std::string product;  // "Windows 8 Pro"
  std::string build;    // "9200.16384.amd64fre.win8_rtm.120725-1247"
};

// Of counter samples only those of cycles tell time.
inline constexpr uint16_t kEtlTimerSource = 0;
inline constexpr uint16_t kEtlCycleSource = 19;

// The events that the second reading takes.
bool IsEtlFact(const EtlEvent& event);
bool IsEtlKernelAddress(uint64_t address, size_t pointer_bytes);

Result<EtlSurvey> SurveyEtl(const Bytes& bytes, const EtlHeader& header,
                            const std::vector<EtlBuffer>& buffers, Diagnostics& diagnostics);

}  // namespace culprit::import_
