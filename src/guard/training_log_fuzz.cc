// SPDX-License-Identifier: Apache-2.0
// Any bytes as the log of a small process: learning never fails but says so.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/test_folder.h"
#include "guard/learn.h"
#include "guard/runtime/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace wire = culprit::guard::wire;
  static const culprit::TestFolder folder;
  wire::LogHeader header = {};
  header.magic = wire::Magic("CGLOG_01");
  header.version = wire::kWireVersion;
  header.pid = header.tid = 7;
  std::string log(reinterpret_cast<const char*>(&header), sizeof(header));
  log.append(reinterpret_cast<const char*>(data), size);
  folder.Write("log.7.7", log);
  folder.Write("modules.7", "0 0 ffffffff abcdef /bin/program\n");
  wire::FunctionsHeader functions = {};
  functions.magic = wire::Magic("CGFUNC01");
  functions.version = wire::kWireVersion;
  std::string table(reinterpret_cast<const char*>(&functions), sizeof(functions));
  for (uint64_t i = 0; i < 16; ++i) {
    const wire::FunctionRecord record{0x1000 + i * 0x100, 0, 0x100};
    table.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  folder.Write("functions.7", table);
  culprit::Progress progress;
  culprit::Diagnostics diagnostics;
  culprit::guard::LearnOptions options;
  options.names = false;
  const auto profile = culprit::guard::Learn(folder.path(), options, progress, diagnostics);
  if (profile.ok()) CULPRIT_CHECK(culprit::guard::FirstContradiction(profile.value()).empty());
  return 0;
}
