// SPDX-License-Identifier: Apache-2.0
//
// What commands that look at a running machine are told alike: whom to look at, what
// it may cost, by which of the kernel's means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "record/recorder.h"

namespace culprit::cli {

Result<int64_t> ParsePid(const std::string& text);

// Of --budget, at most the whole: as a share, and in millionths.
Result<double> ReadBudget(const Arguments& arguments);
Result<uint64_t> ReadBudgetPpm(const Arguments& arguments);

// Of --system, --pid, --comm and --cgroup; may be empty.
Result<record::RecordTarget> ReadTarget(const Arguments& arguments);

// Of --tier; nothing: the best there is.
std::optional<record::Tier> ReadTier(const Arguments& arguments);

}  // namespace culprit::cli
