// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/entry_hooks.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "guard/runtime/guard_hit.h"
#include "guard/runtime/known_modules.h"
#include "guard/runtime/patcher.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/training_entry.h"
#include "guard/runtime/training_log.h"

namespace culprit::guard::runtime {
namespace {

constexpr size_t kMaxFunctionIds = size_t{1} << 20;  // as many as a log word can say

struct TrainedFunction {
  FunctionStart start;
  uint32_t module;
};

struct Hooks {
  explicit Hooks(const PatcherOptions& options) : patcher(options) {}
  Patcher patcher;
  MappedArray<TrainedFunction> trained;  // by id
  MappedArray<uint64_t> guarded;         // entries, ascending
  MappedArray<uint64_t> detoured;        // the same
  size_t training_from = 0;              // ids from here on have no training hook yet
  HookCounts training_counts;            // of those that do
  uint32_t trained_modules = 0;
  uint32_t told_functions = 0;  // that a file of this or a parent's process has
  uint32_t told_by = 0;         // the process
};

// Never destroyed: the program's threads may outlive its exit handlers.
alignas(Hooks) uint8_t g_hooks_memory[sizeof(Hooks)];
Hooks& TheHooks() { return *std::launder(reinterpret_cast<Hooks*>(g_hooks_memory)); }

template <class T>
uint64_t AddressOf(T* function) {
  return reinterpret_cast<uint64_t>(reinterpret_cast<void*>(function));
}

// Finds function starts by address, one module's table at a time.
class StartFinder {
 public:
  const FunctionStart* Find(uint64_t entry) {
    const KnownModule* module = ModuleAt(entry);
    if (module == nullptr) return nullptr;
    if (module != module_) {
      module_ = module;
      if (ReadFunctionStarts(module->loaded, starts_) != StartsState::kRead) starts_.clear();
    }
    const FunctionStart* found =
        std::lower_bound(starts_.begin(), starts_.end(), entry,
                         [](const FunctionStart& start, uint64_t at) { return start.entry < at; });
    return found != starts_.end() && found->entry == entry ? found : nullptr;
  }

