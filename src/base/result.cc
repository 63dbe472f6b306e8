// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace culprit {

std::string Error::ToString() const {
  std::string text;
  if (!file.empty()) text += file + ": ";
  text += message;
  if (offset) text += " (at byte " + std::to_string(*offset) + ")";
  return text;
}

Error ErrnoError(std::string_view what, std::string_view file) {
  const int code = errno;
  Error error{.message = "cannot " + std::string(what) + ": " + std::strerror(code),
              .file = std::string(file)};
  if (code == EACCES || code == EPERM)
    error.hint = "check the permissions, or run as a user who may";
  if (code == ENOSPC) error.hint = "free some space on that disk, then run the command again";
  return error;
}

}  // namespace culprit
