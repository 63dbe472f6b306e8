// SPDX-License-Identifier: Apache-2.0
#include "causality/component.h"

#include <algorithm>
#include <map>

#include "base/glob.h"
#include "waitgraph/glob.h"

namespace culprit::causality {
namespace {

bool MatchesAny(const std::vector<std::string>& globs, std::string_view text) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return MatchesGlob(glob, text);
         });
}

std::vector<bool> NamedFrames(const trace::Dictionary& dictionary) {
  std::vector<bool> named(dictionary.frames().size());
  for (size_t i = 0; i < named.size(); ++i) {
    const StringId function = dictionary.frames()[i].function;
    named[i] = function.valid() && dictionary.Text(function) != trace::kTruncatedFunction;
  }
  return named;
}

void Without(const trace::Dictionary& dictionary, const std::vector<std::string>& globs,
             std::vector<bool>& frames) {
  const std::vector<bool> out = waitgraph::FramesMatching(dictionary, globs);
  for (size_t i = 0; i < frames.size(); ++i) frames[i] = frames[i] && !out[i];
}

// Where no globs choose, the leaf of every wait is the scheduler. Code that only
// puts threads to sleep, or carries calls there, is passed over for a signature as
// long as the stack has any other.
std::vector<bool> PlainFrames(const trace::Dictionary& dictionary) {
  static const std::vector<std::string> kModules = {
      "[kernel*!*", "[vdso]!*",      "vmlinux*!*",    "kernel!*",     "libc.so*!*",
      "libc-*!*",   "libpthread*!*", "ld-*!*",        "libc.musl*!*", "libstdc++*!*",
      "libc++*!*",  "ntoskrnl*!*",   "ntkrnlmp*!*",   "ntdll*!*",     "kernel32*!*",
      "wow64*!*",   "kernelbase*!*", "libsystem_*!*", "libSystem*!*"};
  // A module that one of them matches, they match with any function. Names without a
  // module are looked at as they are.
  std::vector<bool> plain_module;
  for (const trace::Module& module : dictionary.modules()) {
    plain_module.push_back(MatchesAny(kModules, std::string(dictionary.Text(module.name)) + "!"));
  }
  std::vector<bool> plain;
  plain.reserve(dictionary.frames().size());
  for (const trace::Frame& frame : dictionary.frames()) {
    plain.push_back(frame.module.valid() ? plain_module[frame.module.value]
                                         : MatchesAny(kModules, dictionary.Text(frame.function)));
  }
  return plain;
}

std::string_view ModuleName(const trace::Dictionary& dictionary, const trace::Frame& frame) {
  if (!frame.module.valid()) return "[no module]";
  return dictionary.Text(dictionary.modules()[frame.module.value].name);
}

// The name a thread goes by; empty if it has none.
std::string_view OwnerName(const trace::Dictionary& dictionary, const trace::Thread& thread,
                           By by) {
  if (thread.kind == trace::ThreadKind::kDevice || thread.kind == trace::ThreadKind::kIdle) {
    return "";
  }
  if (!thread.process.valid()) return by == By::kProcess ? dictionary.Text(thread.name) : "";
  const trace::Process& process = dictionary.processes()[thread.process.value];
  return dictionary.Text(by == By::kProcess ? process.name : process.cgroup);
}

// Components by name, in order of first use, after the whole set.
class Naming {
 public:
  explicit Naming(std::vector<std::string>& names) : names_(names) {}
  ComponentId Of(std::string_view name) {
    const auto it = ids_.find(name);
    if (it != ids_.end()) return it->second;
    const auto id = static_cast<ComponentId>(names_.size());
    ids_.emplace(name, id);
    names_.emplace_back(name);
    return id;
  }
  bool Knows(std::string_view name) const { return ids_.find(name) != ids_.end(); }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, ComponentId, std::less<>> ids_;
};

}  // namespace

std::string_view Name(By by) {
  switch (by) {
    case By::kSet:
      return "set";
    case By::kModule:
      return "module";
    case By::kProcess:
      return "process";
    case By::kCgroup:
      return "cgroup";
  }
  return "";
}

std::string SetName(const ComponentOptions& options) {
  if (options.globs.empty()) {
    if (options.by == By::kProcess) return "every process";
    return options.by == By::kCgroup ? "every cgroup" : "every named frame";
  }
  std::string name;
  for (const std::string& glob : options.globs) name += (name.empty() ? "" : ", ") + glob;
  return name;
}

ComponentTable::ComponentTable(const trace::Trace& trace, const ComponentOptions& options,
                               SetTable& sets)
    : by_thread_(options.by == By::kProcess || options.by == By::kCgroup) {
  names_.push_back(SetName(options));
  if (by_thread_) {
    ByThreads(trace, options, sets);
  } else {
    ByFrames(trace, options, sets);
  }
  std::sort(not_chosen_.begin(), not_chosen_.end());
  not_chosen_.erase(std::unique(not_chosen_.begin(), not_chosen_.end()), not_chosen_.end());
}

