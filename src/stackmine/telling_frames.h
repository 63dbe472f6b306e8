// SPDX-License-Identifier: Apache-2.0
//
// Telling frames: those of a stack that say why a thread waits or runs, not how
// every thread does: with a name, and outside the kernel's core, the C library
// and what starts threads. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "stackmine/stack_table.h"

namespace culprit::stackmine {

bool IsPlumbing(std::string_view module);
// With a name, outside the modules above, and not where every program begins.
bool IsTelling(const StackTable& stacks, FrameSymbol frame);

// The telling frames of a stack, leaf first, at most `most`; where there are
// none, its leaf. Empty for kNoStack.
std::vector<FrameSymbol> TellingFrames(const StackTable& stacks, StackIndex stack, size_t most);

}  // namespace culprit::stackmine
