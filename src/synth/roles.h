// SPDX-License-Identifier: Apache-2.0
//
// Roles of the ordinary load: threads that serve a queue, threads driven by a
// timer, pipelines, housekeeping. One object a thread. QueueRole and TimerRole
// hold the loop; what is done per message or tick is in the derived classes.
#pragma once

#include <cstdint>
#include <vector>

#include "synth/composer.h"
#include "synth/computer.h"

namespace culprit::synth {

// Takes a message, serves it, takes the next.
class QueueRole : public Role {
 public:
  QueueRole(Computer& computer, uint32_t queue, Kind kind)
      : computer_(computer), code_(computer.world().code(kind)), queue_(queue) {}
  void Continue(Machine& machine, ThreadIndex self, std::vector<Op>& script) override;

 protected:
  virtual void Serve(Machine& machine, const Message& message, Composer& script) = 0;
  virtual void BeforeTake(Machine& machine, Composer& script);
  virtual void AfterTake(Machine& machine, Composer& script);

  Computer& computer_;
  const Code& code_;
  uint32_t queue_;

 private:
  bool started_ = false;
};

// Sleeps, works, sleeps.
class TimerRole : public Role {
 public:
  TimerRole(Computer& computer, Kind kind, int64_t interval_ns)
      : computer_(computer), code_(computer.world().code(kind)), interval_ns_(interval_ns) {}
  void Continue(Machine& machine, ThreadIndex self, std::vector<Op>& script) override;

 protected:
  virtual void Work(Machine& machine, Composer& script) = 0;
  virtual void Pause(Machine& machine, Composer& script);

  Computer& computer_;
  const Code& code_;
  int64_t interval_ns_;
};

// A service that answers requests: some computing, at times a lock or the disk.
class ServiceRole : public QueueRole {
 public:
  using QueueRole::QueueRole;

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;
};

// Wakes up by the clock and finds nothing to do: noise for every analysis.
class HousekeepingRole : public TimerRole {
 public:
  using TimerRole::TimerRole;

 protected:
  void Work(Machine& machine, Composer& script) override;
  void Pause(Machine& machine, Composer& script) override;
};

// Hands out small jobs to the workers of a desktop.
class SchedulerRole : public TimerRole {
 public:
  using TimerRole::TimerRole;

 protected:
  void Work(Machine& machine, Composer& script) override;
};

// Feeds messages into a queue at random intervals.
class SourceRole : public TimerRole {
 public:
  SourceRole(Computer& computer, Kind kind, int64_t interval_ns, uint32_t queue, int64_t median_ns)
      : TimerRole(computer, kind, interval_ns), queue_(queue), median_ns_(median_ns) {}

 protected:
  void Work(Machine& machine, Composer& script) override;

 private:
  uint32_t queue_;
  int64_t median_ns_;
};

inline constexpr uint32_t kNoQueue = UINT32_MAX;

// One thread of a pipeline: works on a message, passes it on.
class StageRole : public QueueRole {
 public:
  StageRole(Computer& computer, uint32_t queue, Kind kind, uint32_t next, uint32_t lock)
      : QueueRole(computer, queue, kind), next_(next), lock_(lock) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;

 private:
  uint32_t next_;
  uint32_t lock_;
};

// The service time of an ordinary disk request.
int64_t DiskService(Random& random);

}  // namespace culprit::synth
