// SPDX-License-Identifier: Apache-2.0
//
// The table behind wait classes: which functions a thread is in while it waits,
// and what that says. Rows are names of Linux kernel functions (4.x to 6.18,
// x86-64 and arm64), of system calls, of libraries' waiting functions, and of
// Windows. A name stands for itself without what compilers append to it
// (".constprop.0", ".part.0") and system calls without their wrappers
// ("__arm64_sys_ppoll", "SyS_poll", "__GI___poll" are the system call).
//
// Data and pure lookups; a lookup is one hash probe after a few tests of
// prefixes. Read by any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

// How much a frame says. Of several in a stack the strongest wins, of equal
// ones the one nearest to the leaf. So a page wait (kBroad) under a page fault
// (kExact) is a fault, and a lock (kExact) taken under a page fault is a lock.
enum class Strength : uint8_t {
  kNone = 0,     // says nothing
  kSyscall = 1,  // the system call or library function: anything may happen in it
  kBroad = 2,    // a way to wait that serves several purposes
  kExact = 3,
};

struct FrameMeaning {
  WaitClass wait_class = WaitClass::kOther;
  WaitPurpose purpose = WaitPurpose::kUnknown;
  Strength strength = Strength::kNone;
  bool ambiguous = false;  // the waker tells the class
  bool sends_too = false;  // one call sends a request and waits for its answer
  bool plumbing = false;   // how a thread waits, not why: schedule, libraries' wrappers
  WaitClass wakes = WaitClass::kOther;  // what a wait ended from here was for
  bool waker = false;                   // `wakes` holds
  bool releases = false;                // who waits for a lock gets it, and nothing else
};

// What kind of module a frame is of: short names ("read", "wait") mean the
// system's functions only where the system's modules have them.
enum class ModuleKind : uint8_t { kKernel, kLibrary, kProgram };
inline constexpr size_t kModuleKinds = 3;
ModuleKind KindOfModule(std::string_view module);

// `function` may be decorated; empty: not symbolized.
FrameMeaning MeaningOf(std::string_view function, ModuleKind module);

// The name of a system call that can block, for recordings without stacks;
// empty: it cannot, or `arch` is not known.
std::string_view BlockingSyscall(int64_t number, std::string_view arch);

}  // namespace culprit::waitgraph
