// SPDX-License-Identifier: Apache-2.0
#include "trace/used_names.h"

#include <vector>

#include "base/check.h"

namespace culprit::trace {
namespace {

class UsedNames {
 public:
  UsedNames(const Dictionary& from, Dictionary& to)
      : from_(from),
        to_(to),
        threads_(from.threads().size()),
        stacks_(from.stacks().size()),
        has_thread_(from.threads().size()),
        has_stack_(from.stacks().size()) {}

  void Use(ThreadId id) {
    if (id.valid()) has_thread_[id.value] = true;
  }
  void Use(StackId id) {
    for (; id.valid() && !has_stack_[id.value]; id = from_.stacks()[id.value].parent) {
      has_stack_[id.value] = true;
    }
  }
  // What is used is known.
  void Copy() {
    CopyThreads();
    CopyStacks();
  }

  StringId Map(StringId id) { return id.valid() ? to_.Intern(from_.Text(id)) : id; }
  // A StringId as an argument; negative: none.
  int64_t MapText(int64_t id) {
    const bool is_known = id >= 0 && static_cast<size_t>(id) < from_.strings().size();
    return is_known ? Map(StringId(static_cast<size_t>(id))).value : -1;
  }
  ThreadId Map(ThreadId id) const { return id.valid() ? threads_[id.value] : id; }
  StackId Map(StackId id) const { return id.valid() ? stacks_[id.value] : id; }

 private:
  void CopyThreads() {
    std::vector<ProcessId> processes(from_.processes().size());
    std::vector<bool> has_process(from_.processes().size());
    for (size_t i = 0; i < threads_.size(); ++i) {
      const ProcessId process = from_.threads()[i].process;
      if (has_thread_[i] && process.valid()) has_process[process.value] = true;
    }
    for (size_t i = 0; i < processes.size(); ++i) {
      if (!has_process[i]) continue;
      Process process = from_.processes()[i];
      process.name = Map(process.name);
      process.command_line = Map(process.command_line);
      process.cgroup = Map(process.cgroup);
      processes[i] = to_.AddProcess(process);
    }
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (!has_thread_[i]) continue;
      Thread thread = from_.threads()[i];
      thread.name = Map(thread.name);
      if (thread.process.valid()) thread.process = processes[thread.process.value];
      threads_[i] = to_.AddThread(thread);
    }
  }

  // Callers come before those they call.
  void CopyStacks() {
    std::vector<FrameId> frames(from_.frames().size());
    for (size_t i = 0; i < stacks_.size(); ++i) {
      if (!has_stack_[i]) continue;
      const StackNode& node = from_.stacks()[i];
      FrameId& frame = frames[node.frame.value];
      if (!frame.valid()) frame = CopyFrame(from_.frames()[node.frame.value]);
      stacks_[i] = to_.InternStack(Map(node.parent), frame);
    }
  }

  FrameId CopyFrame(Frame frame) {
    if (frame.module.valid()) {
      Module module = from_.modules()[frame.module.value];
      module.name = Map(module.name);
      module.path = Map(module.path);
      module.build_id = Map(module.build_id);
      frame.module = to_.InternModule(module);
    }
    frame.function = Map(frame.function);
    frame.file = Map(frame.file);
    return to_.InternFrame(frame);
  }

  const Dictionary& from_;
  Dictionary& to_;
  std::vector<ThreadId> threads_;  // by old id
  std::vector<StackId> stacks_;    // by old id
  std::vector<bool> has_thread_;
  std::vector<bool> has_stack_;
};

}  // namespace

void CopyUsedNames(const Dictionary& from, Trace& trace) {
  const Dictionary& empty = trace.dictionary;
  CULPRIT_CHECK(empty.strings().size() == 0 && empty.frames().empty() && empty.threads().empty());
  UsedNames names(from, trace.dictionary);
  for (const Event& event : trace.events) {
    names.Use(event.thread);
    names.Use(event.peer);
    names.Use(event.stack);
  }
  for (const Instance& instance : trace.instances) names.Use(instance.thread);
  names.Copy();
  for (Event& event : trace.events) {
    event.thread = names.Map(event.thread);
    event.peer = names.Map(event.peer);
    event.stack = names.Map(event.stack);
    if (event.kind == EventKind::kMarker) event.arg0 = names.MapText(event.arg0);
  }
  for (Instance& instance : trace.instances) {
    instance.scenario = names.Map(instance.scenario);
    instance.thread = names.Map(instance.thread);
  }
}

}  // namespace culprit::trace
