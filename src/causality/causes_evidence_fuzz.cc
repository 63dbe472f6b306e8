// SPDX-License-Identifier: Apache-2.0
// Any bytes as evidence of causes, and real evidence with any bytes changed.
#include <cstdint>
#include <string>

#include "causality/evidence_codec.h"
#include "corpus/changed_bytes.h"
#include "waitgraph/timelines_random.h"

namespace {

using namespace culprit::causality;

std::string RealEvidence() {
  const auto trace = culprit::waitgraph::RandomSchedule({.seed = 3, .steps = 80}).Make();
  return EncodeEvidence(ExtractTrace(trace, "t", {}));
}

std::optional<Evidence> Decode(const std::string& bytes) {
  (void)DecodeOptions(bytes);
  (void)DecodeEvidence(bytes, {.impact = false});
  (void)DecodeEvidence(bytes, {.chains = false});
  return DecodeEvidence(bytes);
}

void AddTwice(const Evidence& evidence) {
  Evidence sum;
  AddEvidence(evidence, sum);
  AddEvidence(evidence, sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string real = RealEvidence();
  culprit::corpus::FuzzEvidence(
      real, data, size, Decode, [](const Evidence& evidence) { return EncodeEvidence(evidence); },
      AddTwice);
  return 0;
}
