// SPDX-License-Identifier: Apache-2.0
//
// TestBinary: tiny programs made by the compiler at hand, for tests: a folder
// that goes away with the test, commands run in it, their output. Tests skip
// where a tool is not installed.
#pragma once

#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "base/test_folder.h"

namespace culprit::symbol {

class TestBinary {
 public:
  std::string Path(const std::string& name) const { return folder_ / name; }
  const std::string& folder() const { return folder_.path(); }
  void Write(const std::string& name, const std::string& text) const { folder_.Write(name, text); }
  // Runs a shell command in the folder; its standard output, or nothing if it
  // failed.
  std::string Run(const std::string& command) const {
    std::string out;
    FILE* pipe = popen(("cd " + folder() + " && " + command + " 2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return out;
    char chunk[4096];
    size_t count = 0;
    while ((count = fread(chunk, 1, sizeof chunk, pipe)) > 0) out.append(chunk, count);
    if (pclose(pipe) != 0) out.clear();
    return out;
  }
  bool Works(const std::string& command) const { return !Run(command + " && echo done").empty(); }

  // Name to address, as nm prints them: code symbols only.
  std::map<std::string, uint64_t> Functions(const std::string& name) const {
    std::map<std::string, uint64_t> functions;
    std::istringstream lines(Run("nm " + name));
    std::string address;
    std::string type;
    std::string symbol;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      if (words >> address >> type >> symbol && (type == "t" || type == "T" || type == "W")) {
        functions[symbol] = std::stoull(address, nullptr, 16);
      }
    }
    return functions;
  }

 private:
  TestFolder folder_;
};

}  // namespace culprit::symbol
