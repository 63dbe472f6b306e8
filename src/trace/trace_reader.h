// SPDX-License-Identifier: Apache-2.0
//
// TraceReader: reads a native trace (docs/format.md), whole or damaged.
// Opening reads the metadata, the dictionary and the index; events are decoded
// block by block on request, so memory is the dictionary plus one block. A file
// without its index (cut short, or still being written) is scanned from the
// front and yields all its whole blocks; complete() is then false. What was
// wrong is in diagnostics(), with byte offsets. Only a file that is no trace at
// all, or of a newer major version, is an Error.
//
// After Open() the reader is immutable; ReadBlock may be called from several
// threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/result.h"
#include "trace/trace.h"

namespace culprit::trace {

// One block of the index: enough to skip it without decoding.
struct BlockInfo {
  struct Owner {
    ThreadId thread;
    uint32_t events = 0;

    bool operator==(const Owner&) const = default;
  };

  uint64_t offset = 0;  // of its section in the file
  uint64_t length = 0;  // of the whole section
  uint32_t events = 0;
  int64_t min_time_ns = 0;  // earliest start
  int64_t max_end_ns = 0;   // latest end
  std::array<uint32_t, kEventKinds> kind_counts = {};
  // Whose events are here, ascending by thread; an unwait counts for the
  // thread it woke.
  std::vector<Owner> owners;

  bool HasKind(EventKind kind) const { return kind_counts[static_cast<size_t>(kind)] != 0; }
  bool HasThread(ThreadId thread) const;
};

// How events stand in a Trace: in canonical time order (trace.h), or those of one
// thread after those of the other, an unwait with the thread it woke, as they stand
// in the file. Files have them by thread, so the second is several times cheaper.
enum class EventOrder : uint8_t { kByTime, kByThread };

class TraceReader {
 public:
  static Result<TraceReader> Open(const std::string& path);
  // From memory; `name` stands for the path in messages.
  static Result<TraceReader> FromBytes(std::string bytes, std::string name);

  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  const Metadata& metadata() const;
  const Dictionary& dictionary() const;
  const std::vector<Instance>& instances() const;
  const std::vector<BlockInfo>& blocks() const;
  const Diagnostics& diagnostics() const;
  bool complete() const;
  uint64_t file_bytes() const;
  uint64_t events() const;

  // Replaces `events` by those of block `index`, grouped by thread (an unwait
  // stands with the thread it woke), by time within a thread. A damaged block
  // is an Error with its offset; the others are not affected.
  Status ReadBlock(size_t index, std::vector<Event>& events) const;

  // Moves everything out into a Trace with all readable events; damaged blocks are
  // counted in its diagnostics.
  Trace ReadAll(EventOrder order = EventOrder::kByTime) &&;

 private:
  struct State;
  bool ReadInPlace(std::vector<Event>& events) const;
  std::vector<Event> ReadBlocks();
  explicit TraceReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

Result<Trace> ReadTrace(const std::string& path, EventOrder order = EventOrder::kByTime);

}  // namespace culprit::trace
