// SPDX-License-Identifier: Apache-2.0
//
// CULPRIT_CHECK: the first of the three kinds of error. A failed check is a
// bug in culprit itself; the process prints where and aborts. Bad input never
// ends here: an impossible operation returns a Result (result.h), a bad record
// in a good trace is counted in Diagnostics (diagnostics.h).
#pragma once

namespace culprit {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace culprit

#define CULPRIT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::culprit::CheckFailed(#condition, __FILE__, __LINE__))
