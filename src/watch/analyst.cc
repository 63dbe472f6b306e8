// SPDX-License-Identifier: Apache-2.0
#include "watch/analyst.h"

#include <chrono>
#include <filesystem>
#include <thread>

namespace culprit::watch {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPauseNs = 10'000'000'000;  // between two analyses
constexpr int kPatienceRounds = 600;           // of 100 ms, at the end

}  // namespace

void Analyst::Start(uint64_t traces, uint64_t now_ns) {
  const std::string log = folder_.path() + "/analysis.log";
  std::error_code ignored;
  fs::remove(log, ignored);
  auto started =
      RunningProgram::Start({"nice", "-n", "19", program_, "inbox", folder_.Corpus(), "--store",
                             folder_.Signatures(), "--json", "--output", folder_.InboxFile()},
                            log);
  seen_ = traces;
  began_ns_ = now_ns;
  if (!started.ok()) {
    ++failed_;
    return;
  }
  running_.emplace(std::move(started).value());
}

void Analyst::End(int code) {
  running_.reset();
  ++(code == 0 ? done_ : failed_);
}

void Analyst::Poll(uint64_t traces, uint64_t now_ns) {
  if (running_) {
    if (const std::optional<int> code = running_->Poll()) End(*code);
    return;
  }
  if (traces == seen_ || (began_ns_ != 0 && now_ns - began_ns_ < kPauseNs)) return;
  Start(traces, now_ns);
}

void Analyst::Finish(uint64_t traces) {
  const auto wait = [&] {
    for (int round = 0; running_ && round < kPatienceRounds; ++round) {
      if (const std::optional<int> code = running_->Poll()) {
        End(*code);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
  };
  wait();
  if (running_ || traces == seen_) return;
  Start(traces, 1);
  wait();
}

}  // namespace culprit::watch
