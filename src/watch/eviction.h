// SPDX-License-Identifier: Apache-2.0
//
// What leaves a corpus that has outgrown its bound: the oldest trace of the type
// that has most of them, again and again. So a type seen once keeps its trace
// longest, and of a frequent one the newest stay. A function of the rows alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpus/catalog.h"

namespace culprit::watch {

// Names of the traces to remove so that the rest is within `max_bytes`. The
// newest trace of all always stays.
std::vector<std::string> ToEvict(const std::vector<corpus::TraceRow>& rows, uint64_t max_bytes);

// Removes them; returns how many.
Result<uint64_t> Evict(const std::string& corpus, uint64_t max_bytes);

}  // namespace culprit::watch
