// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/loaded_plan.h"

#include <algorithm>

#include "guard/runtime/known_modules.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

constexpr size_t kMaxPlanBytes = 64 << 20;

// Memory that is zero and stays. False: there is none.
template <class T>
bool MakeArray(size_t count, std::span<T>& array) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is one of them
  void* memory = MapMemory(std::max<size_t>(count, 1) * sizeof(T));
  array = {static_cast<T*>(memory), memory == nullptr ? 0 : count};
  return memory != nullptr;
}

uint64_t BiasedAddress(std::span<const KnownModule* const> modules, uint32_t module,
                       uint64_t offset) {
  const KnownModule* found = modules[module];
  return found == nullptr ? 0 : found->loaded.bias + offset;
}

void FindModules(LoadedPlan& plan, std::span<const KnownModule*> found) {
  plan.concerns_us = true;
  bool any = false;
  bool names_one = false;
  for (size_t i = 0; i < found.size(); ++i) {
    const wire::PlanModule& wanted = plan.view.modules()[i];
    bool foreign = false;
    found[i] = FindPlanModule(wanted, foreign);
    if (foreign) ++plan.foreign_modules;
    if ((wanted.flags & wire::PlanModule::kSkip) != 0) continue;
    names_one = true;
    any = any || found[i] != nullptr;
    if (found[i] == nullptr) ++plan.missing_modules;
  }
  plan.concerns_us = any || !names_one;
}

bool MakeGuards(LoadedPlan& plan, std::span<const KnownModule* const> modules) {
  std::span<ContextRule> rules;
  const PlanView& view = plan.view;
  if (!MakeArray(view.contexts().size(), rules)) return false;
  if (!MakeArray(view.functions().size(), plan.guards)) return false;
  for (size_t i = 0; i < rules.size(); ++i) {
    const wire::PlanContext& context = view.contexts()[i];
    ContextRule& rule = rules[i];
    rule.depth = context.depth;
    rule.flags = context.flags;
    if (view.header().hit_counting != 0) rule.flags |= ContextRule::kCounted;
    rule.bit = context.bit;
    if (context.return_module != wire::kAnyReturn) {
      const uint64_t address = BiasedAddress(modules, context.return_module, context.return_offset);
      rule.return_address = address != 0 ? address : UINT64_MAX;  // matches nothing
    }
  }
  for (size_t i = 0; i < plan.guards.size(); ++i) {
    const wire::PlanFunction& function = view.functions()[i];
    GuardRecord& guard = plan.guards[i];
    guard.rules = rules.data() + function.first_context;
    guard.count = function.contexts;
    guard.flags = function.flags;
    guard.entry = BiasedAddress(modules, function.module, function.offset);
    guard.function = static_cast<uint32_t>(i);
    if (!IsInline(guard)) continue;
    for (uint32_t k = 0; k < guard.count; ++k) {
      if (guard.rules[k].flags != 0) continue;
      plan.uncounted[guard.rules[k].bit / 64] |= uint64_t{1} << guard.rules[k].bit % 64;
    }
  }
  return true;
}

bool MakeSites(LoadedPlan& plan, std::span<const KnownModule* const> modules) {
  size_t size = 16;
  while (size < 4 * plan.view.sites().size()) size *= 2;
  std::span<SiteRule> table;
  if (!MakeArray(size, table)) return false;
  for (const wire::PlanSite& site : plan.view.sites()) {
    const uint64_t address = BiasedAddress(modules, site.module, site.return_offset);
    if (address == 0 || site.loop >= kMaxLoops || site.call >= 64) continue;
    const bool held = site.holder_module != wire::kAnyHolder;
    const uint64_t holder =
        held ? BiasedAddress(modules, site.holder_module, site.holder_offset) : 0;
    if (held && holder == 0) continue;  // nobody can be in that loop
    size_t at = (address >> 2) & (size - 1);
    bool shared = false;
    for (; table[at].return_address != 0; at = (at + 1) & (size - 1)) {
      if (table[at].return_address != address) continue;
      table[at].shared = true;
      shared = true;
    }
    table[at] = {address, site.call, site.loop, site.base_offset, site.flags, holder, shared};
    plan.calls |= uint64_t{1} << site.call;
    if ((site.flags & wire::PlanSite::kParks) != 0) plan.calls |= kParkingCalls;
  }
  plan.sites = table;
  return true;
}

bool MakeLimits(LoadedPlan& plan) {
  uint32_t count = 0;
  for (const wire::PlanSite& site : plan.view.sites()) count = std::max(count, site.loop + 1);
  std::span<LoopLimits> loops;
  if (!MakeArray(std::min(count, kMaxLoops), loops)) return false;
  const uint64_t least = std::max(plan.unknown_ticks, plan.floor_ticks);
  for (LoopLimits& limits : loops) {
    std::fill(std::begin(limits.smallest_ticks), std::end(limits.smallest_ticks), least);
  }
  for (const wire::PlanType& type : plan.view.types()) {
    if (type.loop >= loops.size()) continue;
    LoopLimits& limits = loops[type.loop];
    uint64_t& smallest = limits.smallest_ticks[type.kind];
    if (type.threshold_ns != 0) {
      smallest = std::min(smallest, std::max(TicksOfNs(type.threshold_ns), plan.floor_ticks));
    }
    limits.has_handlers =
        limits.has_handlers || type.kind != static_cast<uint32_t>(wire::UnitKind::kIteration);
  }
  for (const wire::PlanSite& site : plan.view.sites()) {
    if (site.loop >= loops.size()) continue;
    loops[site.loop].has_turns |= (site.flags & wire::PlanSite::kTurns) != 0;
  }
  plan.loops = loops;
  return true;
}

}  // namespace

LoadedPlan* LoadPlan(uint32_t number, uint32_t generation) {
  size_t bytes = 0;
  uint8_t* file = ReadWhole(FileName("plan.").Add(number).text(), kMaxPlanBytes, bytes);
  if (file == nullptr) return nullptr;
  auto* plan = static_cast<LoadedPlan*>(MapMemory(sizeof(LoadedPlan)));
  if (plan == nullptr || !plan->view.Parse(file, bytes)) {
    RawUnmap(file, bytes);
    return nullptr;
  }
  plan->number = number;
  plan->generation = generation;
  plan->mode = plan->view.mode();
  const wire::PlanHeader& header = plan->view.header();
  plan->floor_ticks = TicksOfNs(header.floor_ns);
  plan->unknown_ticks = header.unknown_ns == 0 ? UINT64_MAX / 4 : TicksOfNs(header.unknown_ns);
  plan->iteration_ticks = TicksOfNs(header.iteration_ns);
  plan->excessive_hits = header.max_hits_a_second == 0 ? UINT64_MAX : header.max_hits_a_second;
  std::span<const KnownModule*> modules;
  if (!MakeArray(plan->view.modules().size(), modules)) return nullptr;
  FindModules(*plan, modules);
  return MakeGuards(*plan, modules) && MakeSites(*plan, modules) && MakeLimits(*plan) ? plan
                                                                                      : nullptr;
}

}  // namespace culprit::guard::runtime
