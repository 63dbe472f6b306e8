// SPDX-License-Identifier: Apache-2.0
//
// What an instance of a scenario does: ordinary work, and the planted
// behaviours that may strike in it. A strike arranges a coincidence (cues
// other threads, pauses the disk) and takes part in it; how long it then takes
// is up to the simulation.
#pragma once

#include <cstddef>

#include "synth/composer.h"
#include "synth/computer.h"

namespace culprit::synth {

// The scenario in which `plant` strikes.
size_t ScenarioOf(Plant plant);

// The ops between the begin and the end of an instance.
void WriteInstance(Computer& computer, size_t scenario, Plant plant, Random& random,
                   Composer& script);

}  // namespace culprit::synth
