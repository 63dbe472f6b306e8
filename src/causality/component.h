// SPDX-License-Identifier: Apache-2.0
//
// Components (003 §3; SPEC §2, §7): which events of a trace belong to what is
// being judged. The chosen set is given by globs over frames, or over the names
// of processes or cgroups; it is component 0. By module, process or cgroup each
// part of the set is a component of its own besides, all of them at once: an
// event belongs to every module of the set that its stack has a frame of.
//
// The signature of an event is the leaf-most frame of its stack that belongs to
// the set (what 003 calls the topmost). By process or cgroup every named frame
// of the chosen threads belongs to the set. Where no globs tell, frames of the
// kernel and the C and C++ libraries are signatures only of stacks without others.
//
// ComponentTable answers for one trace. Frames are looked at once, O(frames × globs);
// a stack when it is first asked for, and its callers with it, since most stacks of a
// trace stand in no instance's graph. One thread at a time; the trace and the sets
// must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "causality/set_table.h"
#include "trace/trace.h"

namespace culprit::causality {

enum class By : uint8_t { kSet, kModule, kProcess, kCgroup };
std::string_view Name(By by);

struct ComponentOptions {
  By by = By::kModule;
  // kSet, kModule: over "module!function", or without "!" over the function and
  // over the module alone. kProcess, kCgroup: over their names. Empty: every frame
  // that has a name, every process.
  std::vector<std::string> globs;
  // Over frames: those that never belong, although `globs` or nothing chose them.
  std::vector<std::string> except;
};

// "*.sys, *.drv"; "every named frame" and the like where no glob was given.
std::string SetName(const ComponentOptions& options);

using ComponentId = uint32_t;  // in order of first use; 0 is the whole set
inline constexpr ComponentId kWholeSet = 0;
using SignatureId = uint32_t;
inline constexpr SignatureId kNoSignature = UINT32_MAX;

class ComponentTable {
 public:
  // Components of the events' stacks and threads go to `sets`.
  ComponentTable(const trace::Trace& trace, const ComponentOptions& options, SetTable& sets);

  // The components that an event with this stack, of this thread, belongs to.
  SetId ComponentsOf(trace::StackId stack, trace::ThreadId thread);
  // A FrameId of the trace as a number; kNoSignature if it does not belong.
  SignatureId SignatureOf(trace::StackId stack, trace::ThreadId thread);
  // By ComponentId.
  const std::vector<std::string>& names() const { return names_; }
  // Modules of all frames, or all processes or cgroups, that the globs passed by:
  // what there is instead, for messages. Sorted.
  const std::vector<std::string>& not_chosen() const { return not_chosen_; }

 private:
  void ByFrames(const ComponentOptions& options);
  void ByThreads(const ComponentOptions& options);
  void Choose(std::vector<bool> chosen, const ComponentOptions& options);
  void FindSetsOfFrames(By by);

  struct StackRow {
    SetId set = kUnknownSet;
    SignatureId signature = kNoSignature;
  };
  struct FrameRow {
    SetId set = kEmptySet;
    bool chosen = false;  // belongs to the set
    bool plain = false;   // no signature where the stack has another
  };
  static constexpr SetId kUnknownSet = UINT32_MAX;
  StackRow RowOf(trace::StackId stack);
  StackRow FindRow(uint32_t stack);

  const trace::Dictionary& dictionary_;
  SetTable& sets_;
  const bool by_thread_;
  std::vector<std::string> names_;
  std::vector<std::string> not_chosen_;
  std::vector<FrameRow> frames_;    // by FrameId; sets are empty where threads tell
  std::vector<SetId> thread_sets_;  // by ThreadId; empty: frames tell
  std::vector<StackRow> rows_;      // by StackId
  // Room for the stacks on the way to one that is known.
  std::unique_ptr<uint32_t[]> unknown_;
};

}  // namespace culprit::causality
