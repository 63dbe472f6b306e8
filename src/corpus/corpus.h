// SPDX-License-Identifier: Apache-2.0
//
// Corpus: a folder of traces with a catalog (docs/corpus.md).
//
//   FOLDER/catalog.sqlite             what is known of the traces (catalog.h)
//   FOLDER/traces/HASH.ctrace         a trace; HASH: 32 hex digits of its SHA-256
//   FOLDER/traces/.staging/           files on their way in
//   FOLDER/summaries/                 what analyses keep of the traces (summary_store.h)
//
// Invariant: every trace in the catalog has its whole file. Files are put in
// place before the transaction that names them commits, and removed after the
// one that forgets them, both under the catalog's write lock; so a process
// killed at any moment can leave a stray file but never a row without one.
// Other files in the folder are left alone.
//
// All functions may be called from several threads of a process and from
// several processes at once. Adding the same content twice gives one trace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "corpus/catalog.h"

namespace culprit::corpus {

struct AddOptions {
  std::string name = {};                           // empty: the source file's stem
  std::map<std::string, std::string> labels = {};  // added to those of the trace, and win
};

// A trace that a producer wrote to a path of NewStagingPath(). Staged traces
// are trusted to be what the writer wrote: their index is read, not every block.
struct StagedTrace {
  std::string path = {};
  std::string name = {};
  std::map<std::string, std::string> labels = {};
};

struct AddOutcome {
  enum class Kind { kAdded, kAlreadyThere };
  Kind kind = Kind::kAdded;
  int64_t id = 0;
  std::string name = {};  // may have a suffix -2, -3, ... where the wanted one was taken
  bool complete = true;
  Diagnostics diagnostics = {};  // of a trace that was added
};

struct CheckOptions {
  bool repair = false;
  size_t jobs = 0;  // 0: all hardware threads
};

struct CheckReport {
  struct Problem {
    std::string trace = {};  // name; "catalog.sqlite" for the catalog itself
    std::string file = {};   // relative to the corpus folder
    std::string what = {};
  };
  struct Stray {
    std::string file = {};  // relative to the corpus folder
    std::string what = {};  // what it is, or what was done about it
  };
  uint64_t traces = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t damaged_when_added = 0;  // unchanged since, so no problem of the corpus
  uint64_t summaries = 0;           // files, and
  uint64_t summary_bytes = 0;
  std::vector<Problem> problems = {};
  std::vector<Stray> strays = {};
  bool catalog_rebuilt = false;
  std::string old_catalog = {};  // where the one that was replaced is kept; empty: there was none

  bool ok() const { return problems.empty(); }
};

struct CorpusState;

class Corpus {
 public:
  static Result<Corpus> Open(const std::string& folder);
  // Opens, or makes one in a folder that does not exist or is empty.
  static Result<Corpus> Create(const std::string& folder);

  Corpus(Corpus&&) noexcept;
  Corpus& operator=(Corpus&&) noexcept;
  ~Corpus();

  // Copies a trace in. A file that is no trace leaves nothing behind; labels
  // given for a trace that is already there are set on it.
  Result<AddOutcome> Add(const std::string& trace_path, const AddOptions& options);
  // The same for many, reading in parallel. One slot per path; names and ids
  // are given in the order of the paths. options.name must be empty.
  std::vector<Result<AddOutcome>> AddMany(const std::vector<std::string>& trace_paths,
                                          const AddOptions& options, size_t jobs,
                                          Progress& progress);

  // A path in the corpus's own file system where nothing exists yet.
  Result<std::string> NewStagingPath();
  // Moves a staged trace in. On failure the file stays where it is.
  Result<AddOutcome> AddStaged(const std::string& staged_path, const std::string& name,
                               const std::map<std::string, std::string>& labels = {});
  // All of them in one transaction, or none; outcomes in the given order.
  Result<std::vector<AddOutcome>> AddStaged(const std::vector<StagedTrace>& staged,
                                            size_t jobs = 0);

  // All of the names, or none. Returns how many traces they were.
  Result<uint64_t> Remove(const std::vector<std::string>& names);

  // By name; an unknown one is an Error that suggests the nearest.
  Result<TraceRow> Find(const std::string& name) const;
  Result<std::vector<TraceRow>> List(const TraceFilter& filter = {}) const;
  Result<std::vector<ScenarioRow>> Scenarios() const;
  // Slowest first; limit 0: all. An unknown scenario is an Error.
  Result<std::vector<InstanceRow>> Instances(const std::string& scenario, uint64_t limit = 0) const;
  // Of one trace, in the trace's order.
  Result<std::vector<InstanceRow>> InstancesOf(const TraceRow& row) const;
  std::string TracePath(const TraceRow& row) const;
  const std::string& folder() const;

  // Reads every trace whole and holds it against the catalog. With repair,
  // stray files are dealt with; problems of traces stay for a person to decide.
  Result<CheckReport> Check(const CheckOptions& options, Progress& progress);

 private:
  explicit Corpus(std::unique_ptr<CorpusState> state);
  std::unique_ptr<CorpusState> state_;
};

// Check for a folder whose catalog may be missing or broken. With repair, such
// a catalog is moved aside (never deleted) as catalog.sqlite.broken-N and made
// anew from the trace files; names and labels are kept where they can be read.
Result<CheckReport> CheckCorpus(const std::string& folder, const CheckOptions& options,
                                Progress& progress);

}  // namespace culprit::corpus
