// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or the Error that says why there is none. Used for
// operations that could not be done at all (no such file, not a trace, disk
// full). An Error names the file and the byte offset where they are known, and
// may carry a hint: what the user can do next. Nothing below cli/ prints or
// exits; errors travel up as values.
//
// Status is Result<void>. CULPRIT_TRY(expr) returns early on an error and
// drops the value; CULPRIT_ASSIGN(lhs, expr) keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace culprit {

struct Error {
  std::string message;
  std::string file = {};
  std::optional<uint64_t> offset = {};
  std::string hint = {};

  // "FILE: MESSAGE (at byte OFFSET)"; the hint is left to the caller.
  std::string ToString() const;
};

// The Error of a failed system call: "cannot WHAT: strerror(errno)".
Error ErrnoError(std::string_view what, std::string_view file);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  T& value() & {
    CULPRIT_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    CULPRIT_CHECK(ok());
    return std::get<0>(state_);
  }
  // By value, so that a loop over `F().value()` does not dangle.
  T value() && {
    CULPRIT_CHECK(ok());
    return std::get<0>(std::move(state_));
  }
  const Error& error() const {
    CULPRIT_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  void value() const { CULPRIT_CHECK(ok()); }
  const Error& error() const {
    CULPRIT_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace culprit

#define CULPRIT_CONCAT_INNER(a, b) a##b
#define CULPRIT_CONCAT(a, b) CULPRIT_CONCAT_INNER(a, b)
#define CULPRIT_TRY(expr)                                    \
  do {                                                       \
    const auto& culprit_status = (expr);                     \
    if (!culprit_status.ok()) return culprit_status.error(); \
  } while (false)
#define CULPRIT_ASSIGN_INNER(result, lhs, expr) \
  auto result = (expr);                         \
  if (!result.ok()) return result.error();      \
  lhs = std::move(result).value()
#define CULPRIT_ASSIGN(lhs, expr) \
  CULPRIT_ASSIGN_INNER(CULPRIT_CONCAT(culprit_result_, __LINE__), lhs, expr)
