// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packed summary, with a table beside it, and any bytes as a payload where
// they are one, which must come back as it was.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/check.h"
#include "corpus/random_forest.h"
#include "corpus/summary_stacks.h"

namespace {

using culprit::corpus::RandomForest;
using culprit::corpus::SummaryNames;
using culprit::corpus::SummaryStacks;

std::string Stacks(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  return RandomForest(random, 20, count).Canonical();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = (std::filesystem::temp_directory_path() /
                                     ("culprit-stacks-fuzz-" + std::to_string(::getpid())))
                                        .string();
  static SummaryNames names(folder);
  static SummaryStacks stacks(folder, names);
  // The mark and the digest.
  static const std::string table = stacks.Pack(Stacks(1, 200)).substr(0, 34);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)stacks.Unpack(bytes);
  (void)stacks.Unpack(table + bytes);
  const std::string payload = Stacks(size, size % 100) + bytes;
  CULPRIT_CHECK(stacks.Unpack(stacks.Pack(payload)) == payload);
  culprit::ByteReader in(bytes);
  culprit::corpus::CallForest forest;
  size_t frames = 0;
  if (!culprit::corpus::ReadForest(in, forest, frames)) return 0;
  const std::optional<std::string> back = stacks.Unpack(stacks.Pack(bytes));
  CULPRIT_CHECK(back.has_value());
  return 0;
}
