// SPDX-License-Identifier: Apache-2.0
//
// Site: a corpus as a live site for a team (docs/serve.md). One background
// thread analyses the corpus when the site starts, after an upload, after a mark
// and when the catalog changes under it; readers always see one whole analysis,
// the last that finished, and never wait for the next. Answers to readers touch
// memory only.
//
// Every path is one of a fixed set or the name of a part: no file of the machine
// can be named by a request. Where the address is not loopback a token is asked
// of every request but the page itself; on loopback the Host header must name
// this machine, so that a page of another site cannot read along.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "analyze/analysis.h"
#include "base/result.h"
#include "serve/http_server.h"

namespace culprit::serve {

struct SiteOptions {
  std::string corpus;
  std::string token;     // empty: none is asked
  bool loopback = true;  // check Host
  bool uploads = false;  // take traces
  uint64_t max_upload_bytes = uint64_t{4} << 30;
  uint32_t poll_ms = 2000;  // how often the catalog is looked at
  analyze::AnalysisOptions analysis;
};

class Site : public Service {
 public:
  // Fails if there is no corpus at the path, or the page was not built in.
  static Result<std::unique_ptr<Site>> Open(const SiteOptions& options);
};

}  // namespace culprit::serve
