// SPDX-License-Identifier: Apache-2.0
//
// TestFolder: a folder that goes with its object. (The runtime's tests link nothing but
// the runtime.)
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace culprit::guard::runtime {

class TestFolder {
 public:
  TestFolder() {
    char pattern[] = "/tmp/culprit-test-XXXXXX";
    path_ = mkdtemp(pattern);
  }
  ~TestFolder() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace culprit::guard::runtime
