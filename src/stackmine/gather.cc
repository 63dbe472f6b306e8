// SPDX-License-Identifier: Apache-2.0
#include "stackmine/gather.h"

#include "corpus/gather_parts.h"

namespace culprit::stackmine {
namespace {

// An event as read, its place in the time lines and on the paths.
constexpr uint64_t kBytesAnEvent = 48 + 32 + 32;

}  // namespace

Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress) {
  CULPRIT_ASSIGN(Evidence evidence, corpus::GatherParts<Evidence>(
                                        path,
                                        {.bytes_an_event = kBytesAnEvent,
                                         .max_memory_bytes = options.max_memory_bytes,
                                         .jobs = options.jobs},
                                        [&](const trace::Trace& trace, const std::string& name) {
                                          return ReduceTrace(trace, name, options.reduce);
                                        },
                                        AddEvidence, progress));
  evidence.scope = options.reduce.area.scope;
  return evidence;
}

}  // namespace culprit::stackmine
