// SPDX-License-Identifier: Apache-2.0
//
// CatalogEntry: what the catalog stores of one trace file, computed from that
// file. Adding a trace stores it; checking a corpus computes it again and
// compares, so both sides mean the same by construction.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "corpus/catalog.h"

namespace culprit::corpus {

struct CatalogEntry {
  TraceRow row;  // without id, name, file, labels given by the user, added_ns
  std::vector<InstanceRow> instances;
  Diagnostics diagnostics;
};

enum class BlockCheck {
  kTrustIndex,  // counts come from the index: reads only head and tail
  kDecode,      // every block is decoded and its events counted
};

// Hashes and reads `path`. Damage is described in the entry (complete,
// damaged_blocks, skipped, diagnostics); an Error means no trace, or one of
// which nothing can be read.
Result<CatalogEntry> MakeCatalogEntry(const std::string& path, BlockCheck check);

// What differs between the catalog's row and the file, as sentences; labels
// and what only the catalog knows are not compared.
std::vector<std::string> Differences(const TraceRow& catalog, const TraceRow& file);
std::vector<std::string> Differences(const std::vector<InstanceRow>& catalog,
                                     const std::vector<InstanceRow>& file);

}  // namespace culprit::corpus
