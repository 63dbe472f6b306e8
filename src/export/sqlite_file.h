// SPDX-License-Identifier: Apache-2.0
//
// SqliteFile: a new SQLite database that appears under its name only when it
// is whole, like AtomicFile (base/file.h): written as a temporary in one
// transaction, then published by Commit(). Without Commit() nothing remains.
// With Overwrite::kRefuse both Create() and Commit() fail when PATH exists.
// One thread at a time; statements must be gone before Commit().
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/database.h"
#include "base/file.h"
#include "base/result.h"

namespace culprit::export_ {

class SqliteFile {
 public:
  static Result<SqliteFile> Create(const std::string& path, Overwrite overwrite);
  SqliteFile(SqliteFile&& other) noexcept;
  SqliteFile& operator=(SqliteFile&&) = delete;
  ~SqliteFile();

  Status Execute(const char* sql) { return database_->Execute(sql); }
  // An insert of `columns` values into `table`.
  Result<Statement> Prepare(std::string_view table, size_t columns);
  Status Commit();

 private:
  SqliteFile(std::string path, std::string temporary, Overwrite overwrite)
      : path_(std::move(path)), temporary_(std::move(temporary)), overwrite_(overwrite) {}

  std::string path_;
  std::string temporary_;  // empty: nothing to remove
  Overwrite overwrite_;
  std::optional<Database> database_;
};

}  // namespace culprit::export_
