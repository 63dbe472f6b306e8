// SPDX-License-Identifier: Apache-2.0
// Any bytes as evidence of mining, and real evidence with any bytes changed. What is
// accepted must be sound: it encodes to what decodes again, and it adds up.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "stackmine/evidence_codec.h"
#include "waitgraph/timelines_random.h"

namespace {

using namespace culprit::stackmine;

void Read(const std::string& bytes) {
  (void)DecodeOptions(bytes);
  const auto evidence = DecodeEvidence(bytes);
  if (!evidence) return;
  const std::string again = EncodeEvidence(*evidence);
  const auto decoded = DecodeEvidence(again);
  CULPRIT_CHECK(decoded && EncodeEvidence(*decoded) == again);
  Evidence sum;
  AddEvidence(*evidence, sum);
  AddEvidence(*evidence, sum);
}

std::string RealEvidence() {
  const auto trace = culprit::waitgraph::RandomSchedule({.seed = 3, .steps = 80}).Make();
  return EncodeEvidence(ReduceTrace(trace, "t", {}));
}

}  // namespace

// Triples of two bytes that say where and one that says what.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Read(std::string(reinterpret_cast<const char*>(data), size));
  static const std::string real = RealEvidence();
  std::string changed = real;
  for (size_t i = 0; i + 2 < size; i += 3) {
    changed[(data[i] | data[i + 1] << 8) % changed.size()] = static_cast<char>(data[i + 2]);
  }
  Read(changed);
  return 0;
}
