// SPDX-License-Identifier: Apache-2.0
//
// The inside of a Corpus, shared by corpus.cc (open, add, remove, list),
// corpus_check.cc and corpus_rebuild.cc. Nothing else includes it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "corpus/catalog.h"
#include "corpus/catalog_entry.h"
#include "corpus/corpus.h"

namespace culprit::corpus {

inline constexpr const char* kCatalogFile = "catalog.sqlite";
inline constexpr const char* kTraceSuffix = ".ctrace";

struct CorpusState {
  CorpusState(std::string where, Catalog opened)
      : folder(std::move(where)), catalog(std::move(opened)) {}

  const std::string folder;
  std::mutex mutex;  // over catalog: SQLite's transactions belong to the connection
  Catalog catalog;
};

// A trace on its way in: a file in the corpus's file system, already synced,
// and what the catalog will say of it.
struct Candidate {
  std::string path;
  std::string name;
  std::map<std::string, std::string> labels;
  CatalogEntry entry;
};

std::string CatalogPath(const std::string& folder);
std::string TracesFolder(const std::string& folder);
std::string StagingFolder(const std::string& folder);
// The file name that content has in traces/.
std::string ContentFile(const std::string& sha256);
bool IsContentFile(std::string_view file_name);
// Names of the content files in traces/, sorted.
Result<std::vector<std::string>> ContentFiles(const std::string& folder);
// What cannot stand in a name becomes '_'.
std::string CleanName(std::string_view wanted);

// Removes the files whose traces were removed and that are still there.
Status ExecuteCondemned(CorpusState& state);

// Puts candidates into the catalog and their files into place, in one
// transaction. On failure every file is back where it was.
Result<std::vector<AddOutcome>> AddCandidates(CorpusState& state,
                                              std::vector<Candidate>& candidates);

// Makes a catalog from the trace files and puts it in the place of a missing
// or broken one. Returns where the old one is kept; empty: there was none.
Result<std::string> RebuildCatalog(const std::string& folder, const CheckOptions& options,
                                   Progress& progress);

}  // namespace culprit::corpus
