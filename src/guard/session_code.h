// SPDX-License-Identifier: Apache-2.0
//
// SessionCode: the code of all processes of a training session: modules.PID and
// functions.PID (runtime/wire.h) brought together, so that a function has one
// number whatever process entered it and wherever its module was loaded. Modules
// are the same if build-id and file name are; modules without a build-id cannot
// be guarded and are kept apart by path.
//
// Numbers are in order of process id, then as the process lists them. A process
// that inherits function ids (a fork) looks them up in its parent's table.
// Immutable after Read; any number of threads. 16 bytes a function and process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "guard/profile.h"

namespace culprit::guard {

struct CodeAddress {
  uint32_t module = kNoIndex;
  uint64_t offset = 0;

  auto operator<=>(const CodeAddress&) const = default;
};

class SessionCode {
 public:
  struct Function {
    uint32_t module = 0;
    uint64_t offset = 0;
    uint32_t size = 0;
  };

  // Adds the process's tables; what it inherits from must have been added.
  void AddProcess(const std::string& session_folder, uint32_t pid, Diagnostics& diagnostics);

  const std::vector<ProfileModule>& modules() const { return modules_; }
  const std::vector<Function>& functions() const { return functions_; }

  // The function that `id` means in the process's logs; kNoIndex: not listed.
  uint32_t FunctionOf(uint32_t pid, uint32_t id) const;
  // The same for a whole process: a table by id.
  const std::vector<uint32_t>& FunctionIds(uint32_t pid) const;
  CodeAddress Resolve(uint32_t pid, uint64_t address) const;
  // The function whose extent holds the place; kNoIndex: none.
  uint32_t FunctionAt(const CodeAddress& place) const;

 private:
  struct Loaded {
    uint64_t bias = 0;
    uint64_t end = 0;
    uint32_t module = 0;
  };
  struct Process {
    std::vector<Loaded> loaded;  // by bias
    std::map<uint32_t, uint32_t> module_of_index;
    std::vector<uint32_t> functions;  // by id
  };
  void AddModules(std::string_view text, Process& process, Diagnostics& diagnostics);
  void AddFunctions(std::string_view bytes, Process& process, Diagnostics& diagnostics);

  std::vector<ProfileModule> modules_;
  std::map<std::pair<std::string, std::string>, uint32_t> module_numbers_;
  std::vector<Function> functions_;
  std::map<CodeAddress, uint32_t> function_numbers_;  // by place
  std::map<uint32_t, Process> processes_;
};

}  // namespace culprit::guard
