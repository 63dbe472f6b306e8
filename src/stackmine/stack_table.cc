// SPDX-License-Identifier: Apache-2.0
#include "stackmine/stack_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "corpus/call_forest.h"

namespace culprit::stackmine {
namespace {

constexpr FrameSymbol kNoFrame = UINT32_MAX;

}  // namespace

size_t StackTable::FrameSlot(std::string_view name, uint64_t hash) const {
  const size_t mask = frame_slots_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (frame_slots_[slot] == kNoFrame) return slot;
    const FrameRow& row = frames_[frame_slots_[slot]];
    if (row.hash == hash && row.name == name) return slot;
  }
}

void StackTable::IndexFrames(size_t slots) {
  frame_slots_.assign(slots, kNoFrame);
  for (FrameSymbol f = 0; f < frames_.size(); ++f) {
    frame_slots_[FrameSlot(frames_[f].name, frames_[f].hash)] = f;
  }
}

void StackTable::ReserveFrames(size_t frames) {
  frames_.reserve(frames);
  const size_t slots = std::max<size_t>(64, std::bit_ceil((frames + 1) * 2));
  if (slots > frame_slots_.size()) IndexFrames(slots);
}

FrameSymbol StackTable::InternFrame(const FrameRow& row) {
  if ((frames_.size() + 1) * 2 > frame_slots_.size()) {
    IndexFrames(std::max<size_t>(64, frame_slots_.size() * 2));
  }
  FrameSymbol& symbol = frame_slots_[FrameSlot(row.name, row.hash)];
  if (symbol == kNoFrame) {
    CULPRIT_CHECK(frames_.size() < kNoFrame);
    symbol = static_cast<FrameSymbol>(frames_.size());
    frames_.push_back(row);
    frames_.back().name = names_.Store(row.name);
  }
  return symbol;
}

FrameSymbol StackTable::InternFrame(std::string_view name, uint32_t function_at, bool named) {
  return InternFrame(
      {.name = name, .hash = corpus::HashOfName(name), .function_at = function_at, .named = named});
}

// Slots hold only indexes, so that those of all stacks of a trace fit a near cache:
// interning is most of what bringing stacks from one table to another costs.
size_t StackTable::Slot(StackIndex parent, FrameSymbol frame) const {
  const size_t mask = slots_.size() - 1;
  uint64_t hash = ((uint64_t{parent} << 32) | frame) * 0x9e3779b97f4a7c15ULL;
  hash ^= hash >> 32;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == kNoStack) return slot;
    const StackRow& row = stacks_[slots_[slot]];
    if (row.parent == parent && row.frame == frame) return slot;
  }
}

// Brings what was appended into the index, which has room for `slots`.
void StackTable::Index(size_t slots) {
  if (slots > slots_.size()) {
    slots_.assign(slots, kNoStack);
    indexed_ = 0;
  }
  for (; indexed_ < stacks_.size(); ++indexed_) {
    const StackRow& row = stacks_[indexed_];
    slots_[Slot(row.parent, row.frame)] = static_cast<StackIndex>(indexed_);
  }
}

StackIndex StackTable::AppendStack(StackIndex parent, FrameSymbol frame) {
  stacks_.push_back({parent, frame});
  return static_cast<StackIndex>(stacks_.size() - 1);
}

StackIndex StackTable::InternStack(StackIndex parent, FrameSymbol frame) {
  if ((stacks_.size() + 1) * 2 > slots_.size() || indexed_ < stacks_.size()) {
    Index(std::max<size_t>(64, std::bit_ceil((stacks_.size() + 1) * 2)));
  }
  StackIndex& index = slots_[Slot(parent, frame)];
  if (index == kNoStack) {
    index = AppendStack(parent, frame);
    indexed_ = stacks_.size();
  }
  return index;
}

void StackTable::Reserve(size_t stacks) {
  const size_t slots = std::bit_ceil((stacks + 1) * 2);
  if (slots <= slots_.size()) return;
  stacks_.reserve(stacks);
  Index(slots);
}

