// SPDX-License-Identifier: Apache-2.0
//
// What `culprit import` says at its end: a row a trace, what was skipped and
// why, and the same as JSON. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/import_run.h"

namespace culprit::cli {

struct ImportedTrace {
  std::string input;       // as messages call it
  std::string name;        // in the corpus
  bool was_there = false;  // the same content already was
  import_::ImportOutcome outcome;
};

// What would name the frames that have no name; empty where few have none.
std::string UnnamedText(const std::vector<ImportedTrace>& traces, const std::string& corpus);

std::string ImportedText(const std::vector<ImportedTrace>& traces, size_t width, bool color);
std::string ImportedJson(const std::vector<ImportedTrace>& traces,
                         const std::vector<std::string>& failures, uint64_t not_recognised);

}  // namespace culprit::cli
