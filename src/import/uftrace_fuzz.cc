// SPDX-License-Identifier: Apache-2.0
// Any bytes as a data folder of uftrace: its text files, one of perf and one of a
// task, each but the last with two bytes for its length before it.
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "import/fuzz_import.h"
#include "import/importers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::import_;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<SourceFile> files;
  for (const char* path : {"app.sym", "info", "perf-cpu0.dat", "sid-abcd.map", "task.txt"}) {
    if (rest.size() < 2) return 0;
    const size_t named = static_cast<uint8_t>(rest[0]) | static_cast<uint8_t>(rest[1]) << 8;
    const size_t length = std::min(named, rest.size() - 2);
    files.push_back({path, std::make_shared<MemoryBytes>(std::string(rest.substr(2, length)))});
    rest.remove_prefix(2 + length);
  }
  files.push_back({"10.dat", std::make_shared<MemoryBytes>(std::string(rest))});
  return FuzzImport(UftraceImporter(), Source("fuzz", std::move(files)));
}
