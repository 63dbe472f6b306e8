// SPDX-License-Identifier: Apache-2.0
//
// CallGraph: thousands of invented functions in some thirty modules, and who
// calls whom. Callees of a function are few and unevenly popular, so random
// walks through the graph share prefixes the way real stacks do; a walk may
// come back to a function, which is recursion. Names are made of word lists:
// CamelCase, Class::Method or snake_case by module. No made name equals one of
// kReservedNames, which only planted stacks use.
//
// Immutable after construction. A function of the seed alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "synth/random.h"

namespace culprit::synth {

using FunctionIndex = uint32_t;

class CallGraph {
 public:
  struct Function {
    uint32_t module = 0;
    std::string name;
  };

  explicit CallGraph(uint64_t seed);

  const Function& function(FunctionIndex index) const { return functions_[index]; }
  std::string_view ModuleName(uint32_t module) const;
  size_t size() const { return functions_.size(); }

  // Calls `length` functions, the first one in `module`; appends to `out`.
  void Walk(std::string_view module, size_t length, Random& random,
            std::vector<FunctionIndex>& out) const;

 private:
  FunctionIndex Callee(FunctionIndex caller, size_t which) const;

  uint64_t seed_;
  std::vector<Function> functions_;
  std::vector<uint32_t> first_;  // of each module, and one past the last
};

// .sys modules and "kernel".
bool IsKernelModule(std::string_view module);

}  // namespace culprit::synth
