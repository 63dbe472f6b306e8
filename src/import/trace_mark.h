// SPDX-License-Identifier: Apache-2.0
//
// TraceMarks: the texts that programs write to trace_marker in Android's
// convention, turned into slices and instances:
//
//   B|PID|NAME           begins a slice of the writing thread
//   E|PID                ends its innermost slice
//   S|PID|NAME|COOKIE    begins an operation that may end on another thread
//   F|PID|NAME|COOKIE    ends it: an instance of scenario NAME
//
// Counters and other texts are not marks. Open operations are kept until they
// end, at most kMaxOpen of them. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "base/result.h"

namespace culprit::import_ {

struct TraceMark {
  char phase = 0;  // one of B E S F
  int64_t pid = -1;
  std::string_view name = {};
  std::string_view cookie = {};
};

std::optional<TraceMark> ParseTraceMark(std::string_view text);

class TraceMarks {
 public:
  static constexpr size_t kMaxOpen = 100'000;

  TraceMarks(assemble::Assembler& assembler, Diagnostics& diagnostics)
      : assembler_(assembler), diagnostics_(diagnostics) {}

  // False if `text` is no mark; then nothing was done.
  Result<bool> Feed(int64_t time_ns, int64_t tid, std::string_view text, uint64_t offset);

 private:
  struct Open {
    int64_t tid = -1;
    int64_t time_ns = 0;
  };

  void EndOperation(int64_t time_ns, const std::string& key, std::string_view name,
                    uint64_t offset);

  assemble::Assembler& assembler_;
  Diagnostics& diagnostics_;
  std::map<std::string, Open> open_;  // by "PID|NAME|COOKIE"
  std::unordered_set<int64_t> placed_;
};

}  // namespace culprit::import_
