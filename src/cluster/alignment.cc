// SPDX-License-Identifier: Apache-2.0
#include "cluster/alignment.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::cluster {

const std::vector<Step>& Alignment::Align(size_t columns, std::span<const Fixed* const> rows,
                                          bool columns_are_left) {
  CULPRIT_CHECK(columns <= kMaxFrames && rows.size() <= kMaxFrames);
  steps_.clear();
  // Equal ends are matched by any trace from the leaf: no need of costs there.
  while (columns > 0 && !rows.empty() && rows.back()[columns - 1] == 0) {
    steps_.push_back(Step::kMatch);
    --columns;
    rows = rows.first(rows.size() - 1);
  }
  FillCosts(columns, rows);
  TraceBack(columns, rows, columns_are_left);
  return steps_;
}

// The least cost of aligning every pair of prefixes.
void Alignment::FillCosts(size_t columns, std::span<const Fixed* const> rows) {
  const size_t width = columns + 1;
  costs_.resize(width * (rows.size() + 1));
  for (size_t i = 0; i < width; ++i) costs_[i] = static_cast<uint32_t>(i * kOne);
  for (size_t j = 0; j < rows.size(); ++j) {
    const Fixed* substitution = rows[j];
    const uint32_t* above = costs_.data() + j * width;
    uint32_t* row = costs_.data() + (j + 1) * width;
    uint32_t left = above[0] + kOne;
    row[0] = left;
    for (size_t i = 0; i < columns; ++i) {
      const uint32_t cheaper = std::min(above[i] + substitution[i], above[i + 1] + kOne);
      left = std::min(cheaper, left + kOne);
      row[i + 1] = left;
    }
  }
}

void Alignment::TraceBack(size_t columns, std::span<const Fixed* const> rows,
                          bool columns_are_left) {
  const size_t width = columns + 1;
  const Step column_alone = columns_are_left ? Step::kDeletion : Step::kInsertion;
  const Step row_alone = columns_are_left ? Step::kInsertion : Step::kDeletion;
  size_t i = columns;
  size_t j = rows.size();
  while (i > 0 && j > 0) {
    const uint32_t* above = costs_.data() + (j - 1) * width + i - 1;
    const uint32_t cost = above[width + 1];
    const Fixed substitution = rows[j - 1][i - 1];
    const bool column_may = above[width] + kOne == cost;
    const bool row_may = above[1] + kOne == cost;
    // Costs of neighbouring prefixes differ by at most 1, so the first condition
    // holds for every match.
    if (above[0] + substitution == cost) {
      steps_.push_back(substitution == 0 ? Step::kMatch : Step::kSubstitution);
      --i;
      --j;
    } else if (columns_are_left ? column_may : !row_may) {
      steps_.push_back(column_alone);
      --i;
    } else {
      steps_.push_back(row_alone);
      --j;
    }
  }
  steps_.insert(steps_.end(), i, column_alone);
  steps_.insert(steps_.end(), j, row_alone);
}

}  // namespace culprit::cluster
