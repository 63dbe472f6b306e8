// SPDX-License-Identifier: Apache-2.0
//
// MergeProfiles: one profile of several training runs. Modules that both know by
// file name must have the same build-id, and the program must be the same;
// otherwise it is refused. Shapes are united and types and guards made again from
// them, as if one run had seen both loads; the statistics of an old type go to
// the new type that holds most of its units. Thresholds are those of the added
// statistics.
#pragma once

#include "base/result.h"
#include "guard/learn.h"
#include "guard/profile.h"
#include "guard/thresholds.h"

namespace culprit::guard {

Result<Profile> MergeProfiles(const Profile& a, const Profile& b, const LearnOptions& options,
                              const ThresholdOptions& thresholds);

}  // namespace culprit::guard
