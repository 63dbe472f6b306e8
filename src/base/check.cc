// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace culprit {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "culprit: internal error: %s is false at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace culprit
