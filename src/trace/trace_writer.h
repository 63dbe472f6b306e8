// SPDX-License-Identifier: Apache-2.0
//
// TraceWriter: writes a native trace (docs/format.md) as it grows. Events go
// into a block; a full block is encoded and written together with whatever
// the dictionary and the instance table gained since the last one, so a file
// cut anywhere still holds every whole block and all it refers to. Memory is
// one block plus the dictionary, however long the trace.
//
// Events may come in any order; near time order gives tight blocks and an
// index that skips well. Ids in events must be those of dictionary(). A thread
// or process may be changed (name, end) until Finish(): late changes are
// written again at the end. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "trace/event_census.h"
#include "trace/trace.h"

namespace culprit::trace {

struct WriterOptions {
  size_t block_events = 64 * 1024;
  int zstd_level = 3;             // or kNoCompression (column_codec.h)
  EventCensus* census = nullptr;  // counts every event; outlives the writer
};

class TraceWriter {
 public:
  using Sink = std::function<Status(std::string_view)>;

  // Everything goes through `sink`, in order; it decides where to.
  explicit TraceWriter(Sink sink, WriterOptions options = {});
  TraceWriter(TraceWriter&&) noexcept;
  ~TraceWriter();

  Dictionary& dictionary();
  // Read at every block and at Finish(); the last state wins.
  Metadata& metadata();
  void AddInstance(const Instance& instance);
  Status Add(const Event& event);
  // Writes what has come as a block, however small: it can be read from then on.
  Status Flush();
  // Writes what is left, the index and the trailer. Nothing may follow.
  Status Finish();

  uint64_t events() const;
  uint64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A whole trace into a new file: under a temporary name, renamed when done.
Status WriteTrace(const Trace& trace, const std::string& path, Overwrite overwrite,
                  WriterOptions options = {});
// The same bytes in memory.
std::string EncodeTrace(const Trace& trace, WriterOptions options = {});

}  // namespace culprit::trace