 private:
  const KnownModule* module_ = nullptr;
  MappedArray<FunctionStart> starts_;
};

bool Contains(const MappedArray<uint64_t>& sorted, uint64_t entry) {
  return std::binary_search(sorted.begin(), sorted.end(), entry);
}

void ForgetTraining(Hooks& hooks) {
  hooks.training_from = 0;
  hooks.training_counts = {};
}

// Removes the hooks of the training and of guards, but for those in `kept`. A
// detour may stand at an entry that training would have hooked: it stays.
void RemoveEntryHooks(Hooks& hooks, const MappedArray<uint64_t>& kept) {
  MappedArray<uint64_t> entries;
  const auto add = [&](uint64_t entry) {
    if (!Contains(kept, entry) && !Contains(hooks.detoured, entry)) entries.Append(entry);
  };
  for (const TrainedFunction& function : hooks.trained) add(function.start.entry);
  for (const uint64_t entry : hooks.guarded) add(entry);
  hooks.patcher.Remove(entries.span());
  ForgetTraining(hooks);
}

// Hooks that do nothing in the place of the training's. False: no room for them.
bool QuietTrainingHooks(Hooks& hooks) {
  if (hooks.training_from == 0) return true;
  MappedArray<PatchRequest> requests;
  for (const TrainedFunction& function : hooks.trained) {
    const uint64_t entry = function.start.entry;
    if (!hooks.patcher.IsPatched(entry) || Contains(hooks.detoured, entry)) continue;
    PatchRequest request;
    request.function = function.start;
    if (!requests.Append(request)) return false;
  }
  ForgetTraining(hooks);
  return hooks.patcher.Install(requests.span()) == requests.size();
}

HookCounts CountOutcomes(std::span<const PatchRequest> requests) {
  HookCounts counts;
  for (const PatchRequest& request : requests) {
    if (request.outcome == PatchOutcome::kPatched) {
      ++counts.patched;
    } else {
      ++counts.refused;
    }
    if (request.outcome == PatchOutcome::kNotWritable) counts.writable = false;
  }
  return counts;
}

bool IsSkipped(const LoadedPlan& plan, const LoadedModule& module) {
  const char* slash = strrchr(module.path, '/');
  const char* name = slash == nullptr ? module.path : slash + 1;
  for (const wire::PlanModule& listed : plan.view.modules()) {
    if ((listed.flags & wire::PlanModule::kSkip) != 0 && strcmp(listed.file_name, name) == 0) {
      return true;
    }
  }
  return module.role == ModuleRole::kOwn || module.role == ModuleRole::kLoader ||
         module.role == ModuleRole::kVdso;
}

// Gives ids to the functions of the modules that have none yet.
void ListFunctions(const LoadedPlan& plan, Hooks& hooks) {
  MappedArray<FunctionStart> starts;
  const uint32_t modules = KnownModules();
  for (; hooks.trained_modules < modules; ++hooks.trained_modules) {
    const KnownModule& module = ModuleByIndex(hooks.trained_modules);
    if (!module.live.load() || IsSkipped(plan, module.loaded)) continue;
    if (ReadFunctionStarts(module.loaded, starts) != StartsState::kRead) continue;
    for (const FunctionStart& start : starts) {
      if (start.flags != 0 || hooks.trained.size() >= kMaxFunctionIds) continue;
      if (!hooks.trained.Append({start, hooks.trained_modules})) return;
    }
  }
}

PatchRequest TrainingRequest(size_t id, const TrainedFunction& function, bool times) {
  PatchRequest request;
  request.function = function.start;
  request.hook.kind = HookKind::kTraining;
  request.hook.function = times ? AddressOf(&TimedTrainingEntry) : AddressOf(&TrainingEntry);
  request.hook.argument = LogWord(wire::LogKind::kEnter, id, 0);
  return request;
}

// `contexts` has room for them, and stays where it is.
void AddInlineContexts(const GuardRecord& guard, MappedArray<InlineContext>& contexts, Hook& hook) {
  if (!IsInline(guard)) return;
  hook.contexts = contexts.end();
  hook.context_count = guard.count;
  for (uint32_t i = 0; i < guard.count; ++i) {
    const ContextRule& rule = guard.rules[i];
    contexts.Append(
        {rule.depth, rule.bit, rule.return_address, rule.flags == 0 ? 0 : WordOfCut(guard, i)});
  }
}

}  // namespace

void MakePatcher() {
  PatcherOptions options;
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  options.layout.slot_offset =
      static_cast<int64_t>(reinterpret_cast<uint64_t>(&t_words.unit) - thread);
  options.layout.thread_offset =
      static_cast<int64_t>(reinterpret_cast<uint64_t>(&t_words.state) - thread);
  options.layout.base_sp_offset = offsetof(wire::UnitSlot, base_sp);
  options.layout.contexts_offset = offsetof(wire::UnitSlot, contexts);
  options.layout.hits_offset = offsetof(wire::UnitSlot, hits);
  new (g_hooks_memory) Hooks(options);
}

uint32_t InstallDetours(std::span<DetourRequest> detours) {
  StartFinder finder;
  MappedArray<PatchRequest> requests;
  for (const DetourRequest& detour : detours) {
    const FunctionStart* start = finder.Find(detour.entry);
    PatchRequest request;
    if (start != nullptr) request.function = *start;
    request.function.entry = detour.entry;
    request.function.flags = 0;
    request.hook.kind = HookKind::kDetour;
    request.hook.function = detour.replacement;
    request.hook.original = detour.original;
    if (!requests.Append(request)) return 0;
  }
  Hooks& hooks = TheHooks();
  hooks.patcher.Install(requests.span());
  uint32_t done = 0;
  for (size_t i = 0; i < detours.size(); ++i) {
    detours[i].done = requests[i].outcome == PatchOutcome::kPatched;
    if (detours[i].done && hooks.detoured.Append(detours[i].entry)) ++done;
  }
  std::sort(hooks.detoured.begin(), hooks.detoured.end());
  return done;
}

void RemoveDetours(std::span<const uint64_t> entries) {
  Hooks& hooks = TheHooks();
  hooks.patcher.Remove(entries);
  MappedArray<uint64_t> left;
  for (const uint64_t entry : hooks.detoured) {
    if (std::find(entries.begin(), entries.end(), entry) == entries.end()) left.Append(entry);
  }
  hooks.detoured = std::move(left);
}

HookCounts InstallTraining(const LoadedPlan& plan) {
  Hooks& hooks = TheHooks();
  ListFunctions(plan, hooks);
  const bool times = plan.view.header().log_times != 0;
  MappedArray<PatchRequest> requests;
  if (!requests.Reserve(hooks.trained.size() - hooks.training_from)) return {};
  for (size_t id = hooks.training_from; id < hooks.trained.size(); ++id) {
    const TrainedFunction& function = hooks.trained[id];
    if (!ModuleByIndex(function.module).live.load()) continue;
    if (!requests.Append(TrainingRequest(id, function, times))) break;
  }
  hooks.patcher.Install(requests.span());
  hooks.training_from = hooks.trained.size();
  const HookCounts counts = CountOutcomes(requests.span());
  hooks.training_counts.patched += counts.patched;
  hooks.training_counts.refused += counts.refused;
  hooks.training_counts.writable = counts.writable;
  return hooks.training_counts;
}

HookCounts InstallGuards(const LoadedPlan& plan) {
  Hooks& hooks = TheHooks();
  StartFinder finder;
  MappedArray<PatchRequest> requests;
  MappedArray<InlineContext> contexts;
  if (!contexts.Reserve(plan.guards.size() * kMaxInlineContexts)) return {};
  MappedArray<uint64_t> entries;
  uint32_t unknown = 0;
  for (const GuardRecord& guard : plan.guards) {
    const FunctionStart* start = guard.entry == 0 ? nullptr : finder.Find(guard.entry);
    if (start == nullptr) {
      ++unknown;
      continue;
    }
    PatchRequest request;
    request.function = *start;
    request.hook.kind = HookKind::kGuard;
    request.hook.function = AddressOf(&GuardHit);
    request.hook.argument = reinterpret_cast<uint64_t>(&guard);
    request.hook.cut = AddressOf(&CutHit);
    request.hook.outside = MayTurn(guard);
    AddInlineContexts(guard, contexts, request.hook);
    if (!requests.Append(request) || !entries.Append(guard.entry)) return {};
  }
  hooks.patcher.Install(requests.span());
  std::sort(entries.begin(), entries.end());
  RemoveEntryHooks(hooks, entries);
  hooks.guarded = std::move(entries);
  HookCounts counts = CountOutcomes(requests.span());
  counts.refused += unknown;
  return counts;
}

void RemoveGuards(std::span<const uint64_t> entries) { TheHooks().patcher.Remove(entries); }

void EndEntryHooks() {
  Hooks& hooks = TheHooks();
  hooks.patcher.Remove(hooks.guarded.span());
  hooks.guarded.clear();
  if (kHooksComeAtAnyTime || !QuietTrainingHooks(hooks)) RemoveEntryHooks(hooks, {});
}

void RemoveEverything() {
  Hooks& hooks = TheHooks();
  hooks.patcher.RemoveAll();
  hooks.detoured.clear();
  hooks.guarded.clear();
  ForgetTraining(hooks);
}

void FillIslands(std::atomic<uint64_t> (&begins)[wire::kIslands]) {
  const NearMemory& memory = TheHooks().patcher.memory();
  for (size_t i = 0; i < std::min<size_t>(memory.islands(), wire::kIslands); ++i) {
    begins[i].store(memory.IslandBegin(i));
  }
}

bool WriteFunctions() {
  Hooks& hooks = TheHooks();
  const auto pid = static_cast<uint32_t>(RawGetPid());
  const bool inherits = hooks.told_by != 0 && hooks.told_by != pid;
  HeldFile file;
  if (!OpenSessionFileAnew(FileName("functions.").Add(pid), file)) return false;
  wire::FunctionsHeader header = {wire::Magic("CGFUNC01"), wire::kWireVersion, 0, 0, 0};
  if (inherits) {
    header.inherits_pid = hooks.told_by;
    header.first_id = hooks.told_functions;
  }
  MappedArray<wire::FunctionRecord> records;
  for (size_t id = header.first_id; id < hooks.trained.size(); ++id) {
    const TrainedFunction& function = hooks.trained[id];
    const uint64_t bias = ModuleByIndex(function.module).loaded.bias;
    records.Append({function.start.entry - bias, function.module, function.start.size});
  }
  const size_t bytes = records.size() * sizeof(wire::FunctionRecord);
  const bool written =
      RawWrite(file.fd(), &header, sizeof(header)) == static_cast<long>(sizeof(header)) &&
      (bytes == 0 || RawWrite(file.fd(), records.begin(), bytes) == static_cast<long>(bytes));
  file.Close();
  if (written && !inherits) {
    hooks.told_by = pid;
    hooks.told_functions = static_cast<uint32_t>(hooks.trained.size());
  }
  return written;
}

}  // namespace culprit::guard::runtime
