// SPDX-License-Identifier: Apache-2.0
//
// Where the kernel keeps what each CPU has of its own. Such variables lie in one section, which
// the kernel's types (BTF) describe, and which every CPU has a copy of: so who knows where one of
// them is knows the others. Not every kernel gives programs their addresses (that needs
// CONFIG_KALLSYMS_ALL). A pure function of the types.
#pragma once

#include <cstdint>
#include <optional>

struct btf;

namespace culprit::record {

// How far x86-64's count of what keeps a CPU from being given away (in what interrupt it is, above
// all) lies from that CPU's run queue: a variable of its own, from Linux 6.2 to 6.14 a member of
// pcpu_hot. Nothing: the types do not tell.
std::optional<int64_t> PreemptCountFromQueue(const btf* types);

}  // namespace culprit::record
