// SPDX-License-Identifier: Apache-2.0
//
// Parts of a report that are not of the corpus alone: the kinds of work that
// guards know, with the slow units they reported, and what system calls say.
#pragma once

#include <string>
#include <vector>

#include "analyze/part.h"
#include "base/progress.h"
#include "base/result.h"

namespace culprit::cli {

// Part "units", from a profile of guards and, unless empty, a folder of reports.
Result<analyze::Part> UnitsPart(const std::string& profile, const std::string& reports);

// Part "inference": `path`, a trace or a corpus, against a profile of system calls
// and, unless empty, a normal trace. Traces without system calls of the program
// are left out.
Result<analyze::Part> InferencePart(const std::string& path, const std::string& profile,
                                    const std::string& against, size_t jobs);

}  // namespace culprit::cli
