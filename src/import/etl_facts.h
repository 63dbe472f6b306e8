// SPDX-License-Identifier: Apache-2.0
//
// EtlFacts: what an ETW recording tells, in order of time, to facts for the
// Assembler. Events come from the merge; processes, threads, images and disk
// requests, which the survey has, are told in between when their time comes.
//
//  - A switch names both threads and the state of the old one: waiting, ready
//    or terminated. The stack of a wait is the one at the next switch-in.
//  - ReadyThread is written by whoever runs on that CPU: the waker. If its flag
//    says that a deferred procedure call did it, or the idle thread ran, it was a
//    device: the timer if the thread slept, else named by the drivers in the stack.
//  - What is first heard of as ending or being listed was there from the
//    beginning. Process and thread ids are used again; a start is a new one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "import/etl_frames.h"
#include "import/etl_survey.h"
#include "import/importer.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

class EtlFacts {
 public:
  // All outlive this object.
  EtlFacts(const EtlHeader& header, const EtlSurvey& survey, const ImportOptions& options,
           trace::TraceWriter& writer, assemble::Assembler& assembler, Diagnostics& diagnostics);

  // What was there before the first event.
  void Begin();
  Status Feed(const EtlEvent& event, uint64_t offset);
  // Tells what is left and counts what was left out.
  Status Finish();
  // Marks from the start to the end of every process that did either within the
  // recording. Once the assembler has finished and knows what that covers.
  Status MarkProcesses();

 private:
  struct LiveProcess {
    int64_t key = 0;  // what the assembler knows it by: unique, unlike the pid
    StringId name;
    trace::ProcessId id;
    trace::ThreadId thread;  // its first
  };

  Status Switch(const EtlEvent& event, uint64_t offset);
  Status Ready(const EtlEvent& event, uint64_t offset);
  Status Sample(const EtlEvent& event, uint64_t offset);
  // Tells all that happened up to `time` beside the events.
  Status CatchUp(uint64_t time);
  Status Issue(const EtlDiskRequest& request, size_t number);
  Status Complete(const EtlDiskRequest& request, size_t number);
  void Tell(const EtlProcessRow& row);
  void Tell(const EtlThreadRow& row);
  void Tell(const EtlImageRow& row);
  void BeginProcesses();
  void BeginThreads();
  void BeginImages();
  LiveProcess& Process(uint32_t pid);
  void NewProcess(uint32_t pid, uint64_t time);
  Status Mark(trace::ThreadId thread, int64_t time_ns, StringId name, uint8_t flags);
  void NameProcess(const EtlProcessRow& row);
  void Attach(const EtlThreadRow& row);
  int64_t PidOf(uint32_t tid) const;

  const EtlHeader& header_;
  const EtlSurvey& survey_;
  trace::TraceWriter& writer_;
  assemble::Assembler& assembler_;
  Diagnostics& diagnostics_;
  EtlFrames frames_;
  std::unordered_map<uint32_t, LiveProcess> processes_;  // by pid
  std::vector<LiveProcess> past_;                        // whose pid was used again
  std::unordered_map<uint32_t, uint32_t> owners_;        // pid by tid
  std::vector<uint32_t> running_;                        // tid by CPU
  std::unordered_set<uint32_t> asleep_;                  // threads that wait for a time only
  std::vector<size_t> ends_;                             // requests in order of their end
  // Images that were only listed, of processes yet to start, by pid.
  std::unordered_map<uint32_t, std::vector<EtlImageRow>> late_images_;
  int64_t generations_ = 0;
  size_t next_process_ = 0;
  size_t next_thread_ = 0;
  size_t next_image_ = 0;
  size_t next_start_ = 0;
  size_t next_end_ = 0;
  bool timer_samples_ = true;  // else those of cycles count
  uint64_t other_counters_ = 0;
};

}  // namespace culprit::import_
