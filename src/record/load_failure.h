// SPDX-License-Identifier: Apache-2.0
//
// LoadFailure: why the kernel did not take the recorder's programs, in words for
// whoever runs it. The same error number means that the user may not load any
// program, or that the kernel's verifier did not accept this one: only what libbpf
// printed tells. The first is the user's to change, the second is a bug here, or
// a kernel that nobody tried. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::record {

struct LoadFacts {
  int code = 0;           // errno, with any sign
  std::string_view said;  // by libbpf
  bool may_load = false;  // this process has the capabilities
  bool has_btf = false;
};

Error ExplainLoadFailure(const LoadFacts& facts);

// From the text of /proc/self/status: CAP_SYS_ADMIN, or CAP_BPF and CAP_PERFMON.
bool MayLoadPrograms(std::string_view status);

}  // namespace culprit::record
