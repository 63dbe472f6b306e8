// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_stacks.h"

#include <algorithm>

#include "base/text.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxDepth = 1024;
constexpr uint64_t kFirstMark = ~uint64_t{4094};  // perf's marks are the last 4095 values
constexpr uint64_t kUserMark = ~uint64_t{511};    // -512
constexpr uint64_t kKernelMark = ~uint64_t{127};  // -128

std::string Hexadecimal(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    text.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return text;
}

}  // namespace

void CtfStacks::AddModule(int64_t pid, uint64_t base, uint64_t size, std::string_view path) {
  Space& space = spaces_[pid];
  Mapped mapped = {.end = base + size, .path = std::string(path)};
  if (mapped.end < base) mapped.end = UINT64_MAX;
  mapped.module = dictionary_.InternModule(
      {.name = dictionary_.Intern(BaseName(path)), .path = dictionary_.Intern(path)});
  space.modules[base] = std::move(mapped);
  space.frames.clear();
}

void CtfStacks::AddBuildId(int64_t pid, uint64_t base, std::string_view build_id) {
  Space& space = spaces_[pid];
  const auto it = space.modules.find(base);
  if (it == space.modules.end() || build_id.empty()) return;
  Mapped& mapped = it->second;
  mapped.build_id = Hexadecimal(build_id);
  mapped.module = dictionary_.InternModule({.name = dictionary_.Intern(BaseName(mapped.path)),
                                            .path = dictionary_.Intern(mapped.path),
                                            .build_id = dictionary_.Intern(mapped.build_id)});
  space.frames.clear();
}

// Modules are told by where they begin, not by their segments: an address minus
// the base is taken for the offset in the file, which holds where the linker
// keeps both equal for code, as GNU ld does.
trace::FrameId CtfStacks::MakeUserFrame(const Space& space, uint64_t address) {
  auto it = space.modules.upper_bound(address);
  if (it == space.modules.begin() || (--it)->second.end <= address) {
    const trace::ModuleId unknown =
        dictionary_.InternModule({.name = dictionary_.Intern("[unknown]")});
    return dictionary_.InternFrame({.module = unknown, .offset = address});
  }
  trace::Frame frame = {.module = it->second.module, .offset = address - it->first};
  if (symbolizer_ != nullptr) {
    const auto& symbols =
        symbolizer_->Lookup({it->second.path, it->second.build_id}, frame.offset, false);
    if (!symbols.empty() && !symbols.front().function.empty()) {
      const symbol::Symbol& found = symbols.front();
      frame.function = dictionary_.Intern(found.function);
      if (!found.file.empty()) frame.file = dictionary_.Intern(found.file);
      frame.line = found.line;
      if (found.function_start != 0) frame.offset = found.function_start;
    }
  }
  return dictionary_.InternFrame(frame);
}

trace::FrameId CtfStacks::UserFrame(int64_t pid, uint64_t address) {
  Space& space = spaces_[pid];
  const auto it = space.frames.find(address);
  if (it != space.frames.end()) return it->second;
  const trace::FrameId frame = MakeUserFrame(space, address);
  space.frames.emplace(address, frame);
  return frame;
}

trace::StackId CtfStacks::FunctionOn(trace::StackId parent, int64_t pid, uint64_t address) {
  return dictionary_.InternStack(parent, UserFrame(pid, address));
}

// Deeper stacks lose their outermost callers, and truncated_ says so.
void CtfStacks::Addresses(const CtfValue& value, std::vector<uint64_t>& out) {
  out.clear();
  if (!value.seen || (value.element_bits != 64 && value.element_bits != 32)) return;
  const auto* data = reinterpret_cast<const uint8_t*>(value.bytes.data());
  const size_t there = value.bytes.size() * 8 / value.element_bits;
  const size_t count = std::min(there, kMaxDepth);
  truncated_ = truncated_ || there > count;
  const uint64_t end_mark = value.element_bits == 64 ? UINT64_MAX : UINT32_MAX;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t address =
        ReadCtfBits(data, i * value.element_bits, value.element_bits, value.big_endian);
    if (address != end_mark) out.push_back(address);
  }
}

trace::StackId CtfStacks::Join(int64_t pid) {
  trace::StackId stack;
  if (truncated_) {
    stack = dictionary_.InternStack({}, dictionary_.InternFrame("", trace::kTruncatedFunction));
  }
  truncated_ = false;
  for (auto it = user_addresses_.rbegin(); it != user_addresses_.rend(); ++it) {
    stack = FunctionOn(stack, pid, *it);
  }
  kernel_frames_.clear();
  traits_.clear();
  if (!kernel_addresses_.empty()) kernel_.Frames(kernel_addresses_, kernel_frames_);
  for (const trace::FrameId frame : kernel_frames_) {
    traits_.push_back(kernel_.traits(frame));
    stack = dictionary_.InternStack(stack, frame);
  }
  return stack;
}

trace::StackId CtfStacks::KernelPart(size_t first_frame) {
  trace::StackId stack;
  for (size_t i = first_frame; i < kernel_frames_.size(); ++i) {
    stack = dictionary_.InternStack(stack, kernel_frames_[i]);
  }
  return stack;
}

trace::StackId CtfStacks::FromContexts(int64_t pid, const CtfValue& kernel, const CtfValue& user) {
  Addresses(kernel, kernel_addresses_);
  Addresses(user, user_addresses_);
  return Join(pid);
}

trace::StackId CtfStacks::FromChain(int64_t pid, const CtfValue& chain) {
  Addresses(chain, user_addresses_);
  kernel_addresses_.clear();
  std::vector<uint64_t> user;
  // Without a mark, the upper half of the address space is the kernel's.
  uint64_t mark = 0;
  for (const uint64_t address : user_addresses_) {
    if (address >= kFirstMark) {
      mark = address;
    } else if (mark == kKernelMark || (mark != kUserMark && address >> 63 != 0)) {
      kernel_addresses_.push_back(address);
    } else {
      user.push_back(address);
    }
  }
  user_addresses_.swap(user);
  return Join(pid);
}

}  // namespace culprit::import_
