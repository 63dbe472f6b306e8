// SPDX-License-Identifier: Apache-2.0
#include "record/breather.h"

#include "record/machine.h"

namespace culprit::record {

void Breather::Begin() { begin_ns_ = MonotonicNs(); }

void Breather::Look() {
  if (MonotonicNs() - begin_ns_ < kWorkNs) return;
  if (!is_urgent_()) SleepNs(kSleepNs);
  Begin();
}

}  // namespace culprit::record
