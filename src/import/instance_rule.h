// SPDX-License-Identifier: Apache-2.0
//
// InstanceRule: instances of a scenario for traces that carry no marks, found
// in what was imported:
//
//   NAME: process GLOB
//       one instance a process of that name: its first thread, start to end
//   NAME: process-start GLOB .. call GLOB
//       from the start of the process to the first event of its first thread
//       that has a frame of that name in its stack
//
// GLOB knows * and ?; frames are "module!function". Times outside the recording
// are cut to it. InstanceTable is the same given as rows of a CSV file. Both
// read a finished trace block by block; memory is the dictionary and one bit a
// stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "trace/trace.h"
#include "trace/trace_reader.h"

namespace culprit::import_ {

struct InstanceRule {
  std::string scenario;
  std::string process;  // glob over names
  std::string call;     // glob over frames; empty: the whole process
};

Result<InstanceRule> ParseInstanceRule(std::string_view text);

// trace,scenario,tid,t0_ns,t1_ns; trace is the input's file name, or *.
struct InstanceRow {
  std::string trace;
  std::string scenario;
  int64_t tid = -1;
  int64_t t0_ns = 0;
  int64_t t1_ns = 0;
};
Result<std::vector<InstanceRow>> ReadInstanceTable(const std::string& path);

// An instance with its scenario by name, as it is not yet in the dictionary.
struct FoundInstance {
  std::string scenario;
  trace::ThreadId thread;
  int64_t t0_ns = 0;
  int64_t t1_ns = 0;
};

Result<std::vector<FoundInstance>> FindInstances(const trace::TraceReader& reader,
                                                 const std::vector<InstanceRule>& rules);
// Rows for `input` (a path; its file name counts). Rows of threads that the
// trace does not have, or outside it, are counted.
std::vector<FoundInstance> InstancesFromTable(const trace::TraceReader& reader,
                                              const std::vector<InstanceRow>& rows,
                                              std::string_view input, Diagnostics& diagnostics);

}  // namespace culprit::import_
