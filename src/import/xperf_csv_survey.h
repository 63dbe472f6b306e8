// SPDX-License-Identifier: Apache-2.0
//
// XperfSurvey: what must be known of an xperf dump before its lines can be told
// in order: stacks, which are printed after the event they belong to (that of a
// wait after the thread's next switch-in), disk requests, the sampling interval
// and who the recorder was. The same tables as for the log file itself; what is
// an address there is the number of a frame here.
//
// Memory: that of the tables, and every distinct text of a frame once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/etl_disk_table.h"
#include "import/etl_stack_table.h"
#include "import/source.h"
#include "import/xperf_csv_line.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

struct XperfSurvey {
  XperfLayout layout;
  uint64_t data_offset = 0;  // where the header ends
  std::string os_version;
  uint64_t start_time = 0;  // 100 ns since 1601
  uint64_t events_lost = 0;
  int64_t interval_100ns = 0;
  EtlStackTable stacks;
  bool has_stacks = false;               // there are stack lines
  std::vector<EtlDiskRequest> requests;  // in order of their start
  bool has_header = false;
};

// Frames go to the dictionary.
Result<XperfSurvey> SurveyXperf(const Bytes& bytes, trace::Dictionary& dictionary,
                                Diagnostics& diagnostics);

}  // namespace culprit::import_
