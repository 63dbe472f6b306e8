// SPDX-License-Identifier: Apache-2.0
//
// Owners: the functions that a system call belongs to, from the stack it was
// made on. The innermost owner is the application's frame nearest to the call;
// the inclusive owners are that one and its callers in the application.
//
// Of the application are all frames but those of the kernel, the C library and
// its kin (SystemModules()), and start-up code; or those of the modules that
// were asked for. A frame without a name falls to its nearest named caller. If
// the program, the module of the outermost frame, has no names at all in a stack,
// its frames are functions by their offsets, "+0x12ab"; a stack without any named
// frame is owned by its offsets, as are all stacks when `unnamed` asks for it. Where a stack has
// frames of an interpreter's functions (module "[jit]": perf maps), the interpreter itself is not
// the application.
//
// Results are kept per stack, so a trace costs its distinct stacks. One thread
// at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "trace/dictionary.h"

namespace culprit::episode {

using FunctionId = Id<struct FunctionTag>;

struct FunctionName {
  std::string module;
  std::string build_id;  // empty: not known
  std::string function;  // "+0x12ab" if it has no name

  // "module!function".
  std::string Label() const;
  auto operator<=>(const FunctionName&) const = default;
};

// Every function of a question once.
class FunctionTable {
 public:
  FunctionId Intern(const FunctionName& name);
  const FunctionName& operator[](FunctionId id) const { return names_[id.value]; }
  size_t size() const { return names_.size(); }

 private:
  std::vector<FunctionName> names_;
  std::map<FunctionName, FunctionId> index_;
};

struct OwnerOptions {
  std::vector<std::string> modules;    // globs; empty: what is not of the system
  std::vector<std::string> functions;  // globs over function names; empty: all
  bool unnamed = false;                // frames without a name are functions of their own
};

struct Owners {
  FunctionId innermost;
  std::vector<FunctionId> inclusive;  // innermost first; each once
  bool made_code = false;             // they are an interpreter's functions
};

class StackOwners {
 public:
  StackOwners(const trace::Dictionary& dictionary, OwnerOptions options, FunctionTable& functions);
  // Nobody for none() and for stacks without a frame of the application.
  const Owners& Of(trace::StackId stack);

 private:
  struct FrameClass {
    bool known = false;
    bool application = false;
    bool made_code = false;
    bool named = false;
  };
  const FrameClass& ClassOf(trace::FrameId frame);
  FunctionId FunctionOf(trace::FrameId frame);
  std::optional<trace::ModuleId> NamelessProgram(const std::vector<trace::FrameId>& frames);
  Owners Find(trace::StackId stack);

  const trace::Dictionary& dictionary_;
  OwnerOptions options_;
  FunctionTable& functions_;
  std::vector<FrameClass> classes_;
  std::vector<FunctionId> frame_functions_;
  std::vector<Owners> owners_;
  std::vector<bool> known_;
  Owners nobody_;
};

// Globs of the modules that are never the application: C library, loader,
// threads, C++ and compiler run time, the vdso, calls into libraries ("[plt]").
const std::vector<std::string>& SystemModules();

}  // namespace culprit::episode
