// SPDX-License-Identifier: Apache-2.0
// Any bytes as the log of a small process: learning never fails but says so, and so
// does the walk over its calls, which keeps those alone in which something happened.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/test_folder.h"
#include "guard/call_walk.h"
#include "guard/learn.h"
#include "guard/runtime/wire.h"

namespace {

void Walk(const std::string& folder) {
  culprit::Diagnostics diagnostics;
  const auto logs = culprit::guard::ListLogs(folder, diagnostics);
  if (!logs.ok() || logs.value().empty()) return;
  culprit::guard::SessionCode code;
  code.AddProcess(folder, 7, diagnostics);
  culprit::guard::CallPaths paths;
  const int64_t moments[] = {0, 1'000'020, 1'000'500, 2'000'000};
  const auto walked =
      culprit::guard::CallWalk(code, logs.value()[0], moments, paths).Run(diagnostics);
  if (!walked.ok()) return;
  for (const culprit::guard::WalkedCall& call : walked.value().calls) {
    CULPRIT_CHECK(call.path < paths.nodes().size() && call.first_moment < 4);
  }
}

}  // namespace

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
  Walk(folder.path());
  culprit::Progress progress;
  culprit::Diagnostics diagnostics;
  culprit::guard::LearnOptions options;
  options.names = false;
  const auto profile = culprit::guard::Learn(folder.path(), options, progress, diagnostics);
  if (profile.ok()) CULPRIT_CHECK(culprit::guard::FirstContradiction(profile.value()).empty());
  return 0;
}
