// SPDX-License-Identifier: Apache-2.0
//
// Globs (base/glob.h) over frames. A glob with "!" is held against
// "module!function", one without against the function and against the module
// alone: "PreCommit_Notify", "libssl*", "*.sys!*". A frame without a function is
// "module!+0x12ab".
//
// StackFilter answers for whole stacks, from tables made once per dictionary:
// O(frames × globs + stacks) to make, one lookup per question. Immutable
// afterwards; copies what it needs.
#pragma once

#include <string>
#include <vector>

#include "trace/dictionary.h"

namespace culprit::waitgraph {

// By FrameId: whether any of the globs matches.
std::vector<bool> FramesMatching(const trace::Dictionary& dictionary,
                                 const std::vector<std::string>& globs);
// By StackId: whether any frame of the stack is marked.
std::vector<bool> StacksWithFrame(const trace::Dictionary& dictionary,
                                  const std::vector<bool>& frames);

class StackFilter {
 public:
  // Lets a stack through if any of its frames matches any of `with` (or `with` is
  // empty) and none matches any of `without`. No stack at all passes only an
  // empty `with`.
  StackFilter(const trace::Dictionary& dictionary, const std::vector<std::string>& with,
              const std::vector<std::string>& without);

  bool Passes(trace::StackId stack) const {
    return stack.valid() && stack.value < passes_.size() ? passes_[stack.value] : no_stack_;
  }

 private:
  std::vector<bool> passes_;
  bool no_stack_ = true;
};

}  // namespace culprit::waitgraph
