// SPDX-License-Identifier: Apache-2.0
#ifdef CULPRIT_HAS_BPF_ENGINE
#include "record/cpu_variables.h"

#include <bpf/btf.h>

#include <string_view>

namespace culprit::record {
namespace {

constexpr const char* kSections[] = {".data..percpu", ".data.percpu"};

const btf_type* SectionOfCpus(const btf* types) {
  for (const char* name : kSections) {
    const int id = btf__find_by_name_kind(types, name, BTF_KIND_DATASEC);
    if (id > 0) return btf__type_by_id(types, static_cast<uint32_t>(id));
  }
  return nullptr;
}

struct Variable {
  int64_t offset;
  uint32_t type;
};

std::optional<Variable> Find(const btf* types, const btf_type* section, std::string_view name) {
  const btf_var_secinfo* row = btf_var_secinfos(section);
  for (uint32_t i = 0; i < btf_vlen(section); ++i, ++row) {
    const btf_type* variable = btf__type_by_id(types, row->type);
    if (variable == nullptr || name != btf__name_by_offset(types, variable->name_off)) continue;
    return Variable{row->offset, variable->type};
  }
  return {};
}

// Of a structure, or of one that it has without a name; in bytes.
std::optional<int64_t> OffsetOfMember(const btf* types, uint32_t id, std::string_view name) {
  const btf_type* type = btf__type_by_id(types, id);
  if (type == nullptr || !btf_is_composite(type)) return {};
  const btf_member* member = btf_members(type);
  for (uint32_t i = 0; i < btf_vlen(type); ++i, ++member) {
    const std::string_view its = btf__name_by_offset(types, member->name_off);
    const int64_t offset = btf_member_bit_offset(type, i) / 8;
    if (its == name) return offset;
    if (!its.empty()) continue;
    if (const auto within = OffsetOfMember(types, member->type, name)) return offset + *within;
  }
  return {};
}

}  // namespace

std::optional<int64_t> PreemptCountFromQueue(const btf* types) {
  const btf_type* section = SectionOfCpus(types);
  if (section == nullptr) return {};
  const auto queue = Find(types, section, "runqueues");
  if (!queue) return {};
  if (const auto count = Find(types, section, "__preempt_count")) {
    return count->offset - queue->offset;
  }
  const auto hot = Find(types, section, "pcpu_hot");
  if (!hot) return {};
  const auto member = OffsetOfMember(types, hot->type, "preempt_count");
  if (!member) return {};
  return hot->offset + *member - queue->offset;
}

}  // namespace culprit::record
#endif
