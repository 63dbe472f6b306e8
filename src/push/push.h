// SPDX-License-Identifier: Apache-2.0
//
// Push: sends all traces of a corpus, or single trace files, to a target. Each
// is sent or told why not; one that cannot be sent does not stop the others. With
// a key they are made anonymous first: the same trace under the same key is the
// same bytes, so it is known at the target when it is sent again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "push/pseudonyms.h"
#include "push/target.h"

namespace culprit::push {

struct PushOptions {
  std::string key;                 // of pseudonyms; empty: as they are
  std::vector<std::string> hosts;  // names to be replaced beside those in the traces
  std::vector<std::string> users;
};

struct PushOutcome {
  struct Failure {
    std::string name;
    Error error;
  };
  uint64_t sent = 0;
  uint64_t already_there = 0;
  uint64_t bytes = 0;  // of what was sent
  std::vector<Failure> failures;
  Replaced replaced;  // distinct texts, by what they were
};

// An Error if a source cannot be opened at all, so that nothing is made at a target
// for nothing.
Status CheckSources(const std::vector<std::string>& sources);

// `sources` are corpora and trace files. An Error only if one cannot be opened at
// all.
Result<PushOutcome> Push(const std::vector<std::string>& sources, Target& target,
                         const PushOptions& options, Progress& progress);

// The key of this user, made at first use: 32 random bytes in a file that only
// the user may read.
Result<std::string> UserKey();

}  // namespace culprit::push
