// SPDX-License-Identifier: Apache-2.0
//
// Database and Statement: SQLite as this program uses it. They own the handles,
// turn SQLite's codes into Errors that name the file and say what to do, and
// wait up to kBusyTimeoutMs for another process's lock. One thread at a time
// per Database and its Statements; a Statement must not outlive its Database.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace culprit {

inline constexpr int kBusyTimeoutMs = 60'000;

// What a Database and its Statements share; at a fixed address.
struct Connection {
  Connection(std::string file, std::string hint)
      : path(std::move(file)), damage_hint(std::move(hint)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();
  Error Failure(int code);

  std::string path;
  std::string damage_hint;
  sqlite3* handle = nullptr;
  int last_failure = 0;  // SQLite's code of the last Error
};

class Statement {
 public:
  // Values for the parameters ?1, ?2, ... in order. Text is copied.
  Statement& Bind(int64_t value);
  Statement& Bind(uint64_t value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(uint32_t value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(bool value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(std::string_view text);
  Statement& Bind(const std::string& text) { return Bind(std::string_view(text)); }
  Statement& BindNull();
  Statement& BindTextOrNull(std::string_view text) {
    return text.empty() ? BindNull() : Bind(text);
  }

  // True: there is a row to read. False: done, and ready to be bound again.
  Result<bool> Step();
  // For statements without rows.
  Status Run();

  int64_t Int(int column) const;
  uint64_t Uint(int column) const { return static_cast<uint64_t>(Int(column)); }
  std::string Text(int column) const;

 private:
  friend class Database;
  Statement(Connection& connection, sqlite3_stmt* statement)
      : connection_(&connection), statement_(statement) {}
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

class Database {
 public:
  enum class Mode { kRead, kReadWrite, kCreate };
  // kReadWrite falls back to reading where the file or folder is read-only.
  // `damage_hint` is what errors about a damaged file advise.
  static Result<Database> Open(const std::string& path, Mode mode, std::string damage_hint = {});

  Result<Statement> Prepare(std::string_view sql) const;
  // One or more statements without parameters and results.
  Status Execute(const char* sql) const;
  // The single number a query such as "PRAGMA user_version" gives.
  Result<int64_t> QueryInt(std::string_view sql) const;
  int64_t LastInsertId() const;
  bool InTransaction() const;
  // The last failure was that the file is damaged or no database at all.
  bool LastErrorIsDamage() const;
  const std::string& path() const { return connection_->path; }

 private:
  explicit Database(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  std::unique_ptr<Connection> connection_;
};

}  // namespace culprit
