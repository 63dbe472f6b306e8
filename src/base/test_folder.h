// SPDX-License-Identifier: Apache-2.0
//
// TestFolder: a fresh folder for one test, removed with everything in it at
// the end. For tests only.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"

namespace culprit {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern =
        std::filesystem::temp_directory_path().string() + "/culprit-test-" + std::string(6, 'X');
    CULPRIT_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Writes a file and returns its path.
  std::string Write(std::string_view name, std::string_view bytes) const {
    const std::string path = *this / name;
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    return path;
  }

 private:
  std::string path_;
};

}  // namespace culprit
