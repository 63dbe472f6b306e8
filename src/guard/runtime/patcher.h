// SPDX-License-Identifier: Apache-2.0
//
// Puts hooks at function entries of the running process and takes them away.
//
// Invariants: an entry is either as the linker left it or jumps to a complete
// trampoline, for every thread at every moment; RemoveAll restores every byte.
// Pages are never left writable and executable: code is written through
// /proc/self/mem where that works (protections never change), else by one
// mprotect per page run and back. Trampolines are written before their pages
// become executable and are never freed, because a preempted thread may stand in
// one: a batch costs whole pages near the module.
//
// arm64: one aligned 4-byte store of a branch, so any entry can be changed while
// threads run. x86-64: a 5-byte jump. Where it replaces a single instruction of
// at least 5 bytes within a cache line, or another hook's jump, one store does it
// while threads run; where it covers several instructions, a thread might be
// preempted between them, so such an entry is patched only in a process with a
// single thread or with all others stopped by a tracer with their program
// counters outside (kThreadsRunning otherwise; replacing or removing a hook is
// always possible). A breakpoint and a SIGTRAP handler are not used: a thread
// that has SIGTRAP blocked dies of it.
//
// Not thread-safe: one thread at a time. No malloc, so that any thread may call
// it at a wait call. Install costs about 5 us an entry, replacing and removing 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "guard/runtime/code_writer.h"
#include "guard/runtime/function_starts.h"
#include "guard/runtime/hook.h"
#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/mapped_array.h"
#include "guard/runtime/near_memory.h"
#include "guard/runtime/trampoline.h"

namespace culprit::guard::runtime {

// Whether an entry that has no hook can get one while other threads run.
#if defined(__aarch64__)
inline constexpr bool kHooksComeAtAnyTime = true;
#else
inline constexpr bool kHooksComeAtAnyTime = false;
#endif

struct PatchRequest {
  FunctionStart function;  // size 0: unknown, then nothing is known of its jumps
  Hook hook;
  PatchOutcome outcome = PatchOutcome::kPatched;  // set by Install
};

struct PatcherOptions {
  SlotLayout layout;  // for kGuard and kOneContext
  WritePath write_path = WritePath::kBest;
};

class Patcher {
 public:
  explicit Patcher(const PatcherOptions& options) : options_(options) {}
  Patcher(const Patcher&) = delete;
  Patcher& operator=(const Patcher&) = delete;

  // One batch. An entry that has a hook gets the new one (not over a detour).
  // Returns how many were patched; every request has its outcome. Either the
  // whole batch is written or (kNotWritable) nothing of it. `alone`: the caller
  // knows that no other thread executes the code to be patched, so on x86-64 there
  // is no need to look at them (before main; under an emulator with threads of
  // its own).
  size_t Install(std::span<PatchRequest> requests, bool alone = false);

  // Entries without a hook are passed over. Returns how many were restored.
  size_t Remove(std::span<const uint64_t> entries);
  size_t RemoveAll();

  size_t patched() const { return patches_.size(); }
  bool IsPatched(uint64_t entry) const;
  uint64_t trampoline_bytes() const { return memory_.used_bytes(); }
  const NearMemory& memory() const { return memory_; }

 private:
  struct Patch {
    uint64_t entry;
    uint64_t address;  // of the changed bytes: the entry, or behind a landing pad
    uint32_t size;
    HookKind kind;
    uint8_t original[8];
    uint8_t jump[8];
  };
  struct Batch;

  bool LookForJumps(std::span<const PatchRequest> requests, const Batch& batch);
  void InstallPinned(std::span<PatchRequest> requests, bool alone, Batch& batch);
  void RemovePinned(std::span<const uint64_t> entries, bool all, Batch& batch);
  static void DropRepeated(std::span<PatchRequest> requests, Batch& batch);
  PatchOutcome Prepare(const PatchRequest& request, Batch& batch);
  PatchOutcome CheckPlace(const PatchRequest& request, const Batch& batch) const;
  EntrySite SiteOf(const FunctionStart& function, const Batch& batch, size_t old,
                   std::span<uint8_t> head) const;
  bool WriteBatch(Batch& batch, bool jumps);
  size_t Find(uint64_t entry) const;  // patched(): none

  PatcherOptions options_;
  NearMemory memory_;
  CodeWriter writer_;
  MappedArray<Patch> patches_;  // by entry
  // Entries that were asked for once, of which module, and the jumps into them; ascending.
  struct Asked {
    uint64_t entry;
    uint64_t build_id;
  };
  MappedArray<Asked> asked_;
  MappedArray<uint64_t> jumps_;
};

}  // namespace culprit::guard::runtime
