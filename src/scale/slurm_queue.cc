// SPDX-License-Identifier: Apache-2.0
#include "scale/slurm_queue.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "scale/index_ranges.h"

namespace culprit::scale {
namespace {

// Numbers of an array must stay below the cluster's MaxArraySize, which is 1001
// unless somebody raised it. Three digits also make the log's name below.
constexpr uint64_t kBlock = 1000;
constexpr auto kPatience = std::chrono::seconds(60);

// Names reach the hosts as arguments, so nothing has to be quoted.
constexpr std::string_view kScript =
    "#!/bin/sh\n"
    "# Written by culprit: what a task of a Slurm job array runs.\n"
    "# Arguments: PROGRAM VERB RUN FIRST-INDEX FLAGS...\n"
    "program=$1 verb=$2 run=$3 index=$(($4 + SLURM_ARRAY_TASK_ID))\n"
    "shift 4\n"
    "exec \"$program\" shard \"$verb\" \"$run\" \"$index\" \"$@\"\n";

// FNV-1a: a name must stay the same between versions of libraries.
std::string PathHash(std::string_view path) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::string text;
  for (int i = 0; i < 16; ++i, hash >>= 4) text += "0123456789abcdef"[hash & 15];
  return text;
}

// In names of output files Slurm replaces what follows a percent sign.
std::string EscapedForSlurm(std::string_view path) {
  std::string escaped;
  for (const char c : path) escaped.append(c == '%' ? 2 : 1, c);
  return escaped;
}

std::string FirstLine(std::string_view text) {
  const size_t begin = text.find_first_not_of("\r\n \t");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find('\n')));
}

// Standard output of a call that worked.
Result<std::string> Call(const std::vector<std::string>& words) {
  Result<ProgramOutput> run = RunProgram(words, kPatience);
  if (!run.ok()) {
    Error error = run.error();
    error.hint = "Slurm's client programs must be in PATH; --engine threads does without them";
    return error;
  }
  const ProgramOutput& output = run.value();
  if (output.code == 0) return output.out;
  std::string why = FirstLine(output.err);
  if (output.code == kKilledCode) why = "did not answer within 60 s: timed out";
  if (why.empty()) why = "exit code " + std::to_string(output.code);
  return Error{.message = words.front() + " failed: " + why};
}

std::string_view NextField(std::string_view& line) {
  const size_t end = line.find('|');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

}  // namespace

bool SlurmTask::active() const {
  static constexpr std::array<std::string_view, 10> kOver = {
      "COMPLETED", "FAILED",        "TIMEOUT",   "CANCELLED", "NODE_FAIL",
      "DEADLINE",  "OUT_OF_MEMORY", "BOOT_FAIL", "PREEMPTED", "REVOKED"};
  return std::find(kOver.begin(), kOver.end(), state) == kOver.end();
}

bool SlurmTask::held() const {
  if (state == "REQUEUE_HOLD" || state == "SPECIAL_EXIT") return true;
  // "launch failed requeued held", "job requeued in held state"; in some versions
  // with underscores. A hold by a person (JobHeldUser) is that person's matter.
  return state == "PENDING" && ((reason.find("requeued") != std::string::npos &&
                                 reason.find("held") != std::string::npos) ||
                                reason == "DependencyNeverSatisfied");
}

SlurmQueue::SlurmQueue(const std::string& run_folder, const Stage& stage, SlurmOptions options)
    : run_folder_(run_folder), verb_(stage.verb), options_(std::move(options)) {
  job_name_ = "culprit-" + PathHash(run_folder_) + "-" + std::string(VerbName(verb_)) + "-";
  for (uint64_t block = 0; block * kBlock < stage.count; ++block) {
    all_names_ += (block == 0 ? "" : ",") + job_name_ + std::to_string(block);
  }
}

Status SlurmQueue::Submit(std::set<uint64_t>& indexes, const std::set<std::string>& avoid) const {
  while (!indexes.empty()) {
    const uint64_t block = *indexes.begin() / kBlock;
    const auto end = indexes.lower_bound((block + 1) * kBlock);
    const std::set<uint64_t> array(indexes.begin(), end);
    Status submitted = SubmitBlock(block, array, avoid);
    // Slurm refuses at once what no host that is left could run.
    if (!submitted.ok() && !avoid.empty() && !MayPass(submitted.error())) {
      submitted = SubmitBlock(block, array, {});
    }
    CULPRIT_TRY(submitted);
    indexes.erase(indexes.begin(), end);
  }
  return {};
}

