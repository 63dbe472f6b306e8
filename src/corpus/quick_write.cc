// SPDX-License-Identifier: Apache-2.0
#include "corpus/quick_write.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/file.h"

namespace culprit::corpus {

Status WriteQuickly(const std::string& path, std::string_view bytes) {
  CULPRIT_ASSIGN(const std::string temporary, CreateTemporary(path, Overwrite::kAllow));
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written =
      fd >= 0 && ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const bool renamed = written && ::rename(temporary.c_str(), path.c_str()) == 0;
  Status status;
  if (!renamed) status = ErrnoError("write", path);
  if (fd >= 0) ::close(fd);
  if (!renamed) ::unlink(temporary.c_str());
  return status;
}

}  // namespace culprit::corpus
