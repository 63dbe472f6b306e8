// SPDX-License-Identifier: Apache-2.0
//
// GzipSink: compresses what is written and hands it to a Sink as one gzip
// member. The bytes depend on the input alone: no time, no name. Finish() must
// be called; without it the output is cut. Not movable: the compressor keeps
// its address. One thread at a time.
#pragma once

#include <optional>
#include <string_view>

#include "export/target.h"

struct archive;

namespace culprit::export_ {

class GzipSink {
 public:
  explicit GzipSink(const Sink& sink);
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;
  ~GzipSink();

  Status Write(std::string_view bytes);
  Status Finish();

 private:
  static long Pass(archive* archive, void* self, const void* bytes, size_t size);
  Status Check(long result);

  const Sink& sink_;
  archive* archive_;
  std::optional<Error> sink_error_;
  Status opened_;
};

}  // namespace culprit::export_
