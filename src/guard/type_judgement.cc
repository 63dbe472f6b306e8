// SPDX-License-Identifier: Apache-2.0
#include "guard/type_judgement.h"

#include "guard/context_bits.h"

namespace culprit::guard {

Judgement Judge(const Profile& profile, const std::vector<Guard>& guards, uint32_t known,
                uint32_t judged, Inference inference) {
  const ContextBits bits(profile, guards);
  const std::vector<ContextSet> of_types = bits.OfTypes(known);
  const std::vector<wire::PlanType> types = PlanTypesOf(profile, of_types);
  Judgement result;
  for (uint32_t i = 0; i < profile.shapes.size(); ++i) {
    const UnitShape& shape = profile.shapes[i];
    const uint64_t weight = UnitsOf(shape, judged);
    if (weight == 0) continue;
    result.units += weight;
    const ContextSet seen = bits.OfShape(shape);
    const uint32_t type = inference == Inference::kMostAlike
                              ? FindMostAlike(profile, of_types, shape, seen)
                              : runtime::FindNearestType(types, IdentityOf(shape, seen)).type;
    if (type == shape.type) {
      result.right += weight;
    } else {
      result.wrong.push_back({i, type});
    }
  }
  return result;
}

}  // namespace culprit::guard
