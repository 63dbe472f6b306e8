// SPDX-License-Identifier: Apache-2.0
#include "causality/gather.h"

#include "corpus/gather_parts.h"

namespace culprit::causality {
namespace {

// An event as read, its place in the time lines, and in the graph of an instance that
// has all of them.
constexpr uint64_t kBytesAnEvent = 48 + 32 + 60;

}  // namespace

Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress) {
  return corpus::GatherParts<Evidence>(
      path,
      {.bytes_an_event = kBytesAnEvent,
       .max_memory_bytes = options.max_memory_bytes,
       .jobs = options.jobs},
      [&](const trace::Trace& trace, const std::string& name) {
        return ExtractTrace(trace, name, options.extract);
      },
      AddEvidence, progress);
}

}  // namespace culprit::causality
