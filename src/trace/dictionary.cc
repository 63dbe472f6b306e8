// SPDX-License-Identifier: Apache-2.0
#include "trace/dictionary.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace culprit::trace {
namespace {

constexpr uint32_t kEmpty = UINT32_MAX;

// Two multiplications spread two dense ids over 64 bits (the finalizer of
// MurmurHash3); a stack node is hashed once per frame walked, so this is hot.
uint64_t HashPair(uint32_t a, uint32_t b) {
  uint64_t x = (static_cast<uint64_t>(a) << 32) | b;
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

uint64_t HashOf(const Module& m) {
  const std::array<uint32_t, 3> key = {m.name.value, m.path.value, m.build_id.value};
  return XXH3_64bits(key.data(), sizeof(key));
}

uint64_t HashOf(const Frame& f) {
  const std::array<uint64_t, 4> key = {
      (static_cast<uint64_t>(f.module.value) << 32) | f.function.value,
      (static_cast<uint64_t>(f.file.value) << 32) | f.line, f.offset, f.flags};
  return XXH3_64bits(key.data(), sizeof(key));
}

}  // namespace

template <class Equal, class HashOfRow>
uint32_t RowIndex::FindOrAdd(uint64_t hash, uint32_t next, Equal equal, HashOfRow hash_of_row) {
  if ((used_ + 1) * 4ULL > slots_.size() * 3ULL) {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), kEmpty);
    for (uint32_t row = 0; row < used_; ++row) {
      size_t slot = hash_of_row(row) & (slots_.size() - 1);
      while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = row;
    }
  }
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != kEmpty) {
    if (equal(slots_[slot])) return slots_[slot];
    slot = (slot + 1) & mask;
  }
  CULPRIT_CHECK(next == used_ && next != kEmpty);
  slots_[slot] = next;
  ++used_;
  return next;
}

ModuleId Dictionary::InternModule(const Module& module) {
  const uint32_t next = static_cast<uint32_t>(modules_.size());
  const uint32_t row = module_index_.FindOrAdd(
      HashOf(module), next, [&](uint32_t i) { return modules_[i] == module; },
      [&](uint32_t i) { return HashOf(modules_[i]); });
  if (row == next) modules_.push_back(module);
  return ModuleId(row);
}

FrameId Dictionary::InternFrame(const Frame& frame) {
  const uint32_t next = static_cast<uint32_t>(frames_.size());
  const uint32_t row = frame_index_.FindOrAdd(
      HashOf(frame), next, [&](uint32_t i) { return frames_[i] == frame; },
      [&](uint32_t i) { return HashOf(frames_[i]); });
  if (row == next) frames_.push_back(frame);
  return FrameId(row);
}

FrameId Dictionary::InternFrame(std::string_view module, std::string_view function) {
  Frame frame;
  if (!module.empty())
    frame.module = InternModule({.name = Intern(module), .path = {}, .build_id = {}});
  frame.function = Intern(function);
  return InternFrame(frame);
}

StackId Dictionary::InternStack(StackId parent, FrameId leaf) {
  CULPRIT_CHECK(leaf.value < frames_.size());
  CULPRIT_CHECK(!parent.valid() || parent.value < stacks_.size());
  const uint32_t next = static_cast<uint32_t>(stacks_.size());
  const uint32_t row = stack_index_.FindOrAdd(
      HashPair(parent.value, leaf.value), next,
      [&](uint32_t i) { return stacks_[i].parent == parent && stacks_[i].frame == leaf; },
      [&](uint32_t i) { return HashPair(stacks_[i].parent.value, stacks_[i].frame.value); });
  if (row == next) {
    const uint32_t depth = parent.valid() ? stacks_[parent.value].depth + 1 : 1;
    stacks_.push_back({.parent = parent, .frame = leaf, .depth = depth});
  }
  return StackId(row);
}

StackId Dictionary::InternStack(const std::vector<FrameId>& frames) {
  StackId stack;
  for (FrameId frame : frames) stack = InternStack(stack, frame);
  return stack;
}

ProcessId Dictionary::AddProcess(const Process& process) {
  processes_.push_back(process);
  return ProcessId(processes_.size() - 1);
}

ThreadId Dictionary::AddThread(const Thread& thread) {
  CULPRIT_CHECK(!thread.process.valid() || thread.process.value < processes_.size());
  threads_.push_back(thread);
  return ThreadId(threads_.size() - 1);
}

std::string Dictionary::FrameName(FrameId id) const {
  const Frame& frame = frames_[id.value];
  const std::string_view module =
      frame.module.valid() ? Text(modules_[frame.module.value].name) : std::string_view();
  constexpr size_t kLongestOffset = 20;
  std::string name;
  name.reserve(module.size() +
               (frame.function.valid() ? Text(frame.function).size() : kLongestOffset) + 1);
  name += module;
  if (frame.module.valid()) name += '!';
  if (frame.function.valid()) {
    name += Text(frame.function);
    return name;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string digits;
  for (uint64_t rest = frame.offset; rest != 0 || digits.empty(); rest >>= 4) {
    digits.insert(digits.begin(), kHex[rest & 15]);
  }
  return name + "+0x" + digits;
}

std::vector<FrameId> Dictionary::StackFrames(StackId id) const {
  std::vector<FrameId> frames;
  for (StackId at = id; at.valid(); at = stacks_[at.value].parent) {
    frames.push_back(stacks_[at.value].frame);
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::string Dictionary::StackText(StackId id, std::string_view separator) const {
  std::string text;
  for (FrameId frame : StackFrames(id)) {
    if (!text.empty()) text += separator;
    text += FrameName(frame);
  }
  return text;
}

std::string Dictionary::ThreadLabel(ThreadId id) const {
  if (!id.valid()) return "-";
  const Thread& thread = threads_[id.value];
  std::string label;
  if (thread.process.valid())
    label = std::string(Text(processes_[thread.process.value].name)) + "/";
  label += Text(thread.name);
  if (thread.tid >= 0) label += " (" + std::to_string(thread.tid) + ")";
  return label;
}

void CopyDictionary(const Dictionary& from, Dictionary& to) {
  CULPRIT_CHECK(to.strings().size() == 0 && to.frames().empty() && to.threads().empty());
  for (size_t i = 0; i < from.strings().size(); ++i) to.Intern(from.Text(StringId(i)));
  for (const Module& module : from.modules()) to.InternModule(module);
  for (const Frame& frame : from.frames()) to.InternFrame(frame);
  for (const StackNode& node : from.stacks()) to.InternStack(node.parent, node.frame);
  for (const Process& process : from.processes()) to.AddProcess(process);
  for (const Thread& thread : from.threads()) to.AddThread(thread);
}

}  // namespace culprit::trace
