// SPDX-License-Identifier: Apache-2.0
//
// What the interrupt of a sampling clock takes from a thread that runs: four microseconds on a
// virtual machine, which asks its host for every next interrupt, less where there is no host. The
// governor counts it for each sample. Measured in 20 ms of the calling thread's time: it looks at
// the clock all the time, without and with such interrupts, and adds up the gaps. What else
// disturbs it is in both; of several tries the least disturbed counts.
#pragma once

#include <cstdint>

namespace culprit::record {

// 0: there is no such clock, or it did not come.
int64_t MeasureInterruptNs();

}  // namespace culprit::record
