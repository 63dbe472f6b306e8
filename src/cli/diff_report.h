// SPDX-License-Identifier: Apache-2.0
//
// What `culprit diff` prints, and what it holds against the bound of a CI gate. A
// violation is a chain that significantly appeared or grew by more than the bound,
// or a scenario whose mean duration significantly did; the bound is a share of
// the scenario's mean duration before. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "causality/diff.h"
#include "cli/causality_input.h"

namespace culprit::cli {

struct DiffViolation {
  std::string scenario;
  std::string what;       // "appeared", "grew"; "slower" for the scenario itself
  int64_t delta_ns = 0;   // per instance
  int64_t before_ns = 0;  // mean duration of the scenario before
  std::string chain;      // empty for the scenario itself
  std::string example;    // the command that shows it; may be empty
};

struct DiffFacts {
  CausalityInput before;
  CausalityInput after;
  causality::DiffResult result;
  double significant = 0.05;
  std::optional<double> bound;  // a share; none: nothing is held against one
  std::vector<DiffViolation> violations;

  bool all_read() const {
    return before.evidence.unreadable.empty() && after.evidence.unreadable.empty();
  }
};

// Of facts with a bound; most lost per instance first.
std::vector<DiffViolation> FindDiffViolations(const DiffFacts& facts);

std::string DiffText(const DiffFacts& facts, const CausalityTextOptions& options);
std::string DiffJson(const DiffFacts& facts);

}  // namespace culprit::cli
