// SPDX-License-Identifier: Apache-2.0
// Any bytes as a plan, with a right checksum half of the time: what is accepted
// has no index that leads out of it.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "guard/runtime/plan_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::guard;
  std::vector<uint64_t> words(size / 8 + 1);
  auto* bytes = reinterpret_cast<uint8_t*>(words.data());
  std::memcpy(bytes, data, size);
  if (size >= sizeof(wire::PlanHeader) && size % 2 == 0) {
    auto* header = reinterpret_cast<wire::PlanHeader*>(bytes);
    header->magic = wire::Magic("CGPLAN01");
    header->version = wire::kWireVersion;
    header->bytes = size;
    header->checksum =
        runtime::Fnv1a(bytes + sizeof(wire::PlanHeader), size - sizeof(wire::PlanHeader));
  }
  runtime::PlanView view;
  if (!view.Parse(bytes, size)) return 0;
  for (const wire::PlanFunction& function : view.functions()) {
    if (view.modules().size() <= function.module) abort();
    for (uint32_t i = 0; i < function.contexts; ++i) {
      const wire::PlanContext& context = view.contexts()[function.first_context + i];
      if ((context.flags & wire::PlanContext::kNoBit) == 0 &&
          context.bit >= 64 * wire::kContextWords) {
        abort();
      }
    }
  }
  for (const wire::PlanSite& site : view.sites()) {
    if (view.modules().size() <= site.module) abort();
  }
  return 0;
}
