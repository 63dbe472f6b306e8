// SPDX-License-Identifier: Apache-2.0
//
// Which type a unit is of, by the contexts that its guards saw. The default is
// the nearest type (nearest_type.h); the paper's counting of hits (002 section 4.4) is
// the option hit_counting of the plan: the type whose contexts were hit most.
//
// Any thread. A set that was judged before costs one comparison (the cache is
// the thread's own), a new one 10 ns a type.
#pragma once

#include <cstdint>
#include <span>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/nearest_type.h"
#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

// Without the cache. `hits` by context bit, for hit counting alone.
TypeVerdict InferType(const PlanView& plan, const UnitIdentity& unit,
                      std::span<const uint32_t> hits);

TypeVerdict InferTypeCached(const LoadedPlan& plan, const UnitIdentity& unit, ThreadState& state);

// Of the type, or that of unknown ones; never below the floor.
uint64_t ThresholdNs(const PlanView& plan, const TypeVerdict& verdict);

// The largest threshold among the types that a unit still running can turn out
// to have: those that contain all contexts seen so far. None does: the threshold
// of unknown ones.
uint64_t LargestPossibleThresholdNs(const PlanView& plan, const UnitIdentity& unit);

}  // namespace culprit::guard::runtime
