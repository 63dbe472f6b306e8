// SPDX-License-Identifier: Apache-2.0
//
// The verbs of a run that makes a profile of system calls (episode/profile.h): map
// reads the traces of one shard into a ProfilePart; reduce takes the functions of
// one part, by a fixed hash of their names, out of all shards and mines their
// episodes, which is where the time goes; finalize puts the functions together.
// The profile is, byte for byte, the one that a single process makes.
//
// Each is idempotent, as those of verbs.h, which calls these where the plan asks
// for a profile. A trace that cannot be opened is an Error, as it is there.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "episode/profile_part.h"
#include "scale/run_folder.h"

namespace culprit::scale {

Status MapProfile(const RunFolder& run, uint64_t shard, size_t jobs);
Status ReduceProfile(const RunFolder& run, uint64_t part, size_t jobs);
Status FinalizeProfile(const RunFolder& run);

struct RunProfile {
  episode::Profile profile;
  episode::ProfilePart facts;  // of all traces, without functions
};
// What a finished run has made.
Result<RunProfile> ReadProfileResult(const RunFolder& run);

}  // namespace culprit::scale
