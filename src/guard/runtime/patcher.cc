// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/patcher.h"

#include <link.h>

#include <algorithm>
#include <cstring>

#include "guard/runtime/code_address.h"
#include "guard/runtime/cross_jumps.h"
#include "guard/runtime/other_threads.h"
#if defined(__aarch64__)
#include "guard/runtime/arm64_trampoline.h"
#else
#include "guard/runtime/x86_trampoline.h"
#endif

namespace culprit::guard::runtime {
namespace {

#if defined(__aarch64__)
namespace native = arm64;
#else
namespace native = x86;
#endif

constexpr uint32_t kHeadBytes = 48;  // a landing pad, five bytes, the longest instructions

// Runs `work` while the loader can neither load nor unload a module.
template <typename Work>
void WithModulesPinned(Work work) {
  dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void* argument) {
        (*static_cast<Work*>(argument))();
        return 1;
      },
      &work);
}

const Mapping* FindMapping(const MappedArray<Mapping>& mappings, uint64_t address) {
  const Mapping* next =
      std::upper_bound(mappings.begin(), mappings.end(), address,
                       [](uint64_t a, const Mapping& mapping) { return a < mapping.range.end; });
  return next != mappings.end() && next->range.Contains(address) ? next : nullptr;
}

// Code that somebody keeps writable is not ours to protect.
bool IsReadOnly(const Mapping* mapping) {
  return mapping != nullptr && mapping->readable && !mapping->writable;
}

// Writing code leaves one mapping in several, so a function may lie in more than one.
uint64_t ReadOnlyEnd(const MappedArray<Mapping>& mappings, const Mapping* first) {
  uint64_t end = first->range.end;
  for (const Mapping* next = first + 1; next != mappings.end(); ++next) {
    if (next->range.begin != end || !IsReadOnly(next)) break;
    end = next->range.end;
  }
  return end;
}

// As much of it as tells modules apart; 0: no module is there.
uint64_t BuildIdAt(const MappedArray<LoadedModule>& modules, uint64_t address) {
  uint64_t id = 0;
  for (const LoadedModule& module : modules) {
    if (module.range.Contains(address)) std::memcpy(&id, module.build_id, sizeof(id));
  }
  return id;
}

}  // namespace

const char* Name(PatchOutcome outcome) {
  switch (outcome) {
    case PatchOutcome::kPatched:
      return "patched";
    case PatchOutcome::kTooShort:
      return "too short";
    case PatchOutcome::kUnrelocatable:
      return "unrelocatable";
    case PatchOutcome::kJumpTarget:
      return "jump target inside";
    case PatchOutcome::kLoopHead:
      return "loop head";
    case PatchOutcome::kFar:
      return "far";
    case PatchOutcome::kPlt:
      return "linker stub";
    case PatchOutcome::kNotExecutable:
      return "not executable";
    case PatchOutcome::kReserved:
      return "reserved";
    case PatchOutcome::kSpecial:
      return "no entry";
    case PatchOutcome::kThreadsRunning:
      return "threads running";
    case PatchOutcome::kNotWritable:
      return "not writable";
    case PatchOutcome::kDetoured:
      return "detoured";
    case PatchOutcome::kStraddles:
      return "two cache lines";
    case PatchOutcome::kNoMemory:
      return "no memory";
  }
  return "?";
}

struct Patcher::Batch {
  // A patch and, in a batch of Install, which request it serves.
  struct Change {
    Patch patch;
    size_t request;
    size_t replaces;  // index in patches_, or its size
  };
  MappedArray<Mapping> mappings;
  MappedArray<LoadedModule> modules;
  MappedArray<Change> changes;
  OtherThreads threads;
  size_t done = 0;

  bool threads_running() const { return threads.state == OtherThreads::State::kRunning; }
};

size_t Patcher::Find(uint64_t entry) const {
  const Patch* at =
      std::lower_bound(patches_.begin(), patches_.end(), entry,
                       [](const Patch& patch, uint64_t e) { return patch.entry < e; });
  const bool found = at != patches_.end() && at->entry == entry;
  return found ? static_cast<size_t>(at - patches_.begin()) : patches_.size();
}

bool Patcher::IsPatched(uint64_t entry) const { return Find(entry) != patches_.size(); }

PatchOutcome Patcher::CheckPlace(const PatchRequest& request, const Batch& batch) const {
  const uint64_t entry = request.function.entry;
  if (request.function.flags != 0) return PatchOutcome::kSpecial;
  const Mapping* mapping = FindMapping(batch.mappings, entry);
  if (!IsReadOnly(mapping)) return PatchOutcome::kNotExecutable;
  for (const LoadedModule& module : batch.modules) {
    if (!module.range.Contains(entry)) continue;
    const bool reserved = module.role == ModuleRole::kLoader || module.role == ModuleRole::kVdso ||
                          module.role == ModuleRole::kOwn;
    if (reserved) return PatchOutcome::kReserved;
    // An emulator lists its mappings as not executable; the module knows.
    if (module.IsExecutable(entry)) return PatchOutcome::kPatched;
  }
  return mapping->executable ? PatchOutcome::kPatched : PatchOutcome::kNotExecutable;
}

