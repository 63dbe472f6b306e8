// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// Rules of unwinding by address: what the tables (unwind.h) said the last time. To
// look a rule up touches four places of memory that are far apart; to find it here
// touches one. Entries are of one CPU and one desk (remembered.h), the last one of
// those that fall on the same; an address means the same code for as long as its
// process has the same list of ranges, which the version tells.
#ifndef CULPRIT_RECORD_BPF_REMEMBERED_RULES_H_
#define CULPRIT_RECORD_BPF_REMEMBERED_RULES_H_

#include "maps.h"
#include "remembered.h"
#include "unwind_layout.h"

struct RememberedRule {
  uint64_t address;  // 0: nothing is remembered here
  uint32_t version;
  uint32_t pad;
  struct UnwindRule rule;  // kCfaUnknown: the tables say nothing
};

// By desk, CPU and address. How many is set by the recorder.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct RememberedRule);
} remembered_rules SEC(".maps");

const volatile uint32_t rule_mask = 0;  // entries of a CPU and desk, less one

static __always_inline struct RememberedRule *remembered_rule_at(uint64_t address, uint32_t version,
                                                                 uint32_t desk) {
  const uint64_t hash = mix(version, address);
  const uint32_t key = (desk * remembered_cpus + bpf_get_smp_processor_id()) * (rule_mask + 1) +
                       ((uint32_t)(hash >> 40) & rule_mask);
  return bpf_map_lookup_elem(&remembered_rules, &key);
}

#endif  // CULPRIT_RECORD_BPF_REMEMBERED_RULES_H_
