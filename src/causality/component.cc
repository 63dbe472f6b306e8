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
    : dictionary_(trace.dictionary),
      sets_(sets),
      by_thread_(options.by == By::kProcess || options.by == By::kCgroup),
      rows_(trace.dictionary.stacks().size()) {
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
  chosen_ = options.globs.empty() ? NamedFrames(dictionary_)
                                  : waitgraph::FramesMatching(dictionary_, options.globs);
  Without(dictionary_, options.except, chosen_);
  FindSetsOfFrames(options.by);
  if (options.globs.empty()) plain_ = PlainFrames(dictionary_);
}

void ComponentTable::FindSetsOfFrames(By by) {
  // By module, frames without one last; several modules may have one name.
  struct OfModule {
    bool seen = false;
    SetId set = kEmptySet;  // of its chosen frames, once there was one
  };
  std::vector<OfModule> modules(dictionary_.modules().size() + 1);
  Naming naming(names_);
  frame_sets_.assign(chosen_.size(), kEmptySet);
  for (size_t i = 0; i < chosen_.size(); ++i) {
    const trace::Frame& frame = dictionary_.frames()[i];
    OfModule& module = frame.module.valid() ? modules[frame.module.value] : modules.back();
    module.seen = true;
    if (!chosen_[i]) continue;
    if (module.set == kEmptySet) {
      const SetId whole = sets_.With(kEmptySet, kWholeSet);
      module.set =
          by == By::kModule ? sets_.With(whole, naming.Of(ModuleName(dictionary_, frame))) : whole;
    }
    frame_sets_[i] = module.set;
  }
  std::map<std::string_view, bool> chosen_names;
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
  chosen_ = NamedFrames(dictionary_);
  Without(dictionary_, options.except, chosen_);
  plain_ = PlainFrames(dictionary_);
}

ComponentTable::StackRow ComponentTable::Below(const StackRow& caller, uint32_t frame) {
  StackRow row = caller;
  row.known = true;
  if (frame >= chosen_.size() || !chosen_[frame]) return row;
  if (!by_thread_) row.set = sets_.Union(row.set, frame_sets_[frame]);
  const bool plain = !plain_.empty() && plain_[frame];
  if (!plain || row.signature == kNoSignature || plain_[row.signature]) row.signature = frame;
  return row;
}

const ComponentTable::StackRow& ComponentTable::RowOf(trace::StackId stack) {
  static constexpr StackRow kNoRow;
  const std::vector<trace::StackNode>& stacks = dictionary_.stacks();
  if (stack.value >= rows_.size()) return kNoRow;
  unknown_.clear();
  // A caller's stack has a smaller id than its callees'.
  uint32_t at = stack.value;
  while (at < rows_.size() && !rows_[at].known) {
    unknown_.push_back(at);
    const uint32_t caller = stacks[at].parent.value;
    at = caller < at ? caller : UINT32_MAX;
  }
  StackRow row = at < rows_.size() ? rows_[at] : StackRow();
  for (auto it = unknown_.rbegin(); it != unknown_.rend(); ++it) {
    row = Below(row, stacks[*it].frame.value);
    rows_[*it] = row;
  }
  return rows_[stack.value];
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
