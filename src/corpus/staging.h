// SPDX-License-Identifier: Apache-2.0
//
// Names of the files in traces/.staging/: PID-PLACE-SERIAL.ctrace. PID is the
// process that writes it; PLACE stands for the running system and its pid
// namespace, because a pid means nothing elsewhere (a corpus may lie on a
// shared file system, or be written from containers). So anyone can tell later
// whether the writer still lives, and a file of the living is never touched.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit::corpus {

// A path at which nothing exists; makes the folder if needed. Thread-safe.
Result<std::string> MakeStagingPath(const std::string& staging_folder);

enum class StagingWriter {
  kAlive,
  kDead,
  kElsewhere,  // another system or namespace, or a name not made here
};
StagingWriter WriterOf(std::string_view file_name);

// A staged file that is removed unless it was moved away.
class StagedFile {
 public:
  explicit StagedFile(std::string path) : path_(std::move(path)) {}
  StagedFile(StagedFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace culprit::corpus
