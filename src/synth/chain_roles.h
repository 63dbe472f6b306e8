// SPDX-License-Identifier: Apache-2.0
//
// Roles of the threads through which planted delays travel: the workers of 003
// figure 1 (browser, anti-virus, configuration manager, system) and the
// compositor. Small jobs make them use the same locks shortly, so that the
// planted chains differ from everyday contention by cost, not by existence.
#pragma once

#include "synth/roles.h"

namespace culprit::synth {

// W0 and W1: take the file table's lock; W1 also wants the MDU under it.
class BrowserWorkerRole : public QueueRole {
 public:
  BrowserWorkerRole(Computer& computer, uint32_t queue, bool wants_mdu)
      : QueueRole(computer, queue, Kind::kBrowserWorker), wants_mdu_(wants_mdu) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;

 private:
  bool wants_mdu_;
};

// Takes the MDU lock shortly.
class AntiVirusRole : public QueueRole {
 public:
  AntiVirusRole(Computer& computer, uint32_t queue)
      : QueueRole(computer, queue, Kind::kAntiVirus) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;
};

// Takes the MDU lock; when striking, has a file read and decrypted under it.
class ConfigurationRole : public QueueRole {
 public:
  ConfigurationRole(Computer& computer, uint32_t queue)
      : QueueRole(computer, queue, Kind::kConfiguration) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;
};

// Takes the graphics device lock; when striking, faults while it holds it.
class CompositorRole : public QueueRole {
 public:
  CompositorRole(Computer& computer, uint32_t queue)
      : QueueRole(computer, queue, Kind::kCompositor) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;
};

// Reads for others: small jobs, encrypted files, pages.
class SystemWorkerRole : public QueueRole {
 public:
  SystemWorkerRole(Computer& computer, uint32_t queue)
      : QueueRole(computer, queue, Kind::kSystemWorker) {}

 protected:
  void Serve(Machine& machine, const Message& message, Composer& script) override;

 private:
  void Read(Random& random, int64_t reads, int64_t decrypt_ns, const StackPool& disk,
            const StackPool& decrypt, Composer& script);
};

}  // namespace culprit::synth
