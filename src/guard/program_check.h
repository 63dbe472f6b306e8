// SPDX-License-Identifier: Apache-2.0
//
// Whether a program can be guarded, asked before it is started. The runtime comes
// in by the dynamic loader, so static programs, programs of another class or
// machine, and those that the loader protects (setuid, file capabilities) are
// refused with the reason; so is Go, whose stacks move. A script is followed to
// its interpreter. Reads a few kilobytes of the file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "guard/profile.h"

namespace culprit::guard {

struct ProgramFacts {
  std::string path;      // of the binary that will run, links followed
  std::string name;      // the same as it was found, before links were followed
  std::string build_id;  // hexadecimal; empty: it has none
  bool is_script = false;
};

// `command` as a shell has it: looked for in PATH unless it has a slash.
Result<ProgramFacts> CheckProgram(const std::string& command);

// The program's build-id and those of its loaded or needed modules against the
// profile's: an Error names the first that differs, both ids. A program that is
// not in the profile at all is an Error too, unless it is a script.
Status CheckBuildIds(const Profile& profile, const ProgramFacts& program);

}  // namespace culprit::guard