// The function, or its head as it was before the jump that stands there; `head`
// has room for that.
EntrySite Patcher::SiteOf(const FunctionStart& function, const Batch& batch, size_t old,
                          std::span<uint8_t> head) const {
  const uint64_t entry = function.entry, size = function.size;
  const uint64_t available =
      ReadOnlyEnd(batch.mappings, FindMapping(batch.mappings, entry)) - entry;
  EntrySite site;
  site.entry = entry;
  site.jumps = jumps_.span();
  if (size != 0 && size < available) {
    const uint64_t padding = (16 - (entry + size) % 16) % 16;
    site.padding = {BytesAt(entry + size), std::min(available - size, padding)};
  }
  const bool replaces = old != patches_.size();
  if (!replaces && size != 0) {
    site.code = {BytesAt(entry), std::min(available, size)};
    return site;
  }
  const uint64_t bytes =
      std::min<uint64_t>({available, head.size(), size == 0 ? head.size() : size});
  std::memcpy(head.data(), BytesAt(entry), bytes);
  if (replaces) {
    const Patch& patch = patches_[old];
    std::memcpy(head.data() + (patch.address - entry), patch.original, patch.size);
  }
  site.code = head.first(bytes);
  site.checked = true;
  return site;
}

PatchOutcome Patcher::Prepare(const PatchRequest& request, Batch& batch) {
  const PatchOutcome place = CheckPlace(request, batch);
  if (place != PatchOutcome::kPatched) return place;
  const uint64_t entry = request.function.entry;
  const size_t old = Find(entry);
  const bool replaces = old != patches_.size();
  if (replaces && patches_[old].kind == HookKind::kDetour) return PatchOutcome::kDetoured;

  uint8_t head[kHeadBytes] = {};
  const EntrySite site = SiteOf(request.function, batch, old, head);
  uint8_t* memory = memory_.Take(entry, kMaxTrampolineBytes);
  if (memory == nullptr) return PatchOutcome::kFar;
  CodeBuffer code({memory, kMaxTrampolineBytes}, reinterpret_cast<uint64_t>(memory));
  const EntryPatch made = native::WriteTrampoline(site, request.hook, options_.layout, code);
  const uint64_t address = entry + made.offset;
  const bool whole = kHooksComeAtAnyTime || made.one_instruction || replaces;
  PatchOutcome outcome = made.outcome;
  if (outcome == PatchOutcome::kPatched && !whole &&
      (batch.threads_running() || batch.threads.AnyWithin(address, address + made.size))) {
    outcome = PatchOutcome::kThreadsRunning;
  }
  const bool refused = outcome != PatchOutcome::kPatched;
  memory_.Shrink(refused ? kMaxTrampolineBytes : kMaxTrampolineBytes - code.size());
  if (refused) return outcome;

  Batch::Change change{{entry, address, made.size, request.hook.kind, {}, {}}, 0, old};
  std::memcpy(change.patch.jump, made.jump, made.size);
  std::memcpy(change.patch.original, site.code.data() + made.offset, made.size);
  if (!batch.changes.Append(change)) return PatchOutcome::kNoMemory;
  if (request.hook.original != nullptr) *request.hook.original = made.original;
  return PatchOutcome::kPatched;
}

// Jumps, or the original bytes. What was written before the system refused is
// put back, by the way that worked for it.
bool Patcher::WriteBatch(Batch& batch, bool jumps) {
  MappedArray<CodePatch> writes, undo;
  for (const Batch::Change& change : batch.changes) {
    const Patch& patch = change.patch;
    const uint8_t* before =
        change.replaces != patches_.size() ? patches_[change.replaces].jump : patch.original;
    if (!writes.Append({patch.address, jumps ? patch.jump : patch.original, patch.size}) ||
        !undo.Append({patch.address, before, patch.size})) {
      return false;
    }
  }
  const bool whole = batch.threads_running();
  const size_t written = writer_.Write(writes.span(), options_.write_path, whole);
  if (written < writes.size()) {
    writer_.Write(undo.span().first(written), options_.write_path, whole);
  }
  SynchronizeCores();
  return written == writes.size();
}

// The first request for an entry wins (names of one function are often aliases).
void Patcher::DropRepeated(std::span<PatchRequest> requests, Batch& batch) {
  size_t kept = 0;
  for (size_t i = 0; i < batch.changes.size(); ++i) {
    const Batch::Change change = batch.changes[i];
    if (kept > 0 && batch.changes[kept - 1].patch.address == change.patch.address) {
      requests[change.request].outcome = PatchOutcome::kDetoured;
    } else {
      batch.changes[kept++] = change;
    }
  }
  batch.changes.Truncate(kept);
}

