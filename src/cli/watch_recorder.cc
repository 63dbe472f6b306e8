// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_recorder.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "guard/session_folder.h"
#include "record/control_socket.h"
#include "watch/process_family.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kFirstPauseNs = 1'000'000'000;
constexpr uint64_t kLongestPauseNs = 60'000'000'000;
constexpr uint64_t kTriesInSilence = 3;  // a process of the list may end before it is recorded
constexpr int kEndRounds = 300;          // of 10 ms

}  // namespace

Status WatchRecorder::Start() {
  const std::string output =
      folder_.Dumps() + "/" + std::to_string(guard::GuardClockNs()) + ".ctrace";
  // setpriv: whoever kills the watch must not leave a recorder behind.
  std::vector<std::string> words = {"setpriv",
                                    "--pdeathsig",
                                    "TERM",
                                    settings_.culprit,
                                    "record",
                                    "--flight",
                                    std::to_string(settings_.flight_ns / 1'000'000) + "ms",
                                    "--budget",
                                    std::to_string(static_cast<double>(budget_ppm_) / 1e4) + "%",
                                    "--output",
                                    output};
  // A recorder refuses when one of its processes has ended, and sees those that are made
  // later by itself: after a failure only those are named that were there before it.
  const std::vector<int64_t> family = watch::ProcessFamily(server_);
  for (const int64_t pid : family) {
    const bool stays = pid == server_ || starts_ == 1 ||
                       std::find(family_.begin(), family_.end(), pid) != family_.end();
    if (stays) words.insert(words.end(), {"--pid", std::to_string(pid)});
  }
  family_ = family;
  CULPRIT_ASSIGN(RunningProgram program,
                 RunningProgram::Start(words, folder_.path() + "/recorder.log"));
  program_.emplace(std::move(program));
  pid_ = program_->pid();
  return {};
}

std::string WatchRecorder::Poll(uint64_t now_ns) {
  if (program_ && program_->Poll()) {
    program_.reset();
    pid_ = 0;
    // The first time, most likely because one of the list had ended: at once again.
    const uint64_t doubled = starts_ == 1 ? 0 : kFirstPauseNs << std::min<uint64_t>(starts_, 6);
    next_start_ns_ = now_ns + std::min(doubled, kLongestPauseNs);
    if (starts_ == kTriesInSilence) {
      return "the recorder ends again and again: slow units are reported without traces; see " +
             folder_.path() + "/recorder.log";
    }
  }
  if (program_ || now_ns < next_start_ns_) return {};
  ++starts_;
  const Status started = Start();
  if (started.ok()) return {};
  next_start_ns_ = now_ns + kLongestPauseNs;
  return "no recorder: " + started.error().ToString();
}

Result<std::string> WatchRecorder::Ask(const std::string& request) const {
  for (const record::RunningRecorder& recorder : record::FindRecorders()) {
    if (recorder.pid != pid_) continue;
    CULPRIT_ASSIGN(const std::string answer, record::Ask(recorder, request));
    if (answer.starts_with("ok ")) return answer.substr(3);
    return Error{.message = "the recorder could not: " + answer};
  }
  return Error{.message = "the recorder does not run"};
}

Result<std::string> WatchRecorder::Dump() const { return Ask("dump"); }

Result<uint64_t> WatchRecorder::CostPpm() const {
  CULPRIT_ASSIGN(const std::string answer, Ask("cost"));
  const std::optional<double> share = ParseDouble(answer);
  if (!share || *share < 0) return Error{.message = "not a share: " + answer};
  return static_cast<uint64_t>(*share * 1e6);
}

WatchRecorder::~WatchRecorder() {
  if (!program_) return;
  program_->Terminate();
  for (int round = 0; round < kEndRounds && !program_->Poll(); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace culprit::cli
