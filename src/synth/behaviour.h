// SPDX-License-Identifier: Apache-2.0
//
// The behaviours that synth plants: bugs to be found and noise to be seen
// through. An op of the simulation that belongs to one carries its Plant; the
// row of Behaviours() says how it can be recognised from outside. `pattern` is
// a subsequence of the stack of every planted event of `event_kind`, and of no
// other event of that kind. Static data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trace/event.h"

namespace culprit::synth {

enum Plant : uint8_t {
  kOrdinary = 0,
  kFileTableLock,
  kShortPathName,
  kGlyphHotLoop,
  kGraphicsHardFault,
  kAcceptRetryLoop,
  kDiskProtection,
  kDirectDiskRead,
  kUserInput,
  kHousekeeping,
  kPlantCount
};

// How a delay travels: the signatures of the waits, of what ended them, and of
// the code that ran meanwhile ("DiskService" for a disk).
struct Chain {
  std::vector<std::string_view> wait;
  std::vector<std::string_view> unwait;
  std::vector<std::string_view> running;
};

struct Behaviour {
  Plant plant = kOrdinary;
  std::string_view name;
  std::string_view kind;
  trace::EventKind event_kind = trace::EventKind::kWait;
  std::vector<std::string_view> pattern;  // caller first
  std::string_view scenario;              // empty: strikes outside instances
  bool noise = false;
  bool by_design = false;
  std::optional<Chain> chain = {};
};

// One row a plant but kOrdinary, in the order of Plant.
const std::vector<Behaviour>& Behaviours();
const Behaviour& BehaviourOf(Plant plant);
std::optional<Plant> FindPlant(std::string_view name);

// Which plants may strike.
using PlantSet = std::array<bool, kPlantCount>;
PlantSet AllPlants();
PlantSet NoPlants();

}  // namespace culprit::synth