std::vector<StackIndex> StackTable::MakeCanonical() {
  corpus::CallForest forest;
  for (const FrameRow& row : frames_) {
    forest.names.push_back(row.name);
    forest.hashes.push_back(row.hash);
  }
  forest.parents.resize(stacks_.size());
  forest.symbols.resize(stacks_.size());
  for (StackIndex s = 0; s < stacks_.size(); ++s) {
    forest.parents[s] = stacks_[s].parent;
    forest.symbols[s] = stacks_[s].frame;
  }
  const std::vector<StackIndex> order = corpus::CanonicalOrder(forest);
  std::vector<StackIndex> places(stacks_.size());
  std::vector<FrameSymbol> symbols(frames_.size(), kNoFrame);
  LargeVector<FrameRow> frames;
  frames.reserve(frames_.size());
  const auto take_frame = [&](FrameSymbol frame) {
    if (symbols[frame] != kNoFrame) return;
    symbols[frame] = static_cast<FrameSymbol>(frames.size());
    frames.push_back(frames_[frame]);
  };
  for (StackIndex i = 0; i < order.size(); ++i) {
    places[order[i]] = i;
    take_frame(forest.symbols[order[i]]);
    const StackIndex parent = forest.parents[order[i]];
    stacks_[i] = {parent == kNoStack ? kNoStack : places[parent],
                  symbols[forest.symbols[order[i]]]};
  }
  for (FrameSymbol f = 0; f < frames_.size(); ++f) take_frame(f);
  frames_ = std::move(frames);
  for (FrameSymbol& symbol : frame_slots_) {
    if (symbol != kNoFrame) symbol = symbols[symbol];
  }
  slots_.clear();
  indexed_ = 0;
  return places;
}

std::optional<FrameSymbol> StackTable::FindFrame(std::string_view name) const {
  if (frame_slots_.empty()) return std::nullopt;
  const FrameSymbol symbol = frame_slots_[FrameSlot(name, corpus::HashOfName(name))];
  return symbol == kNoFrame ? std::nullopt : std::optional(symbol);
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
      stacks_(from.stacks().size(), kNoStack),
      all_distinct_(to.stacks() == 0) {
  to.ReserveFrames(to.frames() + from.frames().size());
}

StackIndex DictionaryStacks::Bring(trace::StackId stack) {
  path_.clear();
  for (; stack.valid() && stacks_[stack.value] == kNoStack;
       stack = from_.stacks()[stack.value].parent) {
    path_.push_back(stack);
  }
  StackIndex brought = stack.valid() ? stacks_[stack.value] : kNoStack;
  for (auto it = path_.rbegin(); it != path_.rend(); ++it) {
    const FrameSymbol frame = BringFrame(from_.stacks()[it->value].frame);
    brought = all_distinct_ ? to_.AppendStack(brought, frame) : to_.InternStack(brought, frame);
    stacks_[it->value] = brought;
  }
  return brought;
}

FrameSymbol DictionaryStacks::BringFrame(trace::FrameId frame) {
  FrameSymbol& symbol = frames_[frame.value];
  if (symbol != kNoFrame) return symbol;
  const trace::Frame& row = from_.frames()[frame.value];
  const std::string_view function = from_.Text(row.function);
  const bool named = row.function.valid();
  if (named) {
    name_.clear();
    if (row.module.valid()) {
      name_ += from_.Text(from_.modules()[row.module.value].name);
      name_ += '!';
    }
    name_ += function;
  } else {
    name_ = from_.FrameName(frame);
  }
  const std::string_view name = name_;
  const size_t bang = name.find('!');
  const size_t unnamed_at = bang == std::string_view::npos ? 0 : bang + 1;
  const size_t function_at = named ? name.size() - function.size() : unnamed_at;
  const size_t frames_before = to_.frames();
  symbol = to_.InternFrame(name, static_cast<uint32_t>(function_at), named);
  all_distinct_ = all_distinct_ && symbol == frames_before;
  return symbol;
}

std::vector<StackIndex> BringAll(const StackTable& from, StackTable& to) {
  std::vector<FrameSymbol> frames(from.frames());
  for (FrameSymbol f = 0; f < frames.size(); ++f) frames[f] = to.InternFrame(from.frames_[f]);
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