void ComponentTable::ByFrames(const trace::Trace& trace, const ComponentOptions& options,
                              SetTable& sets) {
  const trace::Dictionary& dictionary = trace.dictionary;
  std::vector<bool> chosen = options.globs.empty()
                                 ? NamedFrames(dictionary)
                                 : waitgraph::FramesMatching(dictionary, options.globs);
  Without(dictionary, options.except, chosen);
  const std::vector<SetId> frame_sets = SetsOfFrames(dictionary, options.by, chosen, sets);
  const auto& stacks = dictionary.stacks();
  stack_sets_.resize(stacks.size(), kEmptySet);
  // A caller's stack has a smaller id than its callees'.
  for (size_t i = 0; i < stacks.size(); ++i) {
    if (stacks[i].parent.value < i) stack_sets_[i] = stack_sets_[stacks[i].parent.value];
    const uint32_t frame = stacks[i].frame.value;
    if (frame < chosen.size()) stack_sets_[i] = sets.Union(stack_sets_[i], frame_sets[frame]);
  }
  FindSignatures(dictionary, chosen, options.globs.empty());
}

std::vector<SetId> ComponentTable::SetsOfFrames(const trace::Dictionary& dictionary, By by,
                                                const std::vector<bool>& chosen, SetTable& sets) {
  // By module, frames without one last; several modules may have one name.
  struct OfModule {
    bool seen = false;
    SetId set = kEmptySet;  // of its chosen frames, once there was one
  };
  std::vector<OfModule> modules(dictionary.modules().size() + 1);
  Naming naming(names_);
  std::vector<SetId> frame_sets(chosen.size(), kEmptySet);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const trace::Frame& frame = dictionary.frames()[i];
    OfModule& module = frame.module.valid() ? modules[frame.module.value] : modules.back();
    module.seen = true;
    if (!chosen[i]) continue;
    if (module.set == kEmptySet) {
      const SetId whole = sets.With(kEmptySet, kWholeSet);
      module.set =
          by == By::kModule ? sets.With(whole, naming.Of(ModuleName(dictionary, frame))) : whole;
    }
    frame_sets[i] = module.set;
  }
  std::map<std::string_view, bool> chosen_names;
  for (size_t m = 0; m < modules.size(); ++m) {
    if (!modules[m].seen) continue;
    trace::Frame any_frame;
    if (m + 1 < modules.size()) any_frame.module = trace::ModuleId(m);
    bool& any = chosen_names[ModuleName(dictionary, any_frame)];
    any = any || modules[m].set != kEmptySet;
  }
  for (const auto& [module, any] : chosen_names) {
    if (!any) not_chosen_.emplace_back(module);
  }
  return frame_sets;
}

void ComponentTable::FindSignatures(const trace::Dictionary& dictionary,
                                    const std::vector<bool>& chosen, bool pass_over_plain) {
  const std::vector<bool> plain =
      pass_over_plain ? PlainFrames(dictionary) : std::vector<bool>(chosen.size(), false);
  const auto& stacks = dictionary.stacks();
  stack_signatures_.resize(stacks.size(), kNoSignature);
  for (size_t i = 0; i < stacks.size(); ++i) {
    SignatureId& signature = stack_signatures_[i];
    if (stacks[i].parent.value < i) signature = stack_signatures_[stacks[i].parent.value];
    const uint32_t frame = stacks[i].frame.value;
    if (frame >= chosen.size() || !chosen[frame]) continue;
    const bool only_plain = signature == kNoSignature || plain[signature];
    if (!plain[frame] || only_plain) signature = frame;
  }
}

void ComponentTable::ByThreads(const trace::Trace& trace, const ComponentOptions& options,
                               SetTable& sets) {
  const trace::Dictionary& dictionary = trace.dictionary;
  Naming naming(names_);
  for (const trace::Thread& thread : dictionary.threads()) {
    const std::string_view name = OwnerName(dictionary, thread, options.by);
    const bool chosen = !name.empty() && MatchesAny(options.globs, name);
    if (!name.empty() && !chosen) not_chosen_.emplace_back(name);
    SetId set = kEmptySet;
    if (chosen) set = sets.With(sets.With(kEmptySet, kWholeSet), naming.Of(name));
    thread_sets_.push_back(set);
  }
  std::vector<bool> named = NamedFrames(dictionary);
  Without(dictionary, options.except, named);
  FindSignatures(dictionary, named, /*pass_over_plain=*/true);
}

SetId ComponentTable::ComponentsOf(trace::StackId stack, trace::ThreadId thread) const {
  if (by_thread_) {
    return thread.value < thread_sets_.size() ? thread_sets_[thread.value] : kEmptySet;
  }
  return stack.value < stack_sets_.size() ? stack_sets_[stack.value] : kEmptySet;
}

SignatureId ComponentTable::SignatureOf(trace::StackId stack, trace::ThreadId thread) const {
  if (stack.value >= stack_signatures_.size()) return kNoSignature;
  if (by_thread_ && ComponentsOf(stack, thread) == kEmptySet) return kNoSignature;
  return stack_signatures_[stack.value];
}

}  // namespace culprit::causality
