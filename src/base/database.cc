// SPDX-License-Identifier: Apache-2.0
#include "base/database.h"

#include <sqlite3.h>

namespace culprit {
namespace {

bool IsDamage(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

Error MakeError(const Connection& connection, int code) {
  sqlite3* handle = connection.handle;
  const std::string text = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  Error error{.message = "cannot be used: " + text, .file = connection.path};
  if (IsDamage(code)) {
    error.message = "is damaged: " + text;
    error.hint = connection.damage_hint;
    return error;
  }
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      error.message =
          "was kept locked by another process for " + std::to_string(kBusyTimeoutMs / 1000) + " s";
      error.hint = "try again when it is done";
      break;
    case SQLITE_READONLY:
      error.message = "cannot be changed: the file or its folder is read-only";
      break;
    case SQLITE_FULL:
      error.message = "cannot be written: the disk is full";
      error.hint = "free some space on that disk, then run the command again";
      break;
    default:
      break;
  }
  return error;
}

}  // namespace

Connection::~Connection() { sqlite3_close_v2(handle); }

Error Connection::Failure(int code) {
  last_failure = code;
  return MakeError(*this, code);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::Bind(int64_t value) {
  CULPRIT_CHECK(sqlite3_bind_int64(statement_.get(), ++bound_, value) == SQLITE_OK);
  return *this;
}

Statement& Statement::BindNull() {
  CULPRIT_CHECK(sqlite3_bind_null(statement_.get(), ++bound_) == SQLITE_OK);
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  // A view of nothing has a null pointer, which SQLite would bind as NULL.
  const char* bytes = text.data() != nullptr ? text.data() : "";
  CULPRIT_CHECK(sqlite3_bind_text64(statement_.get(), ++bound_, bytes, text.size(),
                                    SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK);
  return *this;
}

Result<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  // The error is made first: a reset may overwrite the handle's message.
  Error error = code == SQLITE_DONE ? Error{} : connection_->Failure(code);
  sqlite3_reset(statement_.get());
  bound_ = 0;
  if (code != SQLITE_DONE) return error;
  return false;
}

Status Statement::Run() {
  CULPRIT_ASSIGN(const bool row, Step());
  CULPRIT_CHECK(!row);
  return {};
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

Result<Database> Database::Open(const std::string& path, Mode mode, std::string damage_hint) {
  int flags = mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  auto connection = std::make_unique<Connection>(path, std::move(damage_hint));
  const int code =
      sqlite3_open_v2(path.c_str(), &connection->handle, flags | SQLITE_OPEN_EXRESCODE, nullptr);
  if (code != SQLITE_OK) return connection->Failure(code);
  sqlite3_busy_timeout(connection->handle, kBusyTimeoutMs);
  return Database(std::move(connection));
}

Result<Statement> Database::Prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_->handle, sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return connection_->Failure(code);
  return Statement(*connection_, statement);
}

Status Database::Execute(const char* sql) const {
  const int code = sqlite3_exec(connection_->handle, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return connection_->Failure(code);
  return {};
}

Result<int64_t> Database::QueryInt(std::string_view sql) const {
  CULPRIT_ASSIGN(Statement statement, Prepare(sql));
  CULPRIT_ASSIGN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

int64_t Database::LastInsertId() const { return sqlite3_last_insert_rowid(connection_->handle); }

bool Database::InTransaction() const { return sqlite3_get_autocommit(connection_->handle) == 0; }

bool Database::LastErrorIsDamage() const { return IsDamage(connection_->last_failure); }

}  // namespace culprit
