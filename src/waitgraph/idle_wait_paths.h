// SPDX-License-Identifier: Apache-2.0
//
// FunctionPaths: the stacks of a trace as paths of functions. Frames that differ
// only in line or inlining are one function here, so a loop that polls on one
// line and works on another is still one loop. A path is a node of a trie: its
// caller's path and its function; node 0 is the empty path and a caller's number
// is smaller than its callees'. Waits without a stack get paths of one invented
// function ("[epoll_wait]", "[woken by net]").
//
// Built in O(stacks). Keeps a reference to the dictionary, which must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/dictionary.h"

namespace culprit::waitgraph {

using PathId = uint32_t;
inline constexpr PathId kRootPath = 0;
using FunctionId = uint32_t;
inline constexpr FunctionId kNoFunction = UINT32_MAX;

class FunctionPaths {
 public:
  explicit FunctionPaths(const trace::Dictionary& dictionary);

  // The root for none().
  PathId Of(trace::StackId stack) const {
    return stack.valid() ? of_stack_[stack.value] : kRootPath;
  }
  // The path of an invented function called from nowhere, made on first use.
  PathId Invented(std::string_view name);

  PathId caller(PathId path) const { return nodes_[path].caller; }
  // kNoFunction for the root.
  FunctionId function(PathId path) const { return nodes_[path].function; }
  uint32_t depth(PathId path) const { return nodes_[path].depth; }
  // Whether it begins in the kernel: nothing is known about the program's code.
  bool KernelOnly(PathId path) const { return nodes_[path].kernel_only; }

  // Whether its callers were cut off (dictionary.h).
  bool Truncated(PathId path) const { return nodes_[path].truncated; }
  // Whether the frames that are left of a truncated path end `path` too.
  bool IsTailOf(PathId truncated, PathId path) const;

  struct Function {
    trace::FrameId frame;  // one of its frames; none: invented
    std::string invented;
    bool named = false;
    bool kernel = false;
    bool system = false;   // of the kernel or a system library
    bool waiting = false;  // a way to wait (wait_class_table.h)
  };
  const Function& at(FunctionId id) const { return functions_[id]; }
  // "module!function"; empty for kNoFunction.
  std::string Name(FunctionId id) const;
  // The end of its name, without module, parameters and template arguments:
  // "WriteThread::threadLoop", "Looper.loopOnce"; empty if it has no name.
  std::string ShortName(FunctionId id) const;

 private:
  struct Node {
    PathId caller = kRootPath;
    FunctionId function = kNoFunction;
    uint32_t depth = 0;
    bool kernel_only = false;
    bool truncated = false;
  };
  PathId Extend(PathId caller, FunctionId function);
  std::vector<FunctionId> InternFunctions();

  const trace::Dictionary& dictionary_;
  std::vector<Function> functions_;
  std::vector<Node> nodes_;
  std::vector<PathId> of_stack_;
  std::unordered_map<uint64_t, PathId> children_;
  std::unordered_map<std::string, PathId> invented_;
};

}  // namespace culprit::waitgraph
