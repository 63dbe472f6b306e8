// SPDX-License-Identifier: Apache-2.0
#include "guard/type_judgement.h"

namespace culprit::guard {

Judgement Judge(const Profile& profile, const std::vector<Guard>& guards, uint32_t known,
                uint32_t judged, RareTypes rare) {
  const ContextBits bits(profile, guards);
  const std::vector<ContextSet> of_types = bits.OfTypes(known);
  Judgement result;
  for (uint32_t i = 0; i < profile.shapes.size(); ++i) {
    const UnitShape& shape = profile.shapes[i];
    const uint64_t weight = UnitsOf(shape, judged);
    if (weight == 0) continue;
    result.units += weight;
    const NearestType nearest =
        FindNearestType(profile, of_types, shape, bits.OfShape(shape), rare);
    if (nearest.type == shape.type) {
      result.right += weight;
    } else {
      result.wrong.push_back({i, nearest.type});
    }
  }
  return result;
}

}  // namespace culprit::guard
