// SPDX-License-Identifier: Apache-2.0
//
// Pushes: native traces that `culprit push` sends, known by the hash of their
// bytes. What arrives is kept in the spool, so that a sender whose connection was
// cut goes on where it stopped; a whole trace is checked against its hash and
// added to the corpus before it is answered for. A trace that is there already
// is never taken again. Called from server threads at once; of one trace one
// piece at a time is taken.
//
//   GET /api/v1/pushes/SHA256   {"state": "whole" | "part", "bytes": N}
//   PUT /api/v1/pushes/SHA256   the bytes from X-Culprit-Offset on; the whole has
//                               X-Culprit-Size, the trace X-Culprit-Name
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "serve/http_server.h"

namespace culprit::serve {

class Pushes {
 public:
  // `spool` must be a folder. Pieces older than a week are removed now.
  Pushes(std::string corpus, std::string spool, uint64_t max_bytes);

  // 64 hexadecimal digits.
  static bool IsName(std::string_view sha256);

  HttpResponse State(const std::string& sha256) const;
  // The sink must not outlive this.
  std::unique_ptr<BodySink> Take(const HttpRequest& request, const std::string& sha256);

  // Used by the sinks.
  std::string PiecePath(const std::string& sha256) const;
  HttpResponse AddWhole(const std::string& sha256, const std::string& name);
  void LetGo(const std::string& sha256);
  uint64_t max_bytes() const { return max_bytes_; }

 private:
  const std::string corpus_;
  const std::string spool_;
  const uint64_t max_bytes_;
  std::mutex mutex_;
  std::set<std::string> busy_;
};

}  // namespace culprit::serve
