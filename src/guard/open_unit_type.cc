// SPDX-License-Identifier: Apache-2.0
#include "guard/open_unit_type.h"

#include <cstring>

#include "guard/runtime/nearest_type.h"

namespace culprit::guard {

std::vector<wire::PlanType> PlanTypes(std::string_view plan) {
  wire::PlanHeader header = {};
  if (plan.size() < sizeof(header)) return {};
  std::memcpy(&header, plan.data(), sizeof(header));
  const uint64_t before = sizeof(header) + header.modules * sizeof(wire::PlanModule) +
                          header.functions * sizeof(wire::PlanFunction) +
                          header.contexts * sizeof(wire::PlanContext) +
                          header.sites * sizeof(wire::PlanSite);
  const uint64_t bytes = uint64_t{header.types} * sizeof(wire::PlanType);
  if (before > plan.size() || bytes > plan.size() - before) return {};
  std::vector<wire::PlanType> types(header.types);
  if (bytes > 0) std::memcpy(types.data(), plan.data() + before, bytes);
  return types;
}

uint32_t PlanMinSimilarityPpm(std::string_view plan) {
  wire::PlanHeader header = {};
  if (plan.size() < sizeof(header)) return 0;
  std::memcpy(&header, plan.data(), sizeof(header));
  return header.min_similarity_ppm;
}

TypeGuess GuessType(const std::vector<wire::PlanType>& types, const OpenUnit& unit,
                    uint32_t min_similarity_ppm) {
  const runtime::UnitIdentity identity = {
      .loop = unit.loop, .kind = static_cast<uint32_t>(unit.kind), .contexts = unit.contexts};
  const runtime::TypeVerdict verdict = runtime::Recognise(
      types, identity, runtime::FindNearestType(types, identity), min_similarity_ppm);
  TypeGuess guess = {.similarity_ppm = verdict.similarity_ppm};
  if (verdict.type == wire::kUnknown) return guess;
  guess.type = verdict.type;
  guess.threshold_ns = types[verdict.type].threshold_ns;
  return guess;
}

}  // namespace culprit::guard
