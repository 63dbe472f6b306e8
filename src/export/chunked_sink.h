// SPDX-License-Identifier: Apache-2.0
//
// ChunkedSink: collects small pieces of output and hands them to a Sink in
// large ones. What is left must be flushed; after an Error from the sink the
// rest is worthless. Does not own the sink. One thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "export/target.h"

namespace culprit::export_ {

class ChunkedSink {
 public:
  explicit ChunkedSink(const Sink& sink) : sink_(sink) {}

  Status Write(std::string_view piece) {
    pending_ += piece;
    return pending_.size() < kChunkBytes ? Status() : Flush();
  }
  Status Flush() {
    if (pending_.empty()) return {};
    const Status status = sink_(pending_);
    pending_.clear();
    return status;
  }

 private:
  static constexpr size_t kChunkBytes = 256 * 1024;

  const Sink& sink_;
  std::string pending_;
};

}  // namespace culprit::export_