Status SlurmQueue::SubmitBlock(uint64_t block, const std::set<uint64_t>& indexes,
                               const std::set<std::string>& avoid) const {
  const std::string script = run_folder_ + "/slurm-task.sh";
  CULPRIT_TRY(WriteWholeFile(script, kScript, Overwrite::kAllow));
  std::set<uint64_t> in_block;
  for (const uint64_t index : indexes) in_block.insert(index - block * kBlock);
  // The same path as TaskLog() gives, written so that Slurm puts the number in.
  const std::string number = block == 0 ? "%a" : std::to_string(block) + "%3a";
  std::vector<std::string> words = {"sbatch",
                                    "--parsable",
                                    "--requeue",
                                    "--ntasks=1",
                                    "--open-mode=append",
                                    "--array=" + IndexRanges(in_block),
                                    "--job-name=" + job_name_ + std::to_string(block),
                                    "--chdir=" + run_folder_,
                                    "--output=" + EscapedForSlurm(run_folder_) + "/logs/" +
                                        std::string(VerbName(verb_)) + "-" + number + ".log"};
  if (!options_.partition.empty()) words.push_back("--partition=" + options_.partition);
  if (!options_.time.empty()) words.push_back("--time=" + options_.time);
  if (!options_.account.empty()) words.push_back("--account=" + options_.account);
  std::string avoided;
  for (const std::string& host : avoid) avoided += (avoided.empty() ? "" : ",") + host;
  if (!avoided.empty()) words.push_back("--exclude=" + avoided);
  words.insert(words.end(), options_.more.begin(), options_.more.end());
  words.insert(words.end(), {script, options_.program, std::string(VerbName(verb_)), run_folder_,
                             std::to_string(block * kBlock)});
  words.insert(words.end(), options_.task_flags.begin(), options_.task_flags.end());
  CULPRIT_TRY(Call(words));
  return {};
}

Result<std::vector<SlurmTask>> SlurmQueue::Tasks() const {
  CULPRIT_ASSIGN(const std::string text,
                 Call({"squeue", "--noheader", "--array", "--states=all",
                       "--user=" + std::to_string(::getuid()), "--name=" + all_names_,
                       "--format=%F|%K|%T|%N|%j|%r"}));
  std::vector<SlurmTask> tasks;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (std::optional<SlurmTask> task = ParseSlurmTask(line)) tasks.push_back(std::move(*task));
  }
  return tasks;
}

std::vector<std::string> SlurmQueue::CancelWords() const {
  return {"scancel", "--quiet", "--user=" + std::to_string(::getuid()), "--name=" + all_names_};
}

Status SlurmQueue::CancelAll() const {
  CULPRIT_TRY(Call(CancelWords()));
  return {};
}

Status SlurmQueue::CancelTask(const SlurmTask& task) const {
  CULPRIT_TRY(Call({"scancel", "--quiet",
                    std::to_string(task.job) + "_" + std::to_string(task.index % kBlock)}));
  return {};
}

std::string SlurmQueue::CancelLine() const {
  // Made of digits, letters and hyphens only.
  std::string line;
  for (const std::string& word : CancelWords()) line += (line.empty() ? "" : " ") + word;
  return line;
}

bool SlurmQueue::MayPass(const Error& error) {
  static constexpr std::array<std::string_view, 6> kPassing = {
      "Unable to contact", "timed out", "Socket", "temporarily", "Connection", "backup controller"};
  return std::any_of(kPassing.begin(), kPassing.end(), [&](std::string_view text) {
    return error.message.find(text) != std::string::npos;
  });
}

std::optional<SlurmTask> ParseSlurmTask(std::string_view line) {
  const auto job = ParseUnsigned(NextField(line));
  const auto in_block = ParseUnsigned(NextField(line));
  SlurmTask task;
  task.state = NextField(line);
  task.host = NextField(line);
  const std::string_view name = NextField(line);
  const auto block = ParseUnsigned(name.substr(name.rfind('-') + 1));
  task.reason = line;
  if (!job || !in_block || !block || *in_block >= kBlock || *block > UINT32_MAX) return {};
  task.job = *job;
  task.index = *block * kBlock + *in_block;
  return task;
}

}  // namespace culprit::scale
