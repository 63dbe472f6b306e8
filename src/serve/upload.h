// SPDX-License-Identifier: Apache-2.0
//
// Uploads: traces sent over HTTP, in any format import reads. A body goes to a
// file of its own in the spool as it comes, within a bound; only a whole one is
// queued. Importing is the site's background work. What was cut off, too large or
// not a trace leaves no file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/http_server.h"

namespace culprit::serve {

struct Upload {
  std::string path;  // in the spool; removed by whoever imports it
  std::string name;  // for the trace
};

// Where whole uploads go; called from server threads.
class UploadQueue {
 public:
  virtual ~UploadQueue() = default;
  virtual void Queue(Upload upload) = 0;
};

// A name fit for a trace: letters, digits, '.', '-', '_'; none of them: an Error.
Result<std::string> CleanTraceName(std::string_view text);

// `spool` must be a folder; the queue must outlive the sink.
std::unique_ptr<BodySink> MakeUploadSink(const std::string& spool, const std::string& name,
                                         uint64_t max_bytes, UploadQueue& queue);

// Imports the file into the corpus and removes it from the spool. Returns how
// many traces were added.
Result<uint64_t> ImportUpload(const Upload& upload, const std::string& corpus);

}  // namespace culprit::serve
