// SPDX-License-Identifier: Apache-2.0
#include "record/live_names.h"

namespace culprit::record {
namespace {

using trace::Frame;
using trace::StackId;

bool IsUnnamedPlace(const trace::Dictionary& dictionary, const Frame& frame) {
  return frame.module.valid() && !frame.function.valid() &&
         (frame.flags & trace::kKernelMode) == 0 &&
         dictionary.modules()[frame.module.value].path.valid();
}

}  // namespace

StringId LiveNames::CopyText(StringId text) {
  return text.valid() ? to_.Intern(from_.Text(text)) : text;
}

// Names of threads change, and processes end, so rows are copied again.
void LiveNames::CopyThreads() {
  for (size_t i = 0; i < from_.processes().size(); ++i) {
    trace::Process row = from_.processes()[i];
    row.name = CopyText(row.name);
    row.command_line = CopyText(row.command_line);
    row.cgroup = CopyText(row.cgroup);
    if (i < to_.processes().size()) {
      to_.process(trace::ProcessId(i)) = row;
    } else {
      to_.AddProcess(row);
    }
  }
  for (size_t i = 0; i < from_.threads().size(); ++i) {
    trace::Thread row = from_.threads()[i];
    row.name = CopyText(row.name);
    if (i < to_.threads().size()) {
      to_.thread(trace::ThreadId(i)) = row;
    } else {
      to_.AddThread(row);
    }
  }
}

void LiveNames::NameFrame(const Frame& frame) {
  std::vector<trace::FrameId>& named = frames_.emplace_back();
  Frame copy = frame;
  copy.function = CopyText(frame.function);
  copy.file = CopyText(frame.file);
  if (frame.module.valid()) copy.module = modules_[frame.module.value];
  if (!IsUnnamedPlace(from_, frame)) {
    named.push_back(to_.InternFrame(copy));
    return;
  }
  const trace::Module& module = from_.modules()[frame.module.value];
  const symbol::ModuleKey key = {.path = std::string(from_.Text(module.path)),
                                 .build_id = std::string(from_.Text(module.build_id))};
  for (const symbol::Symbol& symbol : symbolizer_.Lookup(key, frame.offset, false)) {
    Frame result;
    result.module = copy.module;
    if (!symbol.function.empty()) result.function = to_.Intern(symbol.function);
    result.flags = symbol.inlined ? trace::kInlined : 0;
    result.offset = symbol.function_start;
    if (result.offset == 0 && symbol.function.empty()) result.offset = frame.offset;
    named.push_back(to_.InternFrame(result));
  }
}

void LiveNames::Update() {
  CopyThreads();
  for (size_t i = modules_.size(); i < from_.modules().size(); ++i) {
    const trace::Module& module = from_.modules()[i];
    modules_.push_back(to_.InternModule({.name = CopyText(module.name),
                                         .path = CopyText(module.path),
                                         .build_id = CopyText(module.build_id)}));
  }
  for (size_t i = frames_.size(); i < from_.frames().size(); ++i) NameFrame(from_.frames()[i]);
  for (size_t i = stacks_.size(); i < from_.stacks().size(); ++i) {
    const trace::StackNode& node = from_.stacks()[i];
    StackId stack = Map(node.parent);
    for (const trace::FrameId frame : frames_[node.frame.value]) {
      stack = to_.InternStack(stack, frame);
    }
    stacks_.push_back(stack);
  }
}

}  // namespace culprit::record
