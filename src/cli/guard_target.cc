// SPDX-License-Identifier: Apache-2.0
#include "cli/guard_target.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "guard/runtime/wire.h"
#include "watch/process_family.h"

namespace culprit::cli {
namespace {

constexpr int kPatienceRounds = 1000;  // of 10 ms, with a program that is to end

// Signal handlers can only reach globals.
volatile std::sig_atomic_t g_guard_stop = 0;
struct sigaction g_guard_old[3];
constexpr int kGuardSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Sets variables of the environment as long as it lives: what is started
// meanwhile has them, what is started later has not.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    const char* old = getenv(name);
    if (old != nullptr) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

Result<GuardTarget> GuardTarget::Prepare(const std::vector<std::string>& command,
                                         const guard::SessionFolder& session) {
  CULPRIT_ASSIGN(const std::string runtime, guard::FindRuntime());
  const char* preloaded = getenv("LD_PRELOAD");
  const bool others = preloaded != nullptr && *preloaded != 0;
  const EnvironmentVariable preload("LD_PRELOAD", others ? runtime + ":" + preloaded : runtime);
  const EnvironmentVariable folder(guard::wire::kSessionVariable, session.path());
  CULPRIT_ASSIGN(record::ChildProcess child, record::ChildProcess::Prepare(command));
  GuardTarget target(child.pid());
  target.child_.emplace(std::move(child));
  return target;
}

Status GuardTarget::Release() { return child_ ? child_->Release() : Status(); }

Result<GuardTarget> GuardTarget::Start(const std::vector<std::string>& command,
                                       const guard::SessionFolder& session) {
  CULPRIT_ASSIGN(GuardTarget target, Prepare(command, session));
  CULPRIT_TRY(target.Release());
  return target;
}

Result<GuardTarget> GuardTarget::Attach(int64_t pid, const guard::SessionFolder& session,
                                        const guard::InjectOptions& options) {
  CULPRIT_ASSIGN(const std::string runtime, guard::FindRuntime());
  CULPRIT_ASSIGN(const guard::InjectOutcome outcome,
                 guard::InjectRuntime(pid, runtime, session.path(), options));
  if (outcome.start_result != 0) {
    return Error{.message = "the guards did not start in process " + std::to_string(pid) +
                            " (code " + std::to_string(outcome.start_result) + ")",
                 .hint = "it may have guards already: culprit guard detach " + std::to_string(pid)};
  }
  GuardTarget target(pid);
  target.held_ns_ = outcome.held_ns;
  // Workers that were there before; those made from now on have the guards from
  // their parent. One that ends meanwhile, or waits for nothing, does without.
  for (const int64_t member : watch::ProcessFamily(pid)) {
    const std::vector<int64_t> joined = guard::ProcessesIn(session.path());
    if (std::find(joined.begin(), joined.end(), member) != joined.end()) continue;
    static_cast<void>(guard::InjectRuntime(member, runtime, session.path(), options).ok());
  }
  return target;
}

std::optional<int> GuardTarget::ExitCode() { return child_ ? child_->ExitCode() : std::nullopt; }

bool GuardTarget::alive() {
  if (child_) return !child_->ExitCode().has_value();
  return life_.alive();
}

void GuardTarget::End(int signal) {
  if (!child_) return;
  for (int round = 0; alive(); ++round) {
    if (round == 0) kill(static_cast<pid_t>(pid_), signal);
    if (round == kPatienceRounds) kill(static_cast<pid_t>(pid_), SIGKILL);
    SleepMs(10);
  }
}

GuardSignals::GuardSignals() {
  g_guard_stop = 0;
  struct sigaction action = {};
  action.sa_handler = [](int number) { g_guard_stop = number; };
  for (size_t i = 0; i < std::size(kGuardSignals); ++i) {
    sigaction(kGuardSignals[i], &action, &g_guard_old[i]);
  }
}

GuardSignals::~GuardSignals() {
  for (size_t i = 0; i < std::size(kGuardSignals); ++i) {
    sigaction(kGuardSignals[i], &g_guard_old[i], nullptr);
  }
}

int GuardSignals::Stop() { return g_guard_stop; }

void SleepMs(int64_t ms) { usleep(static_cast<useconds_t>(ms * 1000)); }

}  // namespace culprit::cli
