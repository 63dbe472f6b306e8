// SPDX-License-Identifier: Apache-2.0
#include "causality/component.h"

#include <algorithm>
#include <unordered_map>

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
  const StringId truncated = dictionary.strings().Find(trace::kTruncatedFunction);
  for (size_t i = 0; i < named.size(); ++i) {
    const StringId function = dictionary.frames()[i].function;
    named[i] = function.valid() && function != truncated;
  }
  return named;
}

void Without(const trace::Dictionary& dictionary, const std::vector<std::string>& globs,
             std::vector<bool>& frames) {
  if (globs.empty()) return;
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

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string_view, ComponentId> ids_;  // of the trace's strings
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
    : dictionary_(trace.dictionary),
      sets_(sets),
      by_thread_(options.by == By::kProcess || options.by == By::kCgroup),
      rows_(trace.dictionary.stacks().size()),
      unknown_(std::make_unique_for_overwrite<uint32_t[]>(rows_.size())) {
  names_.push_back(SetName(options));
  if (by_thread_) {
    ByThreads(options);
  } else {
    ByFrames(options);
  }
  std::sort(not_chosen_.begin(), not_chosen_.end());
  not_chosen_.erase(std::unique(not_chosen_.begin(), not_chosen_.end()), not_chosen_.end());
}

void ComponentTable::ByFrames(const ComponentOptions& options) {
  Choose(options.globs.empty() ? NamedFrames(dictionary_)
                               : waitgraph::FramesMatching(dictionary_, options.globs),
         options);
  FindSetsOfFrames(options.by);
}

void ComponentTable::Choose(std::vector<bool> chosen, const ComponentOptions& options) {
  Without(dictionary_, options.except, chosen);
  const bool by_globs = !by_thread_ && !options.globs.empty();
  const std::vector<bool> plain = by_globs ? std::vector<bool>() : PlainFrames(dictionary_);
  frames_.resize(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    frames_[i].chosen = chosen[i];
    frames_[i].plain = !plain.empty() && plain[i];
  }
}

void ComponentTable::FindSetsOfFrames(By by) {
  // By module, frames without one last; several modules may have one name.
  struct OfModule {
    bool seen = false;
    SetId set = kEmptySet;  // of its chosen frames, once there was one
  };
  std::vector<OfModule> modules(dictionary_.modules().size() + 1);
  Naming naming(names_);
  const SetId whole = sets_.With(kEmptySet, kWholeSet);
  for (size_t i = 0; i < frames_.size(); ++i) {
    const trace::Frame& frame = dictionary_.frames()[i];
    OfModule& module = frame.module.valid() ? modules[frame.module.value] : modules.back();
    module.seen = true;
    if (!frames_[i].chosen) continue;
    if (module.set == kEmptySet) {
      module.set = whole;
      if (by == By::kModule) {
        const ComponentId items[] = {kWholeSet, naming.Of(ModuleName(dictionary_, frame))};
        module.set = sets_.Intern(items);
      }
    }
    frames_[i].set = module.set;
  }
  std::unordered_map<std::string_view, bool> chosen_names;
  for (size_t m = 0; m < modules.size(); ++m) {
    if (!modules[m].seen) continue;
    trace::Frame any_frame;
    if (m + 1 < modules.size()) any_frame.module = trace::ModuleId(m);
    bool& any = chosen_names[ModuleName(dictionary_, any_frame)];
    any = any || modules[m].set != kEmptySet;
  }
  for (const auto& [module, any] : chosen_names) {
    if (!any) not_chosen_.emplace_back(module);
  }
}

void ComponentTable::ByThreads(const ComponentOptions& options) {
  Naming naming(names_);
  for (const trace::Thread& thread : dictionary_.threads()) {
    const std::string_view name = OwnerName(dictionary_, thread, options.by);
    const bool chosen = !name.empty() && MatchesAny(options.globs, name);
    if (!name.empty() && !chosen) not_chosen_.emplace_back(name);
    SetId set = kEmptySet;
    if (chosen) set = sets_.With(sets_.With(kEmptySet, kWholeSet), naming.Of(name));
    thread_sets_.push_back(set);
  }
  Choose(NamedFrames(dictionary_), options);
}

ComponentTable::StackRow ComponentTable::RowOf(trace::StackId stack) {
  if (stack.value >= rows_.size()) return {kEmptySet, kNoSignature};
  const StackRow row = rows_[stack.value];
  return row.set != kUnknownSet ? row : FindRow(stack.value);
}

ComponentTable::StackRow ComponentTable::FindRow(uint32_t stack) {
  const std::vector<trace::StackNode>& stacks = dictionary_.stacks();
  size_t unknown = 0;
  // A caller's stack has a smaller id than its callees'.
  uint32_t at = stack;
  while (at < rows_.size() && rows_[at].set == kUnknownSet) {
    unknown_[unknown++] = at;
    const uint32_t caller = stacks[at].parent.value;
    at = caller < at ? caller : UINT32_MAX;
  }
  StackRow row = {kEmptySet, kNoSignature};
  SetId last = kEmptySet;  // what the frame before brought: those of one module follow each other
  if (at < rows_.size()) {
    row = rows_[at];
    const uint32_t frame = stacks[at].frame.value;
    if (frame < frames_.size()) last = frames_[frame].set;
  }
  while (unknown > 0) {
    const uint32_t next = unknown_[--unknown];
    const uint32_t id = stacks[next].frame.value;
    const FrameRow frame = id < frames_.size() ? frames_[id] : FrameRow();
    if (frame.chosen) {
      if (frame.set != last) row.set = sets_.Union(row.set, frame.set);
      last = frame.set;
      const bool better = !frame.plain || row.signature == kNoSignature;
      if (better || frames_[row.signature].plain) row.signature = id;
    }
    rows_[next] = row;
  }
  return row;
}

SetId ComponentTable::ComponentsOf(trace::StackId stack, trace::ThreadId thread) {
  if (!by_thread_) return RowOf(stack).set;
  return thread.value < thread_sets_.size() ? thread_sets_[thread.value] : kEmptySet;
}

SignatureId ComponentTable::SignatureOf(trace::StackId stack, trace::ThreadId thread) {
  if (by_thread_ && ComponentsOf(stack, thread) == kEmptySet) return kNoSignature;
  return RowOf(stack).signature;
}

}  // namespace culprit::causality
