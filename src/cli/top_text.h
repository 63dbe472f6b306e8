// SPDX-License-Identifier: Apache-2.0
//
// One refresh of `culprit top`, as text or as a line of JSON. Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "cli/top_rows.h"
#include "record/live_view.h"

namespace culprit::cli {

struct TopPage {
  const TopTable& table;
  const TopOptions& options;
  const record::LiveCost& cost;
  std::string target = {};  // "pid 12"
  record::Tier tier = record::Tier::kBpf;
  size_t rows = 20;  // the rest is one more
  bool keys = false;
  bool paused = false;
};

std::string TopText(const TopPage& page, size_t width, bool color);
// Ended by a newline.
std::string TopJson(const TopPage& page);

}  // namespace culprit::cli
