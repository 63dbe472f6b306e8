// SPDX-License-Identifier: Apache-2.0
//
// The catalog's tables, as SQL. docs/corpus.md explains the columns; a change
// here that an older program could not read raises kCatalogVersion. Stored in
// the file as PRAGMA user_version; PRAGMA application_id tells a catalog from
// any other SQLite file.
#pragma once

namespace culprit::corpus {

inline constexpr int kCatalogVersion = 1;
inline constexpr int kCatalogApplicationId = 0x63756c70;  // "culp"

// instances is clustered by trace, and its index by scenario holds everything
// that percentiles and the slowest-first list need: neither touches the table.
// AUTOINCREMENT: the id of a removed trace is never given again, so an id that
// somebody still holds cannot come to mean another trace.
inline constexpr const char* kCatalogSchema = R"sql(
CREATE TABLE traces (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  file TEXT NOT NULL UNIQUE,
  sha256 TEXT NOT NULL UNIQUE,
  bytes INTEGER NOT NULL,
  events INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  cpus INTEGER NOT NULL,
  threads INTEGER NOT NULL,
  instances INTEGER NOT NULL,
  running INTEGER NOT NULL,
  wait INTEGER NOT NULL,
  unwait INTEGER NOT NULL,
  ready INTEGER NOT NULL,
  hardware INTEGER NOT NULL,
  syscall INTEGER NOT NULL,
  call INTEGER NOT NULL,
  marker INTEGER NOT NULL,
  has_switches INTEGER NOT NULL,
  has_wakers INTEGER NOT NULL,
  complete INTEGER NOT NULL,
  damaged_blocks INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  machine TEXT NOT NULL,
  os TEXT NOT NULL,
  kernel TEXT NOT NULL,
  arch TEXT NOT NULL,
  app TEXT NOT NULL,
  app_version TEXT NOT NULL,
  source TEXT NOT NULL,
  added_ns INTEGER NOT NULL
);
CREATE INDEX traces_by_app ON traces(app);
CREATE INDEX traces_by_duration ON traces(dur_ns);
CREATE TABLE labels (
  trace INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (trace, key)
) WITHOUT ROWID;
CREATE INDEX labels_by_key ON labels(key, value, trace);
CREATE TABLE scenarios (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE instances (
  trace INTEGER NOT NULL REFERENCES traces(id) ON DELETE CASCADE,
  idx INTEGER NOT NULL,
  scenario INTEGER NOT NULL REFERENCES scenarios(id),
  tid INTEGER NOT NULL,
  thread_name TEXT NOT NULL,
  process_name TEXT NOT NULL,
  t0_ns INTEGER NOT NULL,
  t1_ns INTEGER NOT NULL,
  dur_ns INTEGER NOT NULL,
  PRIMARY KEY (trace, idx)
) WITHOUT ROWID;
CREATE INDEX instances_by_scenario ON instances(scenario, dur_ns DESC, trace, idx);
CREATE TABLE condemned (
  file TEXT PRIMARY KEY
) WITHOUT ROWID;
)sql";

}  // namespace culprit::corpus
