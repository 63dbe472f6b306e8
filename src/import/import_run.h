// SPDX-License-Identifier: Apache-2.0
//
// ImportOne: from one Source to one native trace file. Every format looks at
// the input's first bytes; the surest reads it, of equals the first of the
// table. Instances by rule or table are then looked up in the finished trace and
// written in by copying it once. On failure nothing is left at the path. Safe
// from several threads with different paths.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/importer.h"
#include "import/instance_rule.h"
#include "import/source.h"

namespace culprit::import_ {

struct ImportRequest {
  ImportOptions options = {};
  std::string format = {};  // the name of an importer; empty: by content
  std::vector<InstanceRule> rules = {};
  std::vector<InstanceRow> instances = {};
};

struct ImportOutcome {
  std::string format;
  uint64_t events = 0;
  uint64_t threads = 0;  // with events; without devices and idle tasks
  uint64_t stacks = 0;   // distinct stacks that events have
  uint64_t frames = 0;
  uint64_t unnamed_frames = 0;         // known by module and offset only
  uint64_t unnamed_kernel_frames = 0;  // of these
  uint64_t waits = 0;
  uint64_t waits_with_waker = 0;
  uint64_t instances = 0;
  int64_t dur_ns = 0;
  bool has_switches = false;
  Diagnostics diagnostics = {};
};

// The importer that reads it, or an Error that says how it begins and what is
// known.
Result<const Importer*> ChooseImporter(const Source& source, const std::string& format);

Result<ImportOutcome> ImportOne(const Source& source, const ImportRequest& request,
                                const std::string& path);

}  // namespace culprit::import_
