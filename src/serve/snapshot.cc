// SPDX-License-Identifier: Apache-2.0
#include "serve/snapshot.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "base/parallel.h"
#include "page/encoding.h"
#include "stackmine/signature_match.h"

namespace culprit::serve {

std::shared_ptr<const Snapshot> MakeSnapshot(const analyze::Analysis& analysis, uint64_t number) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->number = number;
  std::vector<analyze::Part> parts = analyze::MakeParts(analysis);
  std::vector<Snapshot::PartBytes> bytes(parts.size());
  ParallelFor(parts.size(), 0, [&](size_t i) {
    bytes[i].gzip = std::make_shared<const std::string>(page::Gzip(parts[i].json));
    bytes[i].etag =
        fmt::format("\"{:016x}\"", XXH3_64bits(parts[i].json.data(), parts[i].json.size()));
    bytes[i].json = std::make_shared<const std::string>(std::move(parts[i].json));
  });
  for (size_t i = 0; i < parts.size(); ++i) snapshot->parts[parts[i].name] = std::move(bytes[i]);
  for (const stackmine::Cluster& cluster : analysis.mined.clusters) {
    snapshot->clusters[cluster.id] = stackmine::SignatureOf(analysis.evidence, cluster);
  }
  return snapshot;
}

}  // namespace culprit::serve
