// SPDX-License-Identifier: Apache-2.0
//
// PerfAttr: what one event of a perf recording is and which fields its samples
// have; PerfAttrs: all of them, found by the ids that samples carry. Passive
// data after the header is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "import/perf_data_layout.h"

namespace culprit::import_ {

struct PerfAttr {
  uint32_t type = 0;
  uint64_t config = 0;
  uint64_t period_or_freq = 0;
  uint64_t sample_type = 0;
  uint64_t read_format = 0;
  uint64_t branch_sample_type = 0;
  uint64_t user_register_mask = 0;
  uint32_t interrupt_registers = 0;
  uint16_t max_stack = 0;
  int32_t clock_id = 0;
  bool is_freq = false;
  bool has_tasks = false;  // fork and exit records
  bool sample_id_all = false;
  bool use_clock_id = false;
  bool context_switch = false;  // switch records
  std::string name;             // "sched:sched_switch", "cycles"; may be empty

  static constexpr uint32_t kHardware = 0;
  static constexpr uint32_t kSoftware = 1;
  static constexpr uint32_t kTracepoint = 2;

  bool IsClock() const { return type == kSoftware && config <= 1; }
  bool IsCycles() const { return type == kHardware && (config & 0xffffffff) == 0; }
  bool IsContextSwitches() const { return type == kSoftware && config == 3; }
  bool Has(uint64_t field) const { return (sample_type & field) != 0; }
};

// `bytes` as perf_event_attr of any version; fields beyond its end are zero.
PerfAttr ParsePerfAttr(std::string_view bytes, bool big);

class PerfAttrs {
 public:
  void Add(PerfAttr attr, const std::vector<uint64_t>& ids);
  void AddId(uint64_t id, size_t index) {
    const auto [known, is_new] = by_id_.Insert(id);
    if (is_new) *known = index;
  }

  bool empty() const { return attrs_.empty(); }
  std::vector<PerfAttr>& all() { return attrs_; }
  const std::vector<PerfAttr>& all() const { return attrs_; }
  // The attr that a sample, or another record of the kernel, belongs to. There
  // must be at least one.
  size_t OfSample(std::string_view body, bool big) const;
  size_t OfRecord(std::string_view body, bool big) const;

 private:
  size_t ById(uint64_t id) const;

  std::vector<PerfAttr> attrs_;
  FlatMap<uint64_t, size_t> by_id_;
};

}  // namespace culprit::import_
