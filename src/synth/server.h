// SPDX-License-Identifier: Apache-2.0
//
// A web server: a listener that accepts connections and workers that serve
// requests by system calls. A worker's request is an instance of HttpRequest.
// When accept-retry-loop strikes, the worker calls accept again and again
// although there is nothing to accept (the retry loops of 004).
#pragma once

#include "synth/roles.h"

namespace culprit::synth {

class HttpListenerRole : public QueueRole {
 public:
  HttpListenerRole(Computer& computer, uint32_t queue)
      : QueueRole(computer, queue, Kind::kHttpListener) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;
  void BeforeTake(Machine& machine, Composer& script) override;
  void AfterTake(Machine& machine, Composer& script) override;
};

class HttpWorkerRole : public QueueRole {
 public:
  HttpWorkerRole(Computer& computer, uint32_t queue)
      : QueueRole(computer, queue, Kind::kHttpWorker) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;

 private:
  void Retry(Random& random, Composer& script);
};

}  // namespace culprit::synth
