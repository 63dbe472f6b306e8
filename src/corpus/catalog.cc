// SPDX-License-Identifier: Apache-2.0
#include "corpus/catalog.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "corpus/catalog_schema.h"

namespace culprit::corpus {
namespace {

constexpr std::string_view kTraceColumns =
    "id, name, file, sha256, bytes, events, begin_ns, end_ns, dur_ns, cpus, threads, instances, "
    "running, wait, unwait, ready, hardware, syscall, call, marker, has_switches, has_wakers, "
    "complete, damaged_blocks, skipped, machine, os, kernel, arch, app, app_version, source, "
    "added_ns";

TraceRow ReadTraceRow(const Statement& from) {
  TraceRow row;
  int column = 0;
  row.id = from.Int(column++);
  for (std::string* text : {&row.name, &row.file, &row.sha256}) *text = from.Text(column++);
  row.bytes = from.Uint(column++);
  row.events = from.Uint(column++);
  row.begin_ns = from.Int(column++);
  row.end_ns = from.Int(column++);
  row.dur_ns = from.Int(column++);
  row.cpus = static_cast<uint32_t>(from.Int(column++));
  row.threads = from.Uint(column++);
  row.instances = from.Uint(column++);
  for (uint64_t& count : row.kind_counts) count = from.Uint(column++);
  for (bool* flag : {&row.has_switches, &row.has_wakers, &row.complete})
    *flag = from.Int(column++) != 0;
  row.damaged_blocks = from.Uint(column++);
  row.skipped = from.Uint(column++);
  for (std::string* text :
       {&row.machine, &row.os, &row.kernel, &row.arch, &row.app, &row.app_version, &row.source})
    *text = from.Text(column++);
  row.added_ns = from.Int(column++);
  return row;
}

InstanceRow ReadInstanceRow(const Statement& from) {
  return {.trace = from.Int(0),
          .trace_name = from.Text(1),
          .index = static_cast<uint32_t>(from.Int(2)),
          .scenario = from.Text(3),
          .tid = from.Int(4),
          .thread_name = from.Text(5),
          .process_name = from.Text(6),
          .t0_ns = from.Int(7),
          .t1_ns = from.Int(8),
          .dur_ns = from.Int(9)};
}

constexpr std::string_view kInstanceColumns =
    "i.trace, t.name, i.idx, s.name, i.tid, i.thread_name, i.process_name, i.t0_ns, i.t1_ns, "
    "i.dur_ns FROM instances i JOIN traces t ON t.id = i.trace "
    "JOIN scenarios s ON s.id = i.scenario ";

Result<std::vector<InstanceRow>> ReadInstances(Statement& statement) {
  std::vector<InstanceRow> rows;
  while (true) {
    CULPRIT_ASSIGN(const bool more, statement.Step());
    if (!more) return rows;
    rows.push_back(ReadInstanceRow(statement));
  }
}

// `slowest_first` holds one scenario's durations.
ScenarioRow Summarize(std::string name, const std::vector<int64_t>& slowest_first,
                      uint64_t traces) {
  const size_t n = slowest_first.size();
  const auto rank = [&](size_t percent) {
    const size_t index = (n * percent + 99) / 100 - 1;
    return slowest_first[n - 1 - index];
  };
  ScenarioRow row{.name = std::move(name), .instances = n, .traces = traces};
  row.min_ns = slowest_first.back();
  row.p50_ns = rank(50);
  row.p90_ns = rank(90);
  row.max_ns = slowest_first.front();
  for (const int64_t dur_ns : slowest_first) {
    if (__builtin_add_overflow(row.total_ns, dur_ns, &row.total_ns)) {
      row.total_ns = INT64_MAX;
      break;
    }
  }
  return row;
}

std::string RebuildHint(const std::string& path) {
  return "'culprit corpus check " + std::filesystem::path(path).parent_path().string() +
         " --repair' makes a new one from the trace files and keeps this one";
}

Error NotACatalog(const std::string& path, std::string message) {
  return {.message = std::move(message), .file = path, .hint = RebuildHint(path)};
}

Error NewerCatalog(const std::string& path, int64_t version) {
  return {.message = "the catalog has version " + std::to_string(version) +
                     "; this program knows versions up to " + std::to_string(kCatalogVersion),
          .file = path,
          .hint = "use the culprit that wrote it, or a later one"};
}

Result<CatalogState> StateOf(const Database& database) {
  const auto damage_or = [&](const Error& error) -> Result<CatalogState> {
    if (database.LastErrorIsDamage()) return CatalogState::kBroken;
    return error;
  };
  const auto tables = database.QueryInt("SELECT count(*) FROM sqlite_master");
  if (!tables.ok()) return damage_or(tables.error());
  const auto version = database.QueryInt("PRAGMA user_version");
  if (!version.ok()) return damage_or(version.error());
  const auto application = database.QueryInt("PRAGMA application_id");
  if (!application.ok()) return damage_or(application.error());
  if (tables.value() == 0 && version.value() == 0) return CatalogState::kEmpty;
  if (application.value() != kCatalogApplicationId) return CatalogState::kBroken;
  return version.value() > kCatalogVersion ? CatalogState::kNewer : CatalogState::kGood;
}

}  // namespace

Result<CatalogState> ProbeCatalog(const std::string& path, bool deep) {
  std::error_code code;
  if (!std::filesystem::exists(path, code) && !code) return CatalogState::kMissing;
  // Reading may have to finish the rollback of a killed writer, which writes.
  auto opened = Database::Open(path, Database::Mode::kReadWrite, RebuildHint(path));
  if (!opened.ok()) return opened.error();
  const Database database = std::move(opened).value();
  CULPRIT_ASSIGN(const CatalogState state, StateOf(database));
  if (!deep || state != CatalogState::kGood) return state;
  const auto intact = [&]() -> Result<bool> {
    CULPRIT_ASSIGN(Statement check, database.Prepare("PRAGMA integrity_check(1)"));
    CULPRIT_ASSIGN(const bool row, check.Step());
    return row && check.Text(0) == "ok";
  }();
  if (intact.ok()) return intact.value() ? state : CatalogState::kBroken;
  if (database.LastErrorIsDamage()) return CatalogState::kBroken;
  return intact.error();
}

Result<Catalog> Catalog::Open(const std::string& path, bool create) {
  const Database::Mode mode = create ? Database::Mode::kCreate : Database::Mode::kReadWrite;
  CULPRIT_ASSIGN(Database database, Database::Open(path, mode, RebuildHint(path)));
  Catalog catalog(std::move(database));
  const Database& file = catalog.database_;
  CULPRIT_ASSIGN(CatalogState state, StateOf(file));
  // EXTRA also syncs the folder after the journal is gone: without it a power
  // cut can undo a commit that was already reported as done.
  if (state != CatalogState::kBroken)
    CULPRIT_TRY(file.Execute("PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON;"));
  if (state == CatalogState::kEmpty && create) {
    CULPRIT_TRY(catalog.Begin());
    // Another process may have made the tables while this one waited.
    CULPRIT_ASSIGN(state, StateOf(file));
    if (state == CatalogState::kEmpty) {
      CULPRIT_TRY(file.Execute(kCatalogSchema));
      const std::string marks =
          "PRAGMA user_version = " + std::to_string(kCatalogVersion) +
          "; PRAGMA application_id = " + std::to_string(kCatalogApplicationId) + ";";
      CULPRIT_TRY(file.Execute(marks.c_str()));
      state = CatalogState::kGood;
    }
    CULPRIT_TRY(catalog.Commit());
  }
  switch (state) {
    case CatalogState::kGood:
      return catalog;
    case CatalogState::kNewer: {
      CULPRIT_ASSIGN(const int64_t version, file.QueryInt("PRAGMA user_version"));
      return NewerCatalog(path, version);
    }
    case CatalogState::kEmpty:
      return NotACatalog(path, "the catalog has no tables");
    default:
      return NotACatalog(path, "is not a catalog of traces, or damaged");
  }
}

Status Catalog::Begin() { return database_.Execute("BEGIN IMMEDIATE"); }

Status Catalog::Commit() { return database_.Execute("COMMIT"); }

void Catalog::Rollback() {
  // Some errors make SQLite roll back by itself; then there is nothing to do.
  if (database_.InTransaction()) (void)database_.Execute("ROLLBACK").ok();
}

Result<int64_t> Catalog::Insert(const TraceRow& row, const std::vector<InstanceRow>& instances) {
  std::string sql = "INSERT INTO traces (" + std::string(kTraceColumns) + ") VALUES (NULL";
  const auto columns = std::count(kTraceColumns.begin(), kTraceColumns.end(), ',');
  for (std::ptrdiff_t i = 0; i < columns; ++i) sql += ", ?";
  CULPRIT_ASSIGN(Statement insert, database_.Prepare(sql + ")"));
  insert.Bind(row.name).Bind(row.file).Bind(row.sha256);
  insert.Bind(row.bytes).Bind(row.events).Bind(row.begin_ns).Bind(row.end_ns).Bind(row.dur_ns);
  insert.Bind(row.cpus).Bind(row.threads).Bind(static_cast<uint64_t>(instances.size()));
  for (const uint64_t count : row.kind_counts) insert.Bind(count);
  insert.Bind(row.has_switches).Bind(row.has_wakers).Bind(row.complete);
  insert.Bind(row.damaged_blocks).Bind(row.skipped);
  insert.Bind(row.machine).Bind(row.os).Bind(row.kernel).Bind(row.arch);
  insert.Bind(row.app).Bind(row.app_version).Bind(row.source).Bind(row.added_ns);
  CULPRIT_TRY(insert.Run());
  const int64_t id = database_.LastInsertId();
  CULPRIT_TRY(SetLabels(id, row.labels));
  CULPRIT_TRY(InsertInstances(id, instances));
  return id;
}

Status Catalog::InsertInstances(int64_t trace, const std::vector<InstanceRow>& instances) {
  if (instances.empty()) return {};
  CULPRIT_ASSIGN(Statement name, database_.Prepare("INSERT OR IGNORE INTO scenarios(name) "
                                                   "VALUES (?)"));
  CULPRIT_ASSIGN(Statement insert,
                 database_.Prepare("INSERT INTO instances VALUES (?, ?, (SELECT id FROM scenarios "
                                   "WHERE name = ?), ?, ?, ?, ?, ?, ?)"));
  std::unordered_set<std::string_view> named;
  for (const InstanceRow& row : instances) {
    if (named.insert(row.scenario).second) CULPRIT_TRY(name.Bind(row.scenario).Run());
    insert.Bind(trace).Bind(row.index).Bind(row.scenario).Bind(row.tid);
    insert.Bind(row.thread_name).Bind(row.process_name);
    insert.Bind(row.t0_ns).Bind(row.t1_ns).Bind(row.dur_ns);
    CULPRIT_TRY(insert.Run());
  }
  return {};
}

Status Catalog::SetLabels(int64_t trace, const std::map<std::string, std::string>& labels) {
  CULPRIT_ASSIGN(Statement set,
                 database_.Prepare("INSERT OR REPLACE INTO labels VALUES (?, ?, ?)"));
  for (const auto& [key, value] : labels) CULPRIT_TRY(set.Bind(trace).Bind(key).Bind(value).Run());
  return {};
}

Status Catalog::Delete(int64_t trace) {
  CULPRIT_ASSIGN(Statement erase, database_.Prepare("DELETE FROM traces WHERE id = ?"));
  return erase.Bind(trace).Run();
}

Result<std::string> Catalog::FreeName(const std::string& wanted) {
  CULPRIT_ASSIGN(Statement find, database_.Prepare("SELECT count(*) FROM traces WHERE name = ?"));
  const auto name_of = [&](uint64_t n) {
    return n == 1 ? wanted : wanted + "-" + std::to_string(n);
  };
  const auto taken = [&](uint64_t n) -> Result<bool> {
    CULPRIT_ASSIGN(const bool row, find.Bind(name_of(n)).Step());
    CULPRIT_CHECK(row);
    const bool used = find.Int(0) != 0;
    CULPRIT_TRY(find.Step());
    return used;
  };
  // Thousands of files may share a stem. Doubling and halving finds a free
  // number after a used one in few probes; trying each in turn would make
  // adding n of them cost n squared.
  uint64_t free = 1;
  uint64_t used = 0;
  while (true) {
    CULPRIT_ASSIGN(const bool is_taken, taken(free));
    if (!is_taken) break;
    used = free;
    free *= 2;
  }
  while (free - used > 1) {
    const uint64_t middle = used + (free - used) / 2;
    CULPRIT_ASSIGN(const bool is_taken, taken(middle));
    (is_taken ? used : free) = middle;
  }
  return name_of(free);
}

Status Catalog::Condemn(const std::string& file) {
  CULPRIT_ASSIGN(Statement add, database_.Prepare("INSERT OR IGNORE INTO condemned VALUES (?)"));
  return add.Bind(file).Run();
}

Status Catalog::Pardon(const std::string& file) {
  CULPRIT_ASSIGN(Statement erase, database_.Prepare("DELETE FROM condemned WHERE file = ?"));
  return erase.Bind(file).Run();
}

Result<std::vector<std::string>> Catalog::Condemned() {
  CULPRIT_ASSIGN(Statement select, database_.Prepare("SELECT file FROM condemned ORDER BY file"));
  std::vector<std::string> files;
  while (true) {
    CULPRIT_ASSIGN(const bool more, select.Step());
    if (!more) return files;
    files.push_back(select.Text(0));
  }
}

Result<std::optional<TraceRow>> Catalog::FindOne(std::string_view column, std::string_view value) {
  const std::string sql =
      "SELECT " + std::string(kTraceColumns) + " FROM traces WHERE " + std::string(column) + " = ?";
  CULPRIT_ASSIGN(Statement select, database_.Prepare(sql));
  CULPRIT_ASSIGN(const bool found, select.Bind(value).Step());
  if (!found) return std::optional<TraceRow>();
  std::vector<TraceRow> rows = {ReadTraceRow(select)};
  CULPRIT_TRY(FillLabels(rows));
  return std::optional<TraceRow>(std::move(rows.front()));
}

Result<std::optional<TraceRow>> Catalog::FindByName(std::string_view name) {
  return FindOne("name", name);
}

Result<std::optional<TraceRow>> Catalog::FindBySha256(std::string_view sha256) {
  return FindOne("sha256", sha256);
}

Result<std::optional<TraceRow>> Catalog::FindByFile(std::string_view file) {
  return FindOne("file", file);
}

Result<std::vector<TraceRow>> Catalog::List(const TraceFilter& filter) {
  std::string sql = "SELECT " + std::string(kTraceColumns) + " FROM traces WHERE dur_ns >= ?";
  for (size_t i = 0; i < filter.labels.size(); ++i)
    sql += " AND id IN (SELECT trace FROM labels WHERE key = ? AND value = ?)";
  if (filter.scenario)
    sql +=
        " AND id IN (SELECT trace FROM instances WHERE scenario = "
        "(SELECT id FROM scenarios WHERE name = ?))";
  if (filter.app) sql += " AND app = ?";
  if (filter.name_glob) sql += " AND name GLOB ?";
  CULPRIT_ASSIGN(Statement select, database_.Prepare(sql + " ORDER BY name"));
  // A clock that ran backwards gives a negative duration; no filter, no loss.
  select.Bind(filter.min_dur_ns > 0 ? filter.min_dur_ns : INT64_MIN);
  for (const auto& [key, value] : filter.labels) select.Bind(key).Bind(value);
  for (const auto& text : {filter.scenario, filter.app, filter.name_glob})
    if (text) select.Bind(*text);
  std::vector<TraceRow> rows;
  while (true) {
    CULPRIT_ASSIGN(const bool more, select.Step());
    if (!more) break;
    rows.push_back(ReadTraceRow(select));
  }
  CULPRIT_TRY(FillLabels(rows));
  return rows;
}

Status Catalog::FillLabels(std::vector<TraceRow>& rows) {
  CULPRIT_ASSIGN(Statement one,
                 database_.Prepare("SELECT key, value FROM labels WHERE trace = ? ORDER BY key"));
  for (TraceRow& row : rows) {
    one.Bind(row.id);
    while (true) {
      CULPRIT_ASSIGN(const bool more, one.Step());
      if (!more) break;
      row.labels.emplace(one.Text(0), one.Text(1));
    }
  }
  return {};
}

Result<std::vector<ScenarioRow>> Catalog::Scenarios() {
  // One ordered pass over the covering index; sorting and grouping are already
  // in it. Percentiles by OFFSET would walk most of it again per scenario.
  CULPRIT_ASSIGN(Statement names, database_.Prepare("SELECT id, name FROM scenarios"));
  std::unordered_map<int64_t, std::string> name_of;
  while (true) {
    CULPRIT_ASSIGN(const bool more, names.Step());
    if (!more) break;
    name_of.emplace(names.Int(0), names.Text(1));
  }
  CULPRIT_ASSIGN(Statement select,
                 database_.Prepare("SELECT scenario, dur_ns, trace FROM instances "
                                   "ORDER BY scenario, dur_ns DESC"));
  std::vector<ScenarioRow> rows;
  std::vector<int64_t> durations;
  std::vector<int64_t> traces;
  int64_t current = 0;
  const auto close = [&] {
    if (durations.empty()) return;
    std::sort(traces.begin(), traces.end());
    const auto distinct = std::unique(traces.begin(), traces.end()) - traces.begin();
    rows.push_back(Summarize(name_of[current], durations, static_cast<uint64_t>(distinct)));
    durations.clear();
    traces.clear();
  };
  while (true) {
    CULPRIT_ASSIGN(const bool more, select.Step());
    if (!more || select.Int(0) != current) close();
    if (!more) break;
    current = select.Int(0);
    durations.push_back(select.Int(1));
    traces.push_back(select.Int(2));
  }
  std::sort(rows.begin(), rows.end(),
            [](const ScenarioRow& a, const ScenarioRow& b) { return a.name < b.name; });
  return rows;
}

Result<std::vector<InstanceRow>> Catalog::Instances(std::string_view scenario, uint64_t limit) {
  const std::string sql = "SELECT " + std::string(kInstanceColumns) +
                          "WHERE i.scenario = (SELECT id FROM scenarios WHERE name = ?) "
                          "ORDER BY i.dur_ns DESC, i.trace, i.idx LIMIT ?";
  CULPRIT_ASSIGN(Statement select, database_.Prepare(sql));
  select.Bind(scenario).Bind(limit == 0 ? int64_t{-1} : static_cast<int64_t>(limit));
  return ReadInstances(select);
}

Result<std::vector<InstanceRow>> Catalog::InstancesOf(int64_t trace) {
  const std::string sql =
      "SELECT " + std::string(kInstanceColumns) + "WHERE i.trace = ? ORDER BY i.idx";
  CULPRIT_ASSIGN(Statement select, database_.Prepare(sql));
  select.Bind(trace);
  return ReadInstances(select);
}

}  // namespace culprit::corpus
