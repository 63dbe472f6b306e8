// SPDX-License-Identifier: Apache-2.0
#include "scale/profile_verbs.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "corpus/state.h"
#include "episode/profile_file.h"
#include "scale/profile_part_codec.h"
#include "trace/trace_reader.h"

namespace culprit::scale {
namespace {

using episode::FunctionName;
using episode::ProfilePart;

// Which part mines a function. All hosts must agree, so the bytes are fixed.
uint64_t PartOf(const FunctionName& name, uint64_t parts) {
  ByteWriter out;
  out.String(name.module);
  out.String(name.build_id);
  out.String(name.function);
  return XXH3_64bits(out.bytes().data(), out.size()) % parts;
}

std::string EncodeRunProfile(const RunProfile& result) {
  ByteWriter out;
  out.String(EncodeProfilePart(result.facts));
  out.String(EncodeProfile(result.profile));
  return out.Take();
}

Error NotAsked(const RunFolder& run, Verb verb, uint64_t index) {
  return {.message = "is not what the plan asks for",
          .file = run.OutputPath(verb, index),
          .hint = "remove it and run the task again"};
}

Result<RunProfile> ReadRunProfile(const RunFolder& run, Verb verb, uint64_t index) {
  CULPRIT_ASSIGN(const std::string payload, run.ReadOutput(verb, index));
  ByteReader in(payload);
  std::optional<ProfilePart> facts = DecodeProfilePart(in.String());
  Result<episode::Profile> profile =
      episode::DecodeProfile(in.String(), run.OutputPath(verb, index));
  if (!facts || in.failed() || in.remaining() != 0) return NotAsked(run, verb, index);
  if (!profile.ok()) return profile.error();
  return RunProfile{.profile = std::move(profile).value(), .facts = std::move(*facts)};
}

}  // namespace

Status MapProfile(const RunFolder& run, uint64_t shard, size_t jobs) {
  const Plan& plan = run.plan();
  episode::ProfileOptions options = *plan.profile;
  options.jobs = jobs;
  episode::ProfileBuilder builder(std::move(options));
  for (uint64_t i = plan.shard_begin(shard); i < plan.shard_ends[shard]; ++i) {
    CULPRIT_ASSIGN(
        const trace::TraceReader reader,
        trace::TraceReader::Open(corpus::TracesFolder(plan.corpus) + "/" + plan.traces[i].file));
    builder.Add(reader);
  }
  return run.WriteOutput(Verb::kMap, shard, EncodeProfilePart(builder.TakePart()));
}

Status ReduceProfile(const RunFolder& run, uint64_t part, size_t jobs) {
  const uint64_t parts = run.Count(Verb::kReduce);
  ProfilePart sum;
  RunProfile result;
  for (uint64_t i = 0; i < run.Count(Verb::kMap); ++i) {
    CULPRIT_ASSIGN(const std::string payload, run.ReadOutput(Verb::kMap, i));
    const std::optional<ProfilePart> read = DecodeProfilePart(payload);
    if (!read) return NotAsked(run, Verb::kMap, i);
    AddPart(
        *read, [&](const FunctionName& name) { return PartOf(name, parts) == part; }, sum);
    AddPart(
        *read, [](const FunctionName&) { return false; }, result.facts);
  }
  result.profile = MineProfile(std::move(sum), run.plan().profile->episodes, jobs);
  return run.WriteOutput(Verb::kReduce, part, EncodeRunProfile(result));
}

Status FinalizeProfile(const RunFolder& run) {
  RunProfile whole;
  for (uint64_t i = 0; i < run.Count(Verb::kReduce); ++i) {
    CULPRIT_ASSIGN(RunProfile part, ReadRunProfile(run, Verb::kReduce, i));
    if (i == 0) {
      whole = std::move(part);
      continue;
    }
    // Symbols have the same numbers everywhere: each part has read all shards.
    std::move(part.profile.functions.begin(), part.profile.functions.end(),
              std::back_inserter(whole.profile.functions));
  }
  std::sort(whole.profile.functions.begin(), whole.profile.functions.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return run.WriteOutput(Verb::kFinalize, 0, EncodeRunProfile(whole));
}

Result<RunProfile> ReadProfileResult(const RunFolder& run) {
  return ReadRunProfile(run, Verb::kFinalize, 0);
}

}  // namespace culprit::scale
