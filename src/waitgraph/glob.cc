// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/glob.h"

#include <algorithm>

#include "base/glob.h"

namespace culprit::waitgraph {

std::vector<bool> FramesMatching(const trace::Dictionary& dictionary,
                                 const std::vector<std::string>& globs) {
  std::vector<bool> matching(dictionary.frames().size(), false);
  if (globs.empty()) return matching;
  for (size_t i = 0; i < matching.size(); ++i) {
    const trace::Frame& frame = dictionary.frames()[i];
    const std::string name = dictionary.FrameName(trace::FrameId(i));
    const std::string_view function = dictionary.Text(frame.function);
    const std::string_view module =
        frame.module.valid() ? dictionary.Text(dictionary.modules()[frame.module.value].name) : "";
    matching[i] = std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
      if (glob.find('!') != std::string::npos) return MatchesGlob(glob, name);
      return (frame.function.valid() && MatchesGlob(glob, function)) || MatchesGlob(glob, module);
    });
  }
  return matching;
}

std::vector<bool> StacksWithFrame(const trace::Dictionary& dictionary,
                                  const std::vector<bool>& frames) {
  std::vector<bool> marked(dictionary.stacks().size(), false);
  // A caller's stack has a smaller id than its callees'.
  for (size_t i = 0; i < marked.size(); ++i) {
    const trace::StackNode& node = dictionary.stacks()[i];
    marked[i] = (node.frame.value < frames.size() && frames[node.frame.value]) ||
                (node.parent.value < i && marked[node.parent.value]);
  }
  return marked;
}

StackFilter::StackFilter(const trace::Dictionary& dictionary, const std::vector<std::string>& with,
                         const std::vector<std::string>& without)
    : passes_(dictionary.stacks().size(), true), no_stack_(with.empty()) {
  if (!with.empty()) passes_ = StacksWithFrame(dictionary, FramesMatching(dictionary, with));
  if (without.empty()) return;
  const std::vector<bool> out = StacksWithFrame(dictionary, FramesMatching(dictionary, without));
  for (size_t i = 0; i < out.size(); ++i) passes_[i] = passes_[i] && !out[i];
}

}  // namespace culprit::waitgraph
