// SPDX-License-Identifier: Apache-2.0
#include "guard/plan_builder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "base/text.h"
#include "guard/context_bits.h"
#include "guard/type_judgement.h"

namespace culprit::guard {
namespace {

uint64_t Fnv1a(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return hash;
}

uint8_t HexDigit(char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); }

wire::PlanModule ModuleRow(std::string_view build_id, std::string_view path, uint32_t flags) {
  wire::PlanModule row = {};
  row.flags = flags;
  row.build_id_size =
      static_cast<uint32_t>(std::min<size_t>(build_id.size() / 2, wire::kMaxBuildId));
  for (uint32_t i = 0; i < row.build_id_size; ++i) {
    row.build_id[i] =
        static_cast<uint8_t>(HexDigit(build_id[2 * i]) << 4 | HexDigit(build_id[2 * i + 1]));
  }
  const std::string_view name = BaseName(path);
  std::memcpy(row.file_name, name.data(), std::min(name.size(), sizeof(row.file_name) - 1));
  return row;
}

struct PlanTables {
  std::vector<wire::PlanModule> modules;
  std::vector<wire::PlanFunction> functions;
  std::vector<wire::PlanContext> contexts;
  std::vector<wire::PlanSite> sites;
  std::vector<wire::PlanType> types;
};

template <class Row>
void Append(const std::vector<Row>& rows, std::string& bytes) {
  static_assert(sizeof(Row) % 8 == 0);
  bytes.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row));
}

