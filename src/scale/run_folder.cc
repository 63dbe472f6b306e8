// SPDX-License-Identifier: Apache-2.0
#include "scale/run_folder.h"

#include <filesystem>

#include "base/bytes.h"
#include "base/file.h"
#include "causality/evidence_codec.h"
#include "corpus/sealed_bytes.h"
#include "scale/profile_part_codec.h"
#include "stackmine/evidence_codec.h"

namespace culprit::scale {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutputKind = "evidence";

std::string PlanPath(const std::string& run) { return run + "/plan.json"; }

std::string ParametersOf(const Plan& plan) {
  ByteWriter out;
  out.String(plan.version);
  out.String(plan.mine ? EncodeOptions(*plan.mine) : std::string());
  out.String(plan.causes ? EncodeOptions(*plan.causes) : std::string());
  out.String(plan.profile ? EncodeProfileOptions(*plan.profile) : std::string());
  out.Varint(plan.max_trace_bytes);
  if (plan.patterns) {
    out.SignedVarint(plan.patterns->lambda_ns);
    out.Varint(plan.patterns->max_patterns);
    out.Varint(plan.patterns->pieces);
    out.String(plan.patterns->database);
  }
  return out.Take();
}

std::string Padded(uint64_t index) {
  constexpr size_t kDigits = 5;
  std::string text = std::to_string(index);
  if (text.size() < kDigits) text.insert(0, kDigits - text.size(), '0');
  return text;
}

Status MakeFolders(const std::string& path) {
  for (const std::string_view name : kVerbNames) {
    std::error_code code;
    fs::create_directories(path + "/" + std::string(name), code);
    if (code) return Error{.message = "cannot create the folder: " + code.message(), .file = path};
  }
  return {};
}

Status RequireUsable(const std::string& path, const std::string& json) {
  std::error_code code;
  if (!fs::exists(path, code)) return {};
  if (!fs::exists(PlanPath(path), code)) {
    // What an interrupted Create left is empty folders.
    for (fs::directory_iterator it(path, code), end; !code && it != end; it.increment(code)) {
      if (fs::is_directory(it->path(), code) && fs::is_empty(it->path(), code)) continue;
      return Error{.message = "is neither empty nor a run; nothing was changed",
                   .file = path,
                   .hint = "give a new folder"};
    }
    return {};
  }
  CULPRIT_ASSIGN(const std::string there, ReadWholeFile(PlanPath(path)));
  if (there == json) return {};
  return Error{.message = "is a run over other traces or with other parameters",
               .file = path,
               .hint = "give a new folder, or remove this one"};
}

}  // namespace

RunFolder::RunFolder(std::string path, Plan plan)
    : path_(std::move(path)), plan_(std::move(plan)), parameters_(ParametersOf(plan_)) {}

Result<RunFolder> RunFolder::Create(const std::string& path, const Plan& plan) {
  const std::string json = PlanToJson(plan);
  CULPRIT_TRY(RequireUsable(path, json));
  CULPRIT_TRY(MakeFolders(path));
  CULPRIT_TRY(WriteWholeFile(PlanPath(path), json, Overwrite::kAllow));
  return RunFolder(path, plan);
}

Result<RunFolder> RunFolder::Open(const std::string& path) {
  CULPRIT_ASSIGN(const std::string json, ReadWholeFile(PlanPath(path)));
  CULPRIT_ASSIGN(Plan plan, PlanFromJson(json, PlanPath(path)));
  if (plan.version != CULPRIT_VERSION) {
    return Error{.message = "is a run of culprit " + plan.version + ", this is " CULPRIT_VERSION,
                 .file = path,
                 .hint = "start it again in another folder, with one version on all hosts"};
  }
  return RunFolder(path, std::move(plan));
}

uint64_t RunFolder::Count(Verb verb) const {
  if (verb == Verb::kFinalize) return 1;
  return verb == Verb::kMap ? plan_.shard_ends.size() : plan_.part_ends.size();
}

std::string RunFolder::OutputPath(Verb verb, uint64_t index) const {
  return path_ + "/" + std::string(VerbName(verb)) + "/" + Padded(index);
}

// All its tasks see all stacks and differ in the pieces of the search.
std::string RunFolder::PatternsTaskId(Verb verb, uint64_t index) const {
  uint64_t begin = index;
  uint64_t end = index + 1;
  if (verb == Verb::kReduce) {
    begin = plan_.part_begin(index);
    end = plan_.part_ends[index];
  } else if (verb == Verb::kFinalize) {
    end = plan_.shard_ends.size();
  }
  ByteWriter out;
  out.String(parameters_);
  out.Varint(begin);
  out.Varint(end);
  return corpus::ShortDigest(out.bytes());
}

std::string RunFolder::TaskId(Verb verb, uint64_t index) const {
  CULPRIT_CHECK(index < Count(verb));
  if (plan_.patterns) return PatternsTaskId(verb, index);
  uint64_t begin = 0;
  uint64_t end = plan_.traces.size();
  if (verb == Verb::kMap) {
    begin = plan_.shard_begin(index);
    end = plan_.shard_ends[index];
  } else if (verb == Verb::kReduce && !plan_.profile) {
    begin = plan_.part_begin(index) == 0 ? 0 : plan_.shard_ends[plan_.part_begin(index) - 1];
    end = plan_.shard_ends[plan_.part_ends[index] - 1];
  }
  ByteWriter out;
  out.String(parameters_);
  // Its tasks see all traces and differ in the functions they take.
  if (verb == Verb::kReduce && plan_.profile) out.Varint(index);
  for (uint64_t i = begin; i < end; ++i) {
    // The name is in the evidence too.
    out.String(plan_.traces[i].name);
    out.String(plan_.traces[i].sha256);
  }
  return corpus::ShortDigest(out.bytes());
}

bool RunFolder::TaskDone(Verb verb, uint64_t index) const {
  if (index >= Count(verb)) return false;
  const std::string path = OutputPath(verb, index);
  std::error_code code;
  if (!fs::exists(path, code)) return false;
  const Result<std::string> sealed = ReadWholeFile(path);
  return sealed.ok() && corpus::IsSealed(kOutputKind, TaskId(verb, index), sealed.value());
}

Status RunFolder::WriteOutput(Verb verb, uint64_t index, std::string_view payload) const {
  return WriteWholeFile(OutputPath(verb, index),
                        corpus::Seal(kOutputKind, TaskId(verb, index), payload), Overwrite::kAllow);
}

Result<std::string> RunFolder::ReadOutput(Verb verb, uint64_t index) const {
  const std::string path = OutputPath(verb, index);
  CULPRIT_ASSIGN(const std::string sealed, ReadWholeFile(path));
  std::optional<std::string> payload = corpus::Unseal(kOutputKind, TaskId(verb, index), sealed);
  if (payload) return std::move(*payload);
  return Error{.message = "is damaged, or the output of another task",
               .file = path,
               .hint = "remove it and run the task again"};
}

}  // namespace culprit::scale
