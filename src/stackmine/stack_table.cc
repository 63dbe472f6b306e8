// SPDX-License-Identifier: Apache-2.0
#include "stackmine/stack_table.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::stackmine {
namespace {

constexpr FrameSymbol kNoFrame = UINT32_MAX;

}  // namespace

FrameSymbol StackTable::InternFrame(std::string_view name, uint32_t function_at, bool named) {
  const FrameSymbol symbol = names_.Intern(name).value;
  if (symbol == frames_.size()) frames_.push_back({function_at, named});
  return symbol;
}

StackIndex StackTable::InternStack(StackIndex parent, FrameSymbol frame) {
  const auto [index, added] = index_.Insert((uint64_t{parent} << 32) | frame);
  if (added) {
    *index = static_cast<StackIndex>(stacks_.size());
    stacks_.push_back({parent, frame});
  }
  return *index;
}

std::optional<FrameSymbol> StackTable::FindFrame(std::string_view name) const {
  const StringId id = names_.Find(name);
  return id.valid() ? std::optional(id.value) : std::nullopt;
}

std::string_view StackTable::Module(FrameSymbol frame) const {
  const uint32_t function_at = frames_[frame].function_at;
  return function_at == 0 ? std::string_view() : FrameName(frame).substr(0, function_at - 1);
}

void StackTable::Frames(StackIndex stack, std::vector<FrameSymbol>& frames) const {
  frames.clear();
  for (; stack != kNoStack; stack = stacks_[stack].parent) frames.push_back(stacks_[stack].frame);
  std::reverse(frames.begin(), frames.end());
}

DictionaryStacks::DictionaryStacks(const trace::Dictionary& from, StackTable& to)
    : from_(from),
      to_(to),
      frames_(from.frames().size(), kNoFrame),
      stacks_(from.stacks().size(), kNoStack) {}

StackIndex DictionaryStacks::Bring(trace::StackId stack) {
  path_.clear();
  for (; stack.valid() && stacks_[stack.value] == kNoStack;
       stack = from_.stacks()[stack.value].parent) {
    path_.push_back(stack);
  }
  StackIndex brought = stack.valid() ? stacks_[stack.value] : kNoStack;
  for (auto it = path_.rbegin(); it != path_.rend(); ++it) {
    brought = to_.InternStack(brought, BringFrame(from_.stacks()[it->value].frame));
    stacks_[it->value] = brought;
  }
  return brought;
}

FrameSymbol DictionaryStacks::BringFrame(trace::FrameId frame) {
  FrameSymbol& symbol = frames_[frame.value];
  if (symbol != kNoFrame) return symbol;
  const trace::Frame& row = from_.frames()[frame.value];
  const std::string name = from_.FrameName(frame);
  const std::string_view function = from_.Text(row.function);
  const bool named = row.function.valid() && name.ends_with(function);
  const size_t bang = name.find('!');
  const size_t unnamed_at = bang == std::string::npos ? 0 : bang + 1;
  const size_t function_at = named ? name.size() - function.size() : unnamed_at;
  symbol = to_.InternFrame(name, static_cast<uint32_t>(function_at), named);
  return symbol;
}

std::vector<StackIndex> BringAll(const StackTable& from, StackTable& to) {
  std::vector<FrameSymbol> frames(from.frames());
  for (FrameSymbol f = 0; f < frames.size(); ++f) {
    const std::string_view name = from.FrameName(f);
    const auto function_at = static_cast<uint32_t>(name.size() - from.Function(f).size());
    frames[f] = to.InternFrame(name, function_at, from.Named(f));
  }
  std::vector<StackIndex> stacks(from.stacks());
  for (StackIndex s = 0; s < stacks.size(); ++s) {
    const StackIndex parent = from.Parent(s);
    // A parent is interned before its children, so its new index is known.
    CULPRIT_CHECK(parent == kNoStack || parent < s);
    stacks[s] =
        to.InternStack(parent == kNoStack ? kNoStack : stacks[parent], frames[from.Leaf(s)]);
  }
  return stacks;
}

}  // namespace culprit::stackmine