// Of hooks that replace others, and of entries that were refused before, it is known already:
// programs that load one library after the other ask for all of them each time.
bool Patcher::LookForJumps(std::span<const PatchRequest> requests, const Batch& batch) {
  const auto by_entry = [](const auto& a, const auto& b) { return a.entry < b.entry; };
  MappedArray<FunctionStart> wanted;
  const size_t known = asked_.size();
  if (!wanted.Reserve(requests.size()) || !asked_.Reserve(known + requests.size())) return false;
  for (const PatchRequest& request : requests) {
    const uint64_t entry = request.function.entry;
    if (IsPatched(entry)) continue;
    const Asked asked = {entry, BuildIdAt(batch.modules, entry)};
    const Asked* before = std::lower_bound(asked_.begin(), asked_.begin() + known, asked, by_entry);
    bool is_known = false;
    for (; before != asked_.begin() + known && before->entry == entry; ++before) {
      is_known |= before->build_id == asked.build_id;
    }
    if (is_known) continue;
    wanted.Append(request.function);  // reserved above, as this is
    asked_.Append(asked);
  }
  if (wanted.empty()) return true;
  std::sort(asked_.begin(), asked_.end(), by_entry);
  std::sort(wanted.begin(), wanted.end(), by_entry);
  MappedArray<CodePatch> originals;
  bool good = true;
  for (const Patch& patch : patches_) {
    good = good && originals.Append({patch.address, patch.original, patch.size});
  }
  if (good && FindCrossJumps(batch.modules.span(), wanted.span(), originals.span(), jumps_)) {
    return true;
  }
  asked_.clear();
  return false;
}

void Patcher::InstallPinned(std::span<PatchRequest> requests, bool alone, Batch& batch) {
  batch.modules = LoadedModules();
  if (!kHooksComeAtAnyTime) {
    if (alone) {
      batch.threads.state = OtherThreads::State::kNone;
    } else {
      batch.threads = LookAtOtherThreads();
    }
  }
  const bool readable = ReadMappings(batch.mappings) &&
                        patches_.Reserve(patches_.size() + requests.size()) &&
                        (kHooksComeAtAnyTime || LookForJumps(requests, batch));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].outcome = readable ? Prepare(requests[i], batch) : PatchOutcome::kNoMemory;
    if (requests[i].outcome == PatchOutcome::kPatched) batch.changes.back().request = i;
  }
  std::sort(batch.changes.begin(), batch.changes.end(),
            [](const Batch::Change& a, const Batch::Change& b) {
              return a.patch.address != b.patch.address ? a.patch.address < b.patch.address
                                                        : a.request < b.request;
            });
  DropRepeated(requests, batch);
  const bool sealed = memory_.Seal();
  // Before any thread can jump to a trampoline, every core must see it.
  SynchronizeCores();
  if (!sealed || !WriteBatch(batch, true)) {
    for (const Batch::Change& change : batch.changes) {
      requests[change.request].outcome = PatchOutcome::kNotWritable;
    }
    return;
  }
  const size_t before = patches_.size();
  for (const Batch::Change& change : batch.changes) {
    if (change.replaces < before) {
      patches_[change.replaces] = change.patch;
    } else {
      patches_.Append(change.patch);  // reserved above
    }
  }
  std::sort(patches_.begin(), patches_.end(),
            [](const Patch& a, const Patch& b) { return a.entry < b.entry; });
  batch.done = batch.changes.size();
}

size_t Patcher::Install(std::span<PatchRequest> requests, bool alone) {
  if (requests.empty()) return 0;
  Batch batch;
  WithModulesPinned([&] { InstallPinned(requests, alone, batch); });
  return batch.done;
}

// A module may have been unloaded, and another mapped in its place: only what
// still is our jump is restored.
void Patcher::RemovePinned(std::span<const uint64_t> entries, bool all, Batch& batch) {
  if (!ReadMappings(batch.mappings)) return;
  if (!kHooksComeAtAnyTime) batch.threads = LookAtOtherThreads();
  const size_t before = patches_.size();
  MappedArray<uint8_t> gone;
  for (size_t i = 0; i < before; ++i) {
    if (!gone.Append(all ? 1 : 0)) return;
  }
  for (const uint64_t entry : entries) {
    const size_t at = Find(entry);
    if (at != before) gone[at] = 1;
  }
  for (size_t i = 0; i < before; ++i) {
    const Patch& patch = patches_[i];
    if (gone[i] == 0 || !IsReadOnly(FindMapping(batch.mappings, patch.address)) ||
        std::memcmp(BytesAt(patch.address), patch.jump, patch.size) != 0) {
      continue;
    }
    if (!batch.changes.Append({patch, 0, i})) return;
  }
  if (!WriteBatch(batch, false)) return;
  size_t kept = 0;
  for (size_t i = 0; i < before; ++i) {
    if (gone[i] == 0) patches_[kept++] = patches_[i];
  }
  patches_.Truncate(kept);
  batch.done = batch.changes.size();
}

size_t Patcher::Remove(std::span<const uint64_t> entries) {
  Batch batch;
  WithModulesPinned([&] { RemovePinned(entries, false, batch); });
  return batch.done;
}

size_t Patcher::RemoveAll() {
  Batch batch;
  WithModulesPinned([&] { RemovePinned({}, true, batch); });
  return batch.done;
}

}  // namespace culprit::guard::runtime
