// SPDX-License-Identifier: Apache-2.0
//
// PerfEvents: a set of perf events opened for a recording without kernel
// programs, with one ring a CPU, and what the importer of perf.data must know to
// read their records (import/perf_data_session.h): so what the fallback records
// goes the same way as a file of `perf record`. One thread at a time.
//
// Of the whole machine, as root: clock samples, switches, wakings, disk
// requests, system calls if asked for. Of one's own processes, as anybody: clock
// samples and switches; where kernel.perf_event_paranoid allows it (1 or less),
// stacks at switches and kernel frames.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/perf_data_session.h"
#include "record/perf_ring.h"

namespace culprit::record {

struct PerfEventOptions {
  bool whole_machine = false;
  std::vector<int64_t> pids = {};  // else these, with what they make from then on
  bool syscalls = false;
  int64_t sample_period_ns = 1'000'000;
};

class PerfEvents {
 public:
  // Opened but not counting yet. An Error says what would have to be allowed.
  static Result<PerfEvents> Open(const PerfEventOptions& options);
  PerfEvents(PerfEvents&&) noexcept = default;
  PerfEvents& operator=(PerfEvents&&) = delete;
  ~PerfEvents();

  Status Enable();
  // Each record once, ordered within a CPU only.
  void Drain(const PerfRing::Visitor& visitor);
  const import_::PerfSession& session() const { return session_; }
  // Could the kernel's part of stacks be had?
  bool has_kernel_frames() const { return has_kernel_frames_; }

 private:
  struct Spec {
    perf_event_attr attr = {};
    std::string name;
  };

  PerfEvents() = default;
  static std::vector<Spec> Plan(const PerfEventOptions& options, bool kernel,
                                import_::PerfSession& session);
  Status OpenAll(const PerfEventOptions& options, const std::vector<Spec>& specs);
  Status OpenOne(Spec spec, int pid, int cpu, size_t ring, std::vector<uint64_t>& ids);

  import_::PerfSession session_;
  std::vector<PerfRing> rings_;
  std::vector<int> fds_;  // those without a ring of their own
  bool has_kernel_frames_ = false;
};

}  // namespace culprit::record
