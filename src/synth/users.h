// SPDX-License-Identifier: Apache-2.0
//
// Users: threads that wait for input and then run an instance of a scenario.
// An instance is ordinary work or, where the computer's plan says so, the same
// work with a planted behaviour in it. UiRole is the user-interface thread of a
// program that runs all the time; LauncherRole starts applications, whose
// AppRole begins with AppStartup, handles some input and exits.
//
// A user-interface thread blocks right after an instance, so that the on-CPU
// tiles of an instance never reach beyond it.
#pragma once

#include <vector>

#include "synth/roles.h"
#include "synth/scenario.h"

namespace culprit::synth {

class UiRole : public Role {
 public:
  enum class Program { kBrowser, kExplorer, kGenerated };
  UiRole(Computer& computer, Program program, int64_t think_ns);
  void Continue(Machine& machine, ThreadIndex self, std::vector<Op>& script) override;

 private:
  Plant ChoosePlant(Machine& machine);
  size_t ChooseScenario(Random& random) const;

  Computer& computer_;
  Program program_;
  int64_t think_ns_;
  std::vector<size_t> scenarios_;
  std::vector<uint64_t> cumulative_;  // of their weights
};

class AppRole : public Role {
 public:
  AppRole(Computer& computer, bool strikes) : computer_(computer), strikes_(strikes) {}
  void Continue(Machine& machine, ThreadIndex self, std::vector<Op>& script) override;

 private:
  Computer& computer_;
  bool strikes_;
  bool started_ = false;
  int64_t instances_left_ = -1;
};

class LauncherRole : public TimerRole {
 public:
  using TimerRole::TimerRole;
  ThreadIndex Spawn(Machine& machine) override;

 protected:
  void Work(Machine& machine, Composer& script) override;
};

}  // namespace culprit::synth
