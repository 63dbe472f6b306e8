// SPDX-License-Identifier: Apache-2.0
//
// Profiles learnt from simulated trainings, and their functions by the names that the
// simulation gave them. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "guard/learn.h"
#include "guard/simulated_training.h"

namespace culprit::guard {

struct Learned {
  Profile profile;
  Diagnostics diagnostics;
};

inline LearnOptions WithoutNames() {
  LearnOptions options;
  options.names = false;
  return options;
}

inline Learned MustLearn(const TestFolder& folder, const LearnOptions& options = WithoutNames()) {
  Learned learned;
  Progress progress;
  auto result = Learn(folder.path(), options, progress, learned.diagnostics);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().ToString());
  if (result.ok()) learned.profile = std::move(result).value();
  EXPECT_EQ(FirstContradiction(learned.profile), "");
  return learned;
}

// Functions of simulated processes stand at offsets by their id.
inline std::string NameOf(const Profile& profile, const SimulatedProcess& process,
                          uint32_t function) {
  if (function >= profile.functions.size()) return "?";
  const uint64_t offset = profile.functions[function].offset;
  return process.Names().at(offset / SimulatedProcess::kFunctionBytes - 1);
}

inline std::set<std::string> NamesOf(const Profile& profile, const SimulatedProcess& process,
                                     const std::vector<Context>& contexts) {
  std::set<std::string> names;
  for (const Context& context : contexts) names.insert(NameOf(profile, process, context.function));
  return names;
}

}  // namespace culprit::guard
