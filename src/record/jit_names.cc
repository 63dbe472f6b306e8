// SPDX-License-Identifier: Apache-2.0
#include "record/jit_names.h"

#include <utility>

namespace culprit::record {
namespace {

using trace::FrameId;
using trace::StackId;

constexpr std::string_view kJitModule = "[jit]";
constexpr uint8_t kNone = 1;
constexpr uint8_t kSome = 2;

// A request's stack is that of who made it, not of the device.
trace::ThreadId WhoseStack(const trace::Event& event) {
  return event.kind == trace::EventKind::kHardware ? event.peer : event.thread;
}

}  // namespace

JitNames::JitNames(trace::Dictionary& dictionary, std::string folder)
    : dictionary_(dictionary), folder_(std::move(folder)), maps_(folder_) {}

void JitNames::Forget() {
  maps_ = symbol::JitMaps(folder_);
  named_stacks_.clear();
}

bool JitNames::IsMadeCode(FrameId id) const {
  const trace::Frame& frame = dictionary_.frames()[id.value];
  if (!frame.module.valid() || frame.function.valid()) return false;
  if ((frame.flags & trace::kKernelMode) != 0) return false;
  const trace::Module& module = dictionary_.modules()[frame.module.value];
  return !module.path.valid() && !module.build_id.valid();
}

// Callers come before their callees, so everything up to `stack` can be filled in.
bool JitNames::HasMadeCode(StackId stack) {
  for (size_t i = made_code_.size(); i <= stack.value; ++i) {
    const trace::StackNode& node = dictionary_.stacks()[i];
    const bool below = node.parent.valid() && made_code_[node.parent.value] == kSome;
    made_code_.push_back(below || IsMadeCode(node.frame) ? kSome : kNone);
  }
  return made_code_[stack.value] == kSome;
}

StackId JitNames::Name(StackId stack, int64_t pid) {
  bool any = false;
  StackId result;
  for (const FrameId frame : dictionary_.StackFrames(stack)) {
    const uint64_t address = dictionary_.frames()[frame.value].offset;
    const std::string_view name =
        IsMadeCode(frame) ? maps_.Lookup(pid, address) : std::string_view();
    any = any || !name.empty();
    result = dictionary_.InternStack(
        result, name.empty() ? frame : dictionary_.InternFrame(kJitModule, name));
  }
  if (any) ++named_;
  return result;
}

StackId JitNames::Map(const trace::Event& event) {
  const trace::ThreadId thread = WhoseStack(event);
  if (!event.stack.valid() || !thread.valid() || !HasMadeCode(event.stack)) return event.stack;
  const trace::ProcessId process = dictionary_.threads()[thread.value].process;
  if (!process.valid()) return event.stack;
  const uint64_t key = uint64_t{event.stack.value} << 32 | process.value;
  const auto [it, is_new] = named_stacks_.try_emplace(key);
  if (is_new) it->second = Name(event.stack, dictionary_.processes()[process.value].pid);
  return it->second;
}

}  // namespace culprit::record
