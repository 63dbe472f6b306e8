// SPDX-License-Identifier: Apache-2.0
#include "scale/verbs.h"

#include <memory>

#include "base/bytes.h"
#include "causality/evidence_codec.h"
#include "causality/gather.h"
#include "corpus/gather.h"
#include "scale/pattern_verbs.h"
#include "scale/profile_verbs.h"
#include "stackmine/evidence_codec.h"
#include "stackmine/gather.h"

namespace culprit::scale {
namespace {

std::string EncodeRun(const RunEvidence& evidence) {
  ByteWriter out;
  out.U8(static_cast<uint8_t>((evidence.mine ? 1 : 0) | (evidence.causes ? 2 : 0)));
  if (evidence.mine) out.String(EncodeEvidence(*evidence.mine));
  if (evidence.causes) out.String(EncodeEvidence(*evidence.causes));
  return out.Take();
}

std::optional<RunEvidence> DecodeRun(std::string_view bytes) {
  ByteReader in(bytes);
  RunEvidence evidence;
  const uint8_t has = in.U8();
  if ((has & 1) != 0) {
    evidence.mine = stackmine::DecodeEvidence(in.String());
    if (!evidence.mine) return std::nullopt;
  }
  if ((has & 2) != 0) {
    evidence.causes = causality::DecodeEvidence(in.String());
    if (!evidence.causes) return std::nullopt;
  }
  if (in.failed() || in.remaining() != 0) return std::nullopt;
  return evidence;
}

Result<RunEvidence> ReadEvidence(const RunFolder& run, Verb verb, uint64_t index) {
  CULPRIT_ASSIGN(const std::string payload, run.ReadOutput(verb, index));
  std::optional<RunEvidence> evidence = DecodeRun(payload);
  const bool fits = evidence && evidence->mine.has_value() == run.plan().mine.has_value() &&
                    evidence->causes.has_value() == run.plan().causes.has_value();
  if (fits) return std::move(*evidence);
  return Error{.message = "is not the evidence that the plan asks for",
               .file = run.OutputPath(verb, index),
               .hint = "remove it and run the task again"};
}

void SpillRows(uint64_t memory_bytes, RunEvidence& evidence) {
  const SpillOptions spill{.memory_bytes = corpus::RowShare(memory_bytes)};
  if (evidence.mine) evidence.mine->rows.SpillTo(spill);
  if (evidence.causes) evidence.causes->rows.SpillTo(spill);
}

// Outputs of `from`, begin to end, added up as that of `verb`.
Status AddUp(const RunFolder& run, Verb from, uint64_t begin, uint64_t end, Verb verb,
             uint64_t index, const TaskOptions& options) {
  RunEvidence sum;
  for (uint64_t i = begin; i < end; ++i) {
    CULPRIT_ASSIGN(RunEvidence part, ReadEvidence(run, from, i));
    if (i == begin) {
      sum = std::move(part);
      SpillRows(options.memory_bytes, sum);
      continue;
    }
    if (sum.mine) AddEvidence(*part.mine, *sum.mine);
    if (sum.causes) AddEvidence(*part.causes, *sum.causes);
  }
  return run.WriteOutput(verb, index, EncodeRun(sum));
}

Status RunProfileTask(const RunFolder& run, Verb verb, uint64_t index, const TaskOptions& options) {
  if (verb == Verb::kMap) return MapProfile(run, index, options.jobs);
  return verb == Verb::kReduce ? ReduceProfile(run, index, options.jobs) : FinalizeProfile(run);
}

Status RunPatternsTask(const RunFolder& run, Verb verb, uint64_t index,
                       const TaskOptions& options) {
  if (verb == Verb::kMap) return MapPatterns(run, index, options.jobs);
  return verb == Verb::kReduce ? ReducePatterns(run, index) : FinalizePatterns(run);
}

}  // namespace

Status MapShard(const RunFolder& run, uint64_t shard, const TaskOptions& options,
                Progress& progress) {
  const Plan& plan = run.plan();
  std::optional<stackmine::EvidenceCollector> mine;
  std::optional<causality::EvidenceCollector> causes;
  std::vector<corpus::Collector*> collectors;
  const SpillOptions spill{.memory_bytes = corpus::RowShare(options.memory_bytes)};
  if (plan.mine) collectors.push_back(&mine.emplace(*plan.mine, spill));
  if (plan.causes) {
    collectors.push_back(&causes.emplace(*plan.causes, options.use_summaries, spill));
  }
  const std::span<const corpus::TraceRow> all(plan.traces);
  const uint64_t begin = plan.shard_begin(shard);
  corpus::GatherRows(plan.corpus, all.subspan(begin, plan.shard_ends[shard] - begin), collectors,
                     {.max_trace_bytes = plan.max_trace_bytes,
                      .memory_bytes = corpus::TraceShare(options.memory_bytes),
                      .jobs = options.jobs,
                      .use_summaries = options.use_summaries},
                     progress);
  RunEvidence evidence;
  if (mine) evidence.mine = mine->Take();
  if (causes) evidence.causes = causes->Take();
  return run.WriteOutput(Verb::kMap, shard, EncodeRun(evidence));
}

Status ReducePart(const RunFolder& run, uint64_t part, const TaskOptions& options) {
  return AddUp(run, Verb::kMap, run.plan().part_begin(part), run.plan().part_ends[part],
               Verb::kReduce, part, options);
}

Status Finalize(const RunFolder& run, const TaskOptions& options) {
  return AddUp(run, Verb::kReduce, 0, run.plan().part_ends.size(), Verb::kFinalize, 0, options);
}

Status RunTask(const RunFolder& run, Verb verb, uint64_t index, const TaskOptions& options,
               Progress& progress) {
  if (index >= run.Count(verb)) {
    return Error{.message = "has no task " + std::string(VerbName(verb)) + " " +
                            std::to_string(index) + "; there are " +
                            std::to_string(run.Count(verb)),
                 .file = run.path()};
  }
  if (run.plan().profile) return RunProfileTask(run, verb, index, options);
  if (run.plan().patterns) return RunPatternsTask(run, verb, index, options);
  switch (verb) {
    case Verb::kMap:
      return MapShard(run, index, options, progress);
    case Verb::kReduce:
      return ReducePart(run, index, options);
    case Verb::kFinalize:
      return Finalize(run, options);
  }
  return {};
}

std::vector<Stage> StagesOf(const RunFolder& run, const TaskOptions& options) {
  std::vector<Stage> stages;
  for (const Verb verb : {Verb::kMap, Verb::kReduce, Verb::kFinalize}) {
    stages.push_back({.verb = verb,
                      .count = run.Count(verb),
                      .done = [&run, verb](uint64_t index) { return run.TaskDone(verb, index); },
                      .run =
                          [&run, verb, options](uint64_t index) {
                            Progress silent;
                            return RunTask(run, verb, index, options, silent);
                          }});
  }
  return stages;
}

Result<RunEvidence> ReadResult(const RunFolder& run, uint64_t memory_bytes) {
  CULPRIT_ASSIGN(RunEvidence evidence, ReadEvidence(run, Verb::kFinalize, 0));
  SpillRows(memory_bytes, evidence);
  return evidence;
}

}  // namespace culprit::scale