std::string Assemble(wire::PlanHeader header, const PlanTables& tables) {
  std::string body;
  Append(tables.modules, body);
  Append(tables.functions, body);
  Append(tables.contexts, body);
  Append(tables.sites, body);
  Append(tables.types, body);
  header.magic = wire::Magic("CGPLAN01");
  header.version = wire::kWireVersion;
  header.bytes = sizeof(header) + body.size();
  header.checksum = Fnv1a(body);
  header.modules = static_cast<uint32_t>(tables.modules.size());
  header.functions = static_cast<uint32_t>(tables.functions.size());
  header.contexts = static_cast<uint32_t>(tables.contexts.size());
  header.sites = static_cast<uint32_t>(tables.sites.size());
  header.types = static_cast<uint32_t>(tables.types.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + body;
}

// Fewer say nothing about CPU time, which is counted in ticks.
constexpr uint64_t kEnoughUnits = 1000;

// What a unit takes of a CPU: of all the program's time while it was calibrated. If
// that is not known, the mean time of a unit: as calibrated, else of training less
// what logging cost.
uint64_t MeanUnitNs(const Profile& profile, bool& measured) {
  const TrainingFacts& training = profile.training;
  measured = true;
  if (training.measured_units >= kEnoughUnits && training.measured_cpu_ns > 0) {
    return std::max<uint64_t>(training.measured_cpu_ns / training.measured_units, 1);
  }
  WideSum sum = profile.unknown.sum();
  uint64_t count = profile.unknown.count();
  for (const UnitType& type : profile.types) {
    sum += type.stats.sum();
    count += type.stats.count();
  }
  measured = count > 0;
  if (measured) return static_cast<uint64_t>(sum / count);
  if (training.units == 0) return 0;
  const uint64_t logging_ns = training.unit_entries * kTrainEntryCostPs / 1000;
  // Logging never took more than nine tenths.
  const uint64_t least_ns = training.unit_train_ns / 10;
  const uint64_t own_ns =
      training.unit_train_ns > logging_ns ? training.unit_train_ns - logging_ns : 0;
  return std::max(own_ns, least_ns) / training.units;
}

uint64_t CostPpm(uint64_t per_mega_unit, uint64_t unit_ns, uint64_t cost_ps) {
  if (unit_ns == 0) return 0;
  return static_cast<uint64_t>(WideSum{per_mega_unit} * cost_ps / 1000 / unit_ns);
}

// The most hits that cost, in whole ppm, no more than the budget.
uint64_t MaxHits(uint64_t budget_ppm, uint64_t unit_ns, uint64_t cost_ps) {
  if (unit_ns == 0 || cost_ps == 0) return UINT64_MAX;
  const WideSum hits = ((WideSum{budget_ppm} + 1) * 1000 * unit_ns - 1) / cost_ps;
  return hits > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(hits);
}

uint64_t HitsOfCuts(const Profile& profile) {
  uint64_t hits = 0;
  for (const Guard& guard : profile.guards) {
    if (guard.boundary) hits += guard.hits_per_mega_unit;
  }
  return hits;
}

std::vector<Guard> Affordable(const Profile& profile, const PlanOptions& options,
                              PlanFacts& facts) {
  facts.unit_ns = MeanUnitNs(profile, facts.unit_ns_measured);
  const uint64_t hit_ps = options.hit_cost_ps.value_or(kHitCost.Of(facts.unit_ns));
  const uint64_t unit_ps = options.unit_cost_ps.value_or(kUnitCost.Of(facts.unit_ns));
  // Units are not to be had without what cuts them.
  const uint64_t cuts = HitsOfCuts(profile);
  facts.unit_cost_ppm =
      CostPpm(1'000'000, facts.unit_ns, unit_ps) + CostPpm(cuts, facts.unit_ns, hit_ps);
  // Without any guard a unit has no type: they always get half of the budget.
  const uint64_t rest_ppm = options.budget_ppm - std::min(options.budget_ppm, facts.unit_cost_ppm);
  const uint64_t budget_ppm = std::max(rest_ppm, options.budget_ppm / 2);
  const uint64_t most = MaxHits(budget_ppm, facts.unit_ns, hit_ps);
  facts.guards = ChooseAffordable(
      profile, {.max_hits_per_mega_unit = most > UINT64_MAX - cuts ? UINT64_MAX : cuts + most,
                .max_guards = options.max_guards});
  facts.guards.right = Judge(profile, GuardsOf(profile, facts.guards), kBothHalves, kBothHalves,
                             Inference::kOfTheRuntime)
                           .right;
  // What cuts may not all be among them, if there are more than a plan takes.
  const uint64_t hits = facts.guards.hits_per_mega_unit;
  facts.cost_ppm =
      facts.unit_cost_ppm + CostPpm(hits - std::min(hits, cuts), facts.unit_ns, hit_ps);
  return GuardsOf(profile, facts.guards);
}

struct Boundaries {
  std::map<Context, uint32_t> context_flags;
  std::map<uint32_t, uint32_t> function_flags;
};

Boundaries BoundariesOf(const Profile& profile) {
  Boundaries result;
  for (const ProfileLoop& loop : profile.loops) {
    for (const Context& context : loop.handlers) {
      result.context_flags[context] |= wire::PlanContext::kBoundary;
      result.function_flags[context.function] |= wire::PlanFunction::kHandler;
    }
    for (const Context& context : loop.commands) {
      result.context_flags[context] |= wire::PlanContext::kBoundary;
      result.function_flags[context.function] |= wire::PlanFunction::kCommand;
    }
    for (const Context& context : loop.tails) {
      result.context_flags[context] |= wire::PlanContext::kTail;
    }
    for (const Context& context : loop.turns) {
      result.context_flags[context] |= wire::PlanContext::kTurn;
    }
  }
  return result;
}

// Those that are entered most come first: their trampolines are written in this order, and so
// share pages.
std::vector<uint32_t> ByHits(const std::map<uint32_t, std::set<GuardContext>>& contexts,
                             const std::vector<Guard>& guards) {
  std::map<uint32_t, uint64_t> hits;
  for (const Guard& guard : guards) hits[guard.function] += guard.hits_per_mega_unit;
  std::vector<uint32_t> functions;
  for (const auto& [function, of_function] : contexts) functions.push_back(function);
  std::stable_sort(functions.begin(), functions.end(),
                   [&](uint32_t a, uint32_t b) { return hits[a] > hits[b]; });
  return functions;
}

// Functions with their contexts: those that carry a bit and those that cut.
void AddFunctions(const Profile& profile, const std::vector<Guard>& guards, const ContextBits& bits,
                  PlanTables& tables) {
  const Boundaries boundaries = BoundariesOf(profile);
  // In the order of GuardContext: any caller comes last, and the first that fits is taken.
  std::map<uint32_t, std::set<GuardContext>> contexts;
  for (const Guard& guard : guards) {
    contexts[guard.function].insert(guard.contexts.begin(), guard.contexts.end());
  }
  for (const auto& [context, flags] : boundaries.context_flags) {
    contexts[context.function].insert({context.depth});
  }
  for (const uint32_t function : ByHits(contexts, guards)) {
    const std::set<GuardContext>& of_function = contexts[function];
    const ProfileFunction& row = profile.functions[function];
    const auto flags = boundaries.function_flags.find(function);
    tables.functions.push_back(
        {row.offset, row.module, flags == boundaries.function_flags.end() ? 0 : flags->second,
         static_cast<uint32_t>(tables.contexts.size()), static_cast<uint32_t>(of_function.size())});
    for (const GuardContext& context : of_function) {
      const auto boundary = boundaries.context_flags.find({function, context.depth});
      uint32_t context_flags = boundary == boundaries.context_flags.end() ? 0 : boundary->second;
      uint32_t bit = bits.BitOf({function, context});
      if (bit == kNoIndex) {
        context_flags |= wire::PlanContext::kNoBit;
        bit = 0;
      }
      wire::PlanContext row_of_context = {context.depth, context_flags, bit, wire::kAnyReturn, 0};
      if (context.caller != kNoIndex) {
        row_of_context.return_module = profile.callers[context.caller].module;
        row_of_context.return_offset = profile.callers[context.caller].return_offset;
      }
      tables.contexts.push_back(row_of_context);
    }
  }
}

void AddSites(const Profile& profile, PlanTables& tables) {
  for (uint32_t i = 0; i < profile.loops.size(); ++i) {
    const ProfileLoop& loop = profile.loops[i];
    for (const ProfileSite& site : loop.sites) {
      wire::PlanSite row = {};
      row.return_offset = site.return_offset;
      row.module = site.module;
      row.call = static_cast<uint32_t>(site.call);
      row.loop = i;
      row.base_offset = site.base_offset;
      row.holder_module = wire::kAnyHolder;
      if (loop.holder != kNoIndex && loop.holder_unwound) {
        row.holder_module = profile.functions[loop.holder].module;
        row.holder_offset = profile.functions[loop.holder].offset;
      }
      if (loop.hand_over) row.flags |= wire::PlanSite::kHandOver;
      if (!loop.turns.empty()) row.flags |= wire::PlanSite::kTurns;
      if (loop.parks) row.flags |= wire::PlanSite::kParks;
      tables.sites.push_back(row);
    }
  }
}

void AddTypes(const Profile& profile, const ContextBits& bits, PlanTables& tables,
              PlanFacts& facts) {
  const std::vector<ContextSet> sets = bits.OfTypes();
  tables.types = PlanTypesOf(profile, sets);
  std::map<std::tuple<uint32_t, wire::UnitKind, ContextSet>, uint32_t> times;
  for (size_t i = 0; i < profile.types.size(); ++i) {
    const UnitType& type = profile.types[i];
    const uint32_t before = times[{type.loop, type.kind, sets[i]}]++;
    if (before > 0) facts.confused_types += before == 1 ? 2 : 1;
  }
}

}  // namespace

