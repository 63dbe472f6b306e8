// SPDX-License-Identifier: Apache-2.0
#include "stackmine/telling_frames.h"

#include <algorithm>
#include <array>

namespace culprit::stackmine {

bool IsPlumbing(std::string_view module) {
  constexpr std::array<std::string_view, 8> kWhole = {
      "kernel", "[kernel]",  "[kernel.kallsyms]", "ntoskrnl.exe",
      "ntdll",  "ntdll.dll", "kernel32",          "kernelbase"};
  constexpr std::array<std::string_view, 5> kBegin = {"libc.so", "libc-", "libpthread", "ld-linux",
                                                      "kernel32."};
  return std::find(kWhole.begin(), kWhole.end(), module) != kWhole.end() ||
         std::any_of(kBegin.begin(), kBegin.end(),
                     [&](std::string_view begin) { return module.starts_with(begin); });
}

bool IsTelling(const StackTable& stacks, FrameSymbol frame) {
  const std::string_view function = stacks.Function(frame);
  return stacks.Named(frame) && !IsPlumbing(stacks.Module(frame)) && function != "_start" &&
         function != "main";
}

std::vector<FrameSymbol> TellingFrames(const StackTable& stacks, StackIndex stack, size_t most) {
  std::vector<FrameSymbol> frames;
  for (StackIndex s = stack; s != kNoStack && frames.size() < most; s = stacks.Parent(s)) {
    const FrameSymbol frame = stacks.Leaf(s);
    if (IsTelling(stacks, frame)) frames.push_back(frame);
  }
  if (frames.empty() && stack != kNoStack) frames.push_back(stacks.Leaf(stack));
  return frames;
}

}  // namespace culprit::stackmine
