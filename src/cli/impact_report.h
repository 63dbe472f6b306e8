// SPDX-License-Identifier: Apache-2.0
//
// What `culprit impact` prints: tables for people, JSON for programs. Pure
// functions of what was measured.
#pragma once

#include <string>

#include "causality/impact.h"
#include "cli/causality_input.h"

namespace culprit::cli {

std::string ImpactText(const CausalityInput& input, const causality::ImpactResult& result,
                       const CausalityTextOptions& options);
std::string ImpactJson(const CausalityInput& input, const causality::ImpactResult& result);

}  // namespace culprit::cli
