// SPDX-License-Identifier: Apache-2.0
//
// CopyUsedNames: of a dictionary what the events and instances of a trace speak of, in the same
// order: for a piece of something that went on for long and met much more. Linear in both.
#pragma once

#include "trace/trace.h"

namespace culprit::trace {

// Ids in the trace are those of `from` before, and those of its own dictionary, which must be
// empty, after.
void CopyUsedNames(const Dictionary& from, Trace& trace);

}  // namespace culprit::trace
