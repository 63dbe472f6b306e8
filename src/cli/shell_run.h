// SPDX-License-Identifier: Apache-2.0
//
// RunShell: runs a command line in /bin/sh and gives what it printed, both
// streams together, and its exit code. For tests that drive real programs (bash, groff,
// culprit itself); no part of the product uses it.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/check.h"
#include "base/test_folder.h"

namespace culprit::cli {

struct ShellOutcome {
  int code = -1;
  std::string text;
};

inline ShellOutcome RunShell(const std::string& command_line) {
  ShellOutcome outcome;
  FILE* pipe = ::popen(("{ " + command_line + "\n} 2>&1").c_str(), "r");
  CULPRIT_CHECK(pipe != nullptr);
  char chunk[4096];
  for (size_t count; (count = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) {
    outcome.text.append(chunk, count);
  }
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline bool HasProgram(const std::string& name) { return RunShell("command -v " + name).code == 0; }

using TemporaryFolder = TestFolder;

}  // namespace culprit::cli
