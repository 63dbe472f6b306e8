// SPDX-License-Identifier: Apache-2.0
#include "corpus/replace.h"

#include <unistd.h>

#include "base/file.h"
#include "corpus/catalog_entry.h"
#include "corpus/state.h"

namespace culprit::corpus {
namespace {

Error Changed(const TraceRow& old, std::string what) {
  return {.message = "trace '" + old.name + "' " + std::move(what),
          .hint = "run the command again"};
}

// Up to but not including the commit. The new file is in place before the
// commit that names it, the old one is condemned by the same commit.
Status Exchange(CorpusState& state, const TraceRow& old, const CatalogEntry& entry,
                const std::string& staged_path, const std::string& placed) {
  CULPRIT_ASSIGN(const std::optional<TraceRow> now, state.catalog.FindByName(old.name));
  if (!now) return Changed(old, "was removed meanwhile");
  if (now->sha256 != old.sha256) return Changed(old, "was replaced meanwhile");
  CULPRIT_ASSIGN(const std::optional<TraceRow> twin, state.catalog.FindBySha256(entry.row.sha256));
  if (twin) {
    return Error{
        .message = "trace '" + old.name + "' would become the same as '" + twin->name + "'",
        .hint = "'culprit corpus rm' removes one of them"};
  }
  TraceRow row = entry.row;
  row.name = now->name;
  row.labels = now->labels;
  row.added_ns = now->added_ns;
  row.file = ContentFile(row.sha256);
  CULPRIT_TRY(state.catalog.Delete(now->id));
  CULPRIT_TRY(state.catalog.Insert(row, entry.instances));
  CULPRIT_TRY(state.catalog.Pardon(row.file));
  CULPRIT_TRY(state.catalog.Condemn(now->file));
  if (::rename(staged_path.c_str(), placed.c_str()) != 0) return ErrnoError("move into", placed);
  return SyncFolder(TracesFolder(state.folder));
}

}  // namespace

Status ReplaceTrace(const std::string& folder, const TraceRow& old,
                    const std::string& staged_path) {
  CULPRIT_ASSIGN(const CatalogEntry entry, MakeCatalogEntry(staged_path, BlockCheck::kTrustIndex));
  if (entry.row.sha256 == old.sha256) {
    ::unlink(staged_path.c_str());
    return {};
  }
  CULPRIT_ASSIGN(Catalog catalog, Catalog::Open(CatalogPath(folder), false));
  CorpusState state(folder, std::move(catalog));
  const std::string file = ContentFile(entry.row.sha256);
  const std::string placed = TracesFolder(folder) + "/" + file;
  CULPRIT_TRY(state.catalog.Begin());
  Status done = Exchange(state, old, entry, staged_path, placed);
  if (done.ok()) done = state.catalog.Commit();
  if (!done.ok()) {
    state.catalog.Rollback();
    // The lock may be gone: by now another process may rely on the file.
    if (::access(staged_path.c_str(), F_OK) != 0 && state.catalog.Begin().ok()) {
      const auto used = state.catalog.FindByFile(file);
      if (used.ok() && !used.value()) ::rename(placed.c_str(), staged_path.c_str());
      state.catalog.Rollback();
    }
    return done;
  }
  // What cannot be removed now is tried again by the next removal or repair.
  (void)ExecuteCondemned(state).ok();
  return {};
}

}  // namespace culprit::corpus
