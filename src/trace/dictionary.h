// SPDX-License-Identifier: Apache-2.0
//
// Dictionary: everything the events of one trace refer to by id: strings,
// modules, frames, stacks, processes, threads. Append-only; ids are dense and
// given in order of first use, so a dictionary can be written in pieces while
// a trace grows (ctrace_writer.h), each piece holding what is new.
//
// A frame is module!function, with source line, the offset in the module, and
// whether it was inlined. A stack is a node of a trie: its caller stack and
// its leaf frame. Equal stacks are one node, so comparing two is comparing two
// ids. A stack whose callers could not be walked has the frame [truncated] as
// its outermost caller and so never equals a whole one.
//
// One thread at a time; interning is one hash probe. 16 bytes a stack node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/string_table.h"
#include "trace/event.h"

namespace culprit::trace {

using ModuleId = Id<struct ModuleTag>;
using FrameId = Id<struct FrameTag>;
using ProcessId = Id<struct ProcessTag>;

inline constexpr int64_t kNoTime = INT64_MIN;
inline constexpr std::string_view kTruncatedFunction = "[truncated]";

struct Module {
  StringId name;      // "libc.so.6", "fs.sys", "[kernel]"
  StringId path;      // where it was loaded from, if known
  StringId build_id;  // hexadecimal, if known

  bool operator==(const Module&) const = default;
};

enum FrameFlag : uint8_t {
  kInlined = 1 << 0,
  kKernelMode = 1 << 1,
};

struct Frame {
  ModuleId module;
  StringId function;  // none: not symbolized, `offset` says where
  StringId file;
  uint32_t line = 0;
  uint8_t flags = 0;
  uint64_t offset = 0;  // in the module; of the function's start where that is known

  bool operator==(const Frame&) const = default;
};

struct StackNode {
  StackId parent;  // the caller's stack; none for the outermost frame
  FrameId frame;
  uint32_t depth = 1;
};

struct Process {
  int64_t pid = -1;
  StringId name;
  StringId command_line;
  StringId cgroup;
  int64_t start_ns = kNoTime;  // kNoTime: before the trace began
  int64_t end_ns = kNoTime;    // kNoTime: after it ended

  bool operator==(const Process&) const = default;
};

enum class ThreadKind : uint8_t { kUser = 0, kKernel = 1, kIdle = 2, kDevice = 3 };
inline constexpr size_t kThreadKinds = 4;

// A thread is ⟨tid, start⟩: a reused tid is a new entry.
struct Thread {
  int64_t tid = -1;
  ProcessId process;
  StringId name;
  ThreadKind kind = ThreadKind::kUser;
  int64_t start_ns = kNoTime;
  int64_t end_ns = kNoTime;

  bool operator==(const Thread&) const = default;
};

// A hash index over rows of a table that lives elsewhere: open addressing,
// slots hold row numbers. Shared by the frame, module and stack tables.
class RowIndex {
 public:
  // The row for which `equal(row)` holds, or `next` after storing it.
  template <class Equal, class HashOfRow>
  uint32_t FindOrAdd(uint64_t hash, uint32_t next, Equal equal, HashOfRow hash_of_row);

 private:
  std::vector<uint32_t> slots_;
  uint32_t used_ = 0;
};

class Dictionary {
 public:
  StringId Intern(std::string_view text) { return strings_.Intern(text); }
  std::string_view Text(StringId id) const { return strings_.Get(id); }
  ModuleId InternModule(const Module& module);
  FrameId InternFrame(const Frame& frame);
  // Shorthand: a frame by names alone, as "module", "function".
  FrameId InternFrame(std::string_view module, std::string_view function);
  StackId InternStack(StackId parent, FrameId leaf);
  // Caller first, leaf last.
  StackId InternStack(const std::vector<FrameId>& frames);
  ProcessId AddProcess(const Process& process);
  ThreadId AddThread(const Thread& thread);

  const StringTable& strings() const { return strings_; }
  const std::vector<Module>& modules() const { return modules_; }
  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<StackNode>& stacks() const { return stacks_; }
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Thread>& threads() const { return threads_; }
  // For what becomes known later: names after exec, end times.
  Process& process(ProcessId id) { return processes_[id.value]; }
  Thread& thread(ThreadId id) { return threads_[id.value]; }

  // "module!function", "module!+0x12ab", "function" when there is no module.
  std::string FrameName(FrameId id) const;
  // Frames of a stack, caller first; empty for none().
  std::vector<FrameId> StackFrames(StackId id) const;
  // "a!b;c!d", caller first.
  std::string StackText(StackId id, std::string_view separator = ";") const;
  // "process/thread (tid)"; "-" for none().
  std::string ThreadLabel(ThreadId id) const;

 private:
  StringTable strings_;
  std::vector<Module> modules_;
  std::vector<Frame> frames_;
  std::vector<StackNode> stacks_;
  std::vector<Process> processes_;
  std::vector<Thread> threads_;
  RowIndex module_index_;
  RowIndex frame_index_;
  RowIndex stack_index_;
};

// A copy with the same ids; `to` must be empty.
void CopyDictionary(const Dictionary& from, Dictionary& to);

}  // namespace culprit::trace
