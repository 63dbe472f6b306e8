// SPDX-License-Identifier: Apache-2.0
#include "episode/owner.h"

#include <algorithm>
#include <array>

#include "base/glob.h"

namespace culprit::episode {
namespace {

constexpr std::string_view kMadeCode = "[jit]";

bool MatchesAny(const std::vector<std::string>& globs, std::string_view text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, text); });
}

// Code that every program has before main or a thread's function: it is on all
// stacks and tells nothing.
bool IsStartUp(std::string_view function) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "_start",       "__libc_start_main", "__libc_start_call_main",
      "start_thread", "thread_start",      "clone",
      "clone3",       "__clone3"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end() ||
         function == trace::kTruncatedFunction;
}

}  // namespace

std::string FunctionName::Label() const {
  return module.empty() ? function : module + "!" + function;
}

FunctionId FunctionTable::Intern(const FunctionName& name) {
  const auto [it, is_new] = index_.try_emplace(name, FunctionId(names_.size()));
  if (is_new) names_.push_back(name);
  return it->second;
}

const std::vector<std::string>& SystemModules() {
  static const std::vector<std::string> modules = {
      "libc",        "libc.so*",  "libc-*.so",   "ld-*",        "ld.so*",     "libc.musl*",
      "libpthread*", "librt.so*", "librt-*.so",  "libdl.so*",   "libdl-*.so", "libstdc++*",
      "libgcc_s*",   "libc++*",   "linux-vdso*", "linux-gate*", "[plt]"};
  return modules;
}

StackOwners::StackOwners(const trace::Dictionary& dictionary, OwnerOptions options,
                         FunctionTable& functions)
    : dictionary_(dictionary),
      options_(std::move(options)),
      functions_(functions),
      classes_(dictionary.frames().size()),
      frame_functions_(dictionary.frames().size()),
      owners_(dictionary.stacks().size()),
      known_(dictionary.stacks().size()) {}

const StackOwners::FrameClass& StackOwners::ClassOf(trace::FrameId id) {
  FrameClass& result = classes_[id.value];
  if (result.known) return result;
  result.known = true;
  const trace::Frame& frame = dictionary_.frames()[id.value];
  std::string_view module;
  if (frame.module.valid()) {
    module = dictionary_.Text(dictionary_.modules()[frame.module.value].name);
  }
  const std::string_view function = dictionary_.Text(frame.function);
  result.named = !function.empty();
  result.made_code = module == kMadeCode && result.named;
  const bool kernel =
      (frame.flags & trace::kKernelMode) != 0 || (module.starts_with("[") && module != kMadeCode);
  result.application = !kernel && !IsStartUp(function) && !(module.empty() && !result.named);
  if (options_.modules.empty()) {
    result.application = result.application && !MatchesAny(SystemModules(), module);
  } else {
    result.application = result.application && MatchesAny(options_.modules, module);
  }
  if (!options_.functions.empty()) {
    result.application =
        result.application && (!result.named || MatchesAny(options_.functions, function));
  }
  return result;
}

FunctionId StackOwners::FunctionOf(trace::FrameId id) {
  FunctionId& function = frame_functions_[id.value];
  if (function.valid()) return function;
  const trace::Frame& frame = dictionary_.frames()[id.value];
  FunctionName name;
  if (frame.module.valid()) {
    const trace::Module& module = dictionary_.modules()[frame.module.value];
    name.module = dictionary_.Text(module.name);
    name.build_id = dictionary_.Text(module.build_id);
  }
  name.function = dictionary_.Text(frame.function);
  if (name.function.empty()) {
    const std::string label = dictionary_.FrameName(id);
    name.function = label.substr(label.rfind('+'));
  }
  function = functions_.Intern(name);
  return function;
}

// The outermost frame's module, if none of its frames has a name. What a stripped
// program calls through a library, such as an event loop, is not the library's.
std::optional<trace::ModuleId> StackOwners::NamelessProgram(
    const std::vector<trace::FrameId>& frames) {
  if (frames.empty()) return {};
  const trace::ModuleId program = dictionary_.frames()[frames.back().value].module;
  for (const trace::FrameId frame : frames) {
    if (dictionary_.frames()[frame.value].module == program && ClassOf(frame).named) return {};
  }
  return program;
}

Owners StackOwners::Find(trace::StackId stack) {
  std::vector<trace::FrameId> frames;  // of the application, leaf first
  bool made_code = false;
  bool named = false;
  for (trace::StackId at = stack; at.valid();) {
    const trace::StackNode& node = dictionary_.stacks()[at.value];
    if (node.frame.valid() && ClassOf(node.frame).application) {
      frames.push_back(node.frame);
      made_code = made_code || ClassOf(node.frame).made_code;
      named = named || ClassOf(node.frame).named;
    }
    at = node.parent;
  }
  Owners owners;
  owners.made_code = made_code;
  const std::optional<trace::ModuleId> nameless = NamelessProgram(frames);
  for (const trace::FrameId frame : frames) {
    const FrameClass& kind = ClassOf(frame);
    if (made_code && !kind.made_code) continue;
    const bool of_nameless = nameless && dictionary_.frames()[frame.value].module == *nameless;
    if (!kind.named && named && !of_nameless && !options_.unnamed) continue;
    const FunctionId function = FunctionOf(frame);
    // Recursion repeats a function; it owns the call once.
    if (std::find(owners.inclusive.begin(), owners.inclusive.end(), function) ==
        owners.inclusive.end()) {
      owners.inclusive.push_back(function);
    }
  }
  if (!owners.inclusive.empty()) owners.innermost = owners.inclusive.front();
  return owners;
}

const Owners& StackOwners::Of(trace::StackId stack) {
  if (!stack.valid() || stack.value >= owners_.size()) return nobody_;
  if (!known_[stack.value]) {
    owners_[stack.value] = Find(stack);
    known_[stack.value] = true;
  }
  return owners_[stack.value];
}

}  // namespace culprit::episode
