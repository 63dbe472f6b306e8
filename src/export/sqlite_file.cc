// SPDX-License-Identifier: Apache-2.0
#include "export/sqlite_file.h"

#include <unistd.h>

#include <utility>

namespace culprit::export_ {

Result<SqliteFile> SqliteFile::Create(const std::string& path, Overwrite overwrite) {
  CULPRIT_ASSIGN(std::string temporary, CreateTemporary(path, overwrite));
  SqliteFile file(path, std::move(temporary), overwrite);
  CULPRIT_ASSIGN(file.database_, Database::Open(file.temporary_, Database::Mode::kReadWrite));
  // The file is thrown away if anything fails, so it needs no journal.
  CULPRIT_TRY(file.Execute(
      "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
      "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536; BEGIN"));
  return file;
}

SqliteFile::SqliteFile(SqliteFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      overwrite_(other.overwrite_),
      database_(std::move(other.database_)) {}

SqliteFile::~SqliteFile() {
  database_.reset();
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<Statement> SqliteFile::Prepare(std::string_view table, size_t columns) {
  std::string sql = "INSERT INTO " + std::string(table) + " VALUES (";
  for (size_t i = 0; i < columns; ++i) sql += i == 0 ? "?" : ", ?";
  return database_->Prepare(sql + ")");
}

Status SqliteFile::Commit() {
  CULPRIT_TRY(Execute("COMMIT"));
  database_.reset();
  CULPRIT_TRY(Publish(temporary_, path_, overwrite_));
  temporary_.clear();
  return {};
}

}  // namespace culprit::export_
