// SPDX-License-Identifier: Apache-2.0
//
// PerfDataStream: the records of a perf.data one after the other, from a range
// of the input, with compressed ones replaced by what is in them. Data that
// follows a record outside of it (tracing data, hardware traces) is stepped
// over; tracing data is handed out as the body of its record. A record that is
// cut short or has an impossible size ends the stream and is counted.
//
// Memory: one chunk of input, one of decompressed bytes, both bounded whatever
// the input says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/perf_data_layout.h"
#include "import/source.h"

namespace culprit::import_ {

class PerfDataStream {
 public:
  using Visitor = std::function<Status(const PerfRecordView&)>;

  // [begin, end) of `bytes`; all outlive this object.
  PerfDataStream(const Bytes& bytes, uint64_t begin, uint64_t end, bool big,
                 Diagnostics& diagnostics);
  ~PerfDataStream();

  // Visits all records. With `decompress` false compressed ones are left out.
  Status Visit(const Visitor& visitor, bool decompress = true);

 private:
  struct Decompressor;

  Result<std::string_view> View(uint64_t offset, size_t count);
  std::string_view InChunk(uint64_t offset) const;
  Result<std::string_view> Fetch(uint64_t offset);
  Status Decompress(const PerfRecordView& record, const Visitor& visitor);
  Status VisitUnpacked(uint64_t offset, const Visitor& visitor);
  Result<uint64_t> Follower(PerfRecordView& record);

  const Bytes& bytes_;
  uint64_t begin_;
  uint64_t end_;
  bool big_;
  Diagnostics& diagnostics_;
  std::string chunk_;
  uint64_t chunk_offset_ = 0;
  std::string tracing_;
  std::unique_ptr<Decompressor> decompressor_;
};

}  // namespace culprit::import_
