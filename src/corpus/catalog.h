// SPDX-License-Identifier: Apache-2.0
//
// Catalog: what a corpus knows of its traces without opening them, in one
// SQLite file (docs/corpus.md has the schema). It knows rows, not files: that
// every row has its file is the invariant of Corpus (corpus.h), which is the
// only writer.
//
// Journal: SQLite's rollback journal, synchronous = EXTRA. A process killed at
// any moment leaves the state before or after its transaction, and a catalog
// at rest is one file that can be copied, or read from a read-only folder;
// write-ahead logging would need a second file and shared memory for both.
// Every write happens between Begin() and Commit(), and Begin() takes the
// write lock, so two writers queue (up to kBusyTimeoutMs) and cannot deadlock.
//
// One thread at a time per object; any number of objects and processes per
// file. Queries cost what they return: every filter has its index.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/database.h"
#include "base/result.h"
#include "trace/event.h"

namespace culprit::corpus {

struct TraceRow {
  int64_t id = 0;
  std::string name = {};    // unique in the corpus
  std::string file = {};    // name inside the folder traces/
  std::string sha256 = {};  // of the file, hexadecimal
  uint64_t bytes = 0;
  uint64_t events = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t dur_ns = 0;
  uint32_t cpus = 0;
  uint64_t threads = 0;
  uint64_t instances = 0;
  std::array<uint64_t, trace::kEventKinds> kind_counts = {};
  bool has_switches = false;
  bool has_wakers = false;
  bool complete = true;         // nothing was missing or unreadable when it was added
  uint64_t damaged_blocks = 0;  // blocks that could not be read when it was added
  uint64_t skipped = 0;         // records counted in the trace's diagnostics
  std::string machine;
  std::string os;
  std::string kernel;
  std::string arch;
  std::string app;
  std::string app_version;
  std::string source;
  int64_t added_ns = 0;  // Unix time
  std::map<std::string, std::string> labels;
};

struct InstanceRow {
  int64_t trace = 0;  // TraceRow::id
  std::string trace_name = {};
  uint32_t index = 0;  // in the trace's own list of instances
  std::string scenario = {};
  int64_t tid = -1;
  std::string thread_name = {};
  std::string process_name = {};
  int64_t t0_ns = 0;
  int64_t t1_ns = 0;
  int64_t dur_ns = 0;
};

// Percentiles are by nearest rank: of n sorted values, p50 is the one at index
// ceil(0.5 n) - 1 and p90 the one at ceil(0.9 n) - 1.
struct ScenarioRow {
  std::string name = {};
  uint64_t instances = 0;
  uint64_t traces = 0;
  int64_t min_ns = 0;
  int64_t p50_ns = 0;
  int64_t p90_ns = 0;
  int64_t max_ns = 0;
  int64_t total_ns = 0;  // saturates at INT64_MAX
};

// A trace is listed when it meets every condition that is set.
struct TraceFilter {
  std::vector<std::pair<std::string, std::string>> labels = {};  // key, value
  std::optional<std::string> scenario = {};                      // has an instance of it
  std::optional<std::string> app = {};
  std::optional<std::string> name_glob = {};  // *, ?, [a-z]
  int64_t min_dur_ns = 0;
};

enum class CatalogState {
  kMissing,  // no such file
  kEmpty,    // an SQLite file without tables: creating it was interrupted
  kGood,
  kNewer,   // written by a later version of the program
  kBroken,  // not a catalog, or damaged
};
// Looks without changing anything. With `deep`, the whole file is checked. An
// Error means that it could not be told (no permission, locked for too long).
Result<CatalogState> ProbeCatalog(const std::string& path, bool deep);

class Catalog {
 public:
  // Opens; with `create`, makes the file and the tables where there are none.
  static Result<Catalog> Open(const std::string& path, bool create);

  Status Begin();
  Status Commit();
  void Rollback();  // also after a failed Commit()

  // Adds the row (its id is given here), its labels and its instances.
  Result<int64_t> Insert(const TraceRow& row, const std::vector<InstanceRow>& instances);
  Status SetLabels(int64_t trace, const std::map<std::string, std::string>& labels);
  Status Delete(int64_t trace);
  // `wanted`, or the same with -2, -3, ... where it is taken.
  Result<std::string> FreeName(const std::string& wanted);

  // Files whose rows were deleted and that still have to be removed.
  Status Condemn(const std::string& file);
  Status Pardon(const std::string& file);
  Result<std::vector<std::string>> Condemned();

  Result<std::optional<TraceRow>> FindByName(std::string_view name);
  Result<std::optional<TraceRow>> FindBySha256(std::string_view sha256);
  Result<std::optional<TraceRow>> FindByFile(std::string_view file);
  // By name.
  Result<std::vector<TraceRow>> List(const TraceFilter& filter);
  // By name.
  Result<std::vector<ScenarioRow>> Scenarios();
  // Slowest first; ties by trace id, then index. limit 0: all.
  Result<std::vector<InstanceRow>> Instances(std::string_view scenario, uint64_t limit);
  // Of one trace, by index.
  Result<std::vector<InstanceRow>> InstancesOf(int64_t trace);

  const std::string& path() const { return database_.path(); }

 private:
  explicit Catalog(Database database) : database_(std::move(database)) {}
  Status InsertInstances(int64_t trace, const std::vector<InstanceRow>& instances);
  Result<std::optional<TraceRow>> FindOne(std::string_view column, std::string_view value);
  Status FillLabels(std::vector<TraceRow>& rows);

  Database database_;
};

}  // namespace culprit::corpus