uint64_t CostOfLength::Of(uint64_t unit_ns) const {
  return hot_ps + (cold_ps - hot_ps) * std::min(unit_ns, kColdUnitNs) / kColdUnitNs;
}

std::string BuildPlan(const Profile& profile, wire::Mode mode, const PlanOptions& options,
                      PlanFacts* facts) {
  PlanFacts local;
  PlanFacts& out = facts == nullptr ? local : *facts;
  out = {};
  PlanTables tables;
  for (const ProfileModule& module : profile.modules) {
    tables.modules.push_back(ModuleRow(module.build_id, module.path, 0));
  }
  AddSites(profile, tables);
  const std::vector<Guard> guards = Affordable(profile, options, out);
  const ContextBits bits(profile, guards);
  AddFunctions(profile, guards, bits, tables);
  AddTypes(profile, bits, tables, out);
  out.functions = static_cast<uint32_t>(tables.functions.size());
  out.context_bits = bits.size();
  wire::PlanHeader header = {};
  header.mode = static_cast<uint32_t>(mode);
  header.context_bits = bits.size();
  header.floor_ns = profile.floor_ns;
  header.unknown_ns = profile.unknown_threshold_ns;
  header.iteration_ns = profile.iteration_threshold_ns;
  header.min_similarity_ppm = options.min_similarity_ppm;
  header.hit_counting = options.hit_counting ? 1 : 0;
  header.max_reports_a_second = options.max_reports_a_second;
  header.sample_every = options.sample_every;
  header.max_hits_a_second = options.max_hits_a_second;
  return Assemble(header, tables);
}

std::string TrainPlan(const TrainPlanOptions& options) {
  PlanTables tables;
  for (const std::string& name : options.skip_modules) {
    tables.modules.push_back(ModuleRow({}, name, wire::PlanModule::kSkip));
  }
  wire::PlanHeader header = {};
  header.mode = static_cast<uint32_t>(wire::Mode::kTrain);
  header.log_bytes = options.log_bytes;
  header.log_times = options.log_times ? 1 : 0;
  return Assemble(header, tables);
}

}  // namespace culprit::guard
