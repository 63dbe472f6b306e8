// SPDX-License-Identifier: Apache-2.0
#include "guard/open_unit_type.h"

#include <bit>
#include <cstring>

namespace culprit::guard {
namespace {

uint32_t ContextSimilarityPpm(const uint64_t* a, const uint64_t* b) {
  uint64_t both = 0;
  uint64_t any = 0;
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    both += static_cast<uint64_t>(std::popcount(a[i] & b[i]));
    any += static_cast<uint64_t>(std::popcount(a[i] | b[i]));
  }
  return any == 0 ? 1'000'000 : static_cast<uint32_t>(both * 1'000'000 / any);
}

}  // namespace

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
  TypeGuess best;
  for (uint32_t i = 0; i < types.size(); ++i) {
    const wire::PlanType& type = types[i];
    if (type.loop != unit.loop || type.kind != static_cast<uint32_t>(unit.kind)) continue;
    const uint32_t similarity = ContextSimilarityPpm(type.contexts, unit.contexts);
    const bool better =
        best.type == wire::kUnknown || similarity > best.similarity_ppm ||
        (similarity == best.similarity_ppm && type.threshold_ns < best.threshold_ns);
    if (better) best = {i, similarity, type.threshold_ns};
  }
  if (best.similarity_ppm < min_similarity_ppm) {
    return {.type = wire::kUnknown, .similarity_ppm = best.similarity_ppm, .threshold_ns = 0};
  }
  return best;
}

}  // namespace culprit::guard
