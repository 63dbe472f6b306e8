// SPDX-License-Identifier: Apache-2.0
//
// Snapshot: one finished analysis as the site gives it out: its parts, each both
// plain and compressed, and what a mark needs to know of its clusters. Immutable
// once made, shared by any number of readers.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "analyze/analysis.h"
#include "analyze/part.h"

namespace culprit::serve {

struct Snapshot {
  struct PartBytes {
    std::shared_ptr<const std::string> json;
    std::shared_ptr<const std::string> gzip;
    std::string etag;
  };
  uint64_t number = 0;  // of the analysis, from 1
  std::map<std::string, PartBytes, std::less<>> parts;
  // By cluster id: the signature it would make, without name, owner and note.
  std::map<std::string, stackmine::Signature, std::less<>> clusters;
};

std::shared_ptr<const Snapshot> MakeSnapshot(const analyze::Analysis& analysis, uint64_t number);

}  // namespace culprit::serve
