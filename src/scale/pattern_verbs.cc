// SPDX-License-Identifier: Apache-2.0
#include "scale/pattern_verbs.h"

#include <filesystem>

#include "base/file.h"
#include "corpus/sealed_bytes.h"
#include "scale/pattern_codec.h"

namespace culprit::scale {
namespace {

constexpr std::string_view kDatabaseKind = "stacks";

std::string DatabasePath(const RunFolder& run) { return run.path() + "/database"; }

Result<mine::WeightedSequences> ReadDatabase(const RunFolder& run) {
  CULPRIT_ASSIGN(const std::string sealed, ReadWholeFile(DatabasePath(run)));
  const auto payload = corpus::Unseal(kDatabaseKind, run.plan().patterns->database, sealed);
  std::optional<mine::WeightedSequences> database;
  if (payload) database = DecodeDatabase(*payload);
  if (database) return std::move(*database);
  return Error{.message = "is damaged, or the stacks of another run",
               .file = DatabasePath(run),
               .hint = "the command that began the run writes it again"};
}

Result<mine::Subtree> ReadSubtree(const RunFolder& run, Verb verb, uint64_t index) {
  CULPRIT_ASSIGN(const std::string payload, run.ReadOutput(verb, index));
  std::optional<mine::Subtree> subtree = DecodeSubtree(payload);
  if (subtree) return std::move(*subtree);
  return Error{.message = "is not what the plan asks for",
               .file = run.OutputPath(verb, index),
               .hint = "remove it and run the task again"};
}

// Outputs of `from`, begin to end, as that of `verb`.
Status Merge(const RunFolder& run, Verb from, uint64_t begin, uint64_t end, Verb verb,
             uint64_t index) {
  mine::Subtree sum;
  for (uint64_t i = begin; i < end; ++i) {
    CULPRIT_ASSIGN(mine::Subtree part, ReadSubtree(run, from, i));
    MergeSubtree(std::move(part), run.plan().patterns->max_patterns, sum);
  }
  return run.WriteOutput(verb, index, EncodeSubtree(sum));
}

}  // namespace

Plan MakePatternsPlan(const std::string& corpus, const mine::WeightedSequences& database,
                      const PatternsPlan& patterns, uint64_t pieces_a_part) {
  Plan plan;
  plan.version = CULPRIT_VERSION;
  std::error_code code;
  plan.corpus = std::filesystem::absolute(corpus, code).lexically_normal().string();
  plan.patterns = patterns;
  plan.patterns->database = corpus::ShortDigest(EncodeDatabase(database));
  for (uint64_t piece = 0; piece < patterns.pieces; ++piece) plan.shard_ends.push_back(piece + 1);
  plan.part_ends = CutIntoParts(patterns.pieces, pieces_a_part);
  return plan;
}

Result<RunFolder> CreatePatternsRun(const std::string& path, const Plan& plan,
                                    const mine::WeightedSequences& database) {
  CULPRIT_ASSIGN(RunFolder run, RunFolder::Create(path, plan));
  const std::string sealed =
      corpus::Seal(kDatabaseKind, plan.patterns->database, EncodeDatabase(database));
  // Tasks of an earlier run may be reading it.
  const Result<std::string> there = ReadWholeFile(DatabasePath(run));
  if (there.ok() && there.value() == sealed) return run;
  CULPRIT_TRY(WriteWholeFile(DatabasePath(run), sealed, Overwrite::kAllow));
  return run;
}

Status MapPatterns(const RunFolder& run, uint64_t piece, size_t jobs) {
  const PatternsPlan& patterns = *run.plan().patterns;
  CULPRIT_ASSIGN(const mine::WeightedSequences database, ReadDatabase(run));
  const mine::Subtree found = MineSubtree(
      database, {piece, patterns.pieces},
      {.lambda = patterns.lambda_ns, .jobs = jobs, .max_patterns = patterns.max_patterns});
  return run.WriteOutput(Verb::kMap, piece, EncodeSubtree(found));
}

Status ReducePatterns(const RunFolder& run, uint64_t part) {
  const Plan& plan = run.plan();
  return Merge(run, Verb::kMap, plan.part_begin(part), plan.part_ends[part], Verb::kReduce, part);
}

Status FinalizePatterns(const RunFolder& run) {
  return Merge(run, Verb::kReduce, 0, run.Count(Verb::kReduce), Verb::kFinalize, 0);
}

Result<mine::Subtree> ReadPatternsResult(const RunFolder& run) {
  return ReadSubtree(run, Verb::kFinalize, 0);
}

}  // namespace culprit::scale
