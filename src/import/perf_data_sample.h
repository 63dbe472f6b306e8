// SPDX-License-Identifier: Apache-2.0
//
// PerfSample: the fields of a sample, or of the sample id that ends the
// kernel's other records. Views point into the record.
#pragma once

#include <cstdint>
#include <string_view>

#include "import/perf_data_attr.h"

namespace culprit::import_ {

struct PerfSample {
  uint64_t ip = 0;
  int64_t pid = -1;
  int64_t tid = -1;
  uint64_t time = 0;
  uint32_t cpu = UINT32_MAX;
  uint64_t period = 0;
  uint64_t cgroup = 0;
  std::string_view leaf;            // the bytes of `ip`: a chain of one
  std::string_view chain;           // addresses of 8 bytes, leaf first
  std::string_view raw;             // a tracepoint's record
  uint64_t user_abi = 0;            // 0: no user registers, 1: of 32 bits, 2: of 64 bits
  std::string_view user_registers;  // 8 bytes for each bit of the attr's mask
  std::string_view user_stack;      // from the stack pointer up
};

// False: the record is shorter than its attr says. Fields before the cut hold.
bool ParsePerfSample(const PerfAttr& attr, std::string_view body, bool big, PerfSample& out);
// The sample id at the end of a record of another type; all unset if there is none.
PerfSample ParsePerfSampleId(const PerfAttr& attr, std::string_view body, bool big);
size_t PerfSampleIdBytes(const PerfAttr& attr);
// The time alone; 0: not recorded.
uint64_t PerfSampleTime(const PerfAttr& attr, std::string_view body, bool big);

}  // namespace culprit::import_
