// SPDX-License-Identifier: Apache-2.0
//
// OpenWork: what has begun and not yet ended beside the tiles: system calls,
// block requests, slices. Ends are joined with their begins; what is still open
// when its thread or the trace ends is written as kUnfinished, because a call
// that never came back may be the very hang one looks for. An entry whose exit
// was lost (another entry follows) is only counted: it was no giant wait.
//
// Memory: one call a thread, kMaxSliceDepth slices a thread, kMaxBlockRequests.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "assemble/assembler.h"
#include "assemble/event_sink.h"
#include "assemble/thread_table.h"

namespace culprit::assemble {

inline constexpr size_t kMaxSliceDepth = 256;
inline constexpr size_t kMaxBlockRequests = 1 << 18;

class OpenWork {
 public:
  OpenWork(EventSink& sink, ThreadTable& threads) : sink_(sink), threads_(threads) {}

  void SyscallEnter(LiveThread& thread, const OpenSyscall& call);
  void SyscallExit(LiveThread& thread, int64_t time_ns, int64_t number, int64_t result);
  void BlockIssue(const BlockFact& fact);
  void BlockComplete(const BlockFact& fact);
  void SliceBegin(LiveThread& thread, int64_t time_ns, std::string_view name);
  void SliceEnd(LiveThread& thread, int64_t time_ns, std::string_view name);

  // The thread, or the trace, ends here.
  void Close(LiveThread& thread, int64_t time_ns);
  void CloseBlocks(int64_t time_ns);

 private:
  using BlockKey = std::pair<std::string, uint64_t>;
  struct Request {
    int64_t time_ns = 0;
    int64_t bytes = 0;
    int64_t operation = 0;
    trace::ThreadId requester;
    trace::StackId stack;
  };

  void EmitRequest(const BlockKey& key, const Request& request, int64_t end_ns, uint8_t flags);
  void EmitMarker(const LiveThread& thread, int64_t time_ns, StringId name, size_t depth,
                  uint8_t flags);
  void PopSlice(LiveThread& thread, int64_t time_ns);

  EventSink& sink_;
  ThreadTable& threads_;
  std::map<BlockKey, Request> requests_;
};

}  // namespace culprit::assemble
