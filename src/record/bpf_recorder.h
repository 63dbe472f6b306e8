// SPDX-License-Identifier: Apache-2.0
//
// BpfRecorder: a recording by the kernel programs, from start to end: the loop
// that moves events, listens to the control socket, lets the governor decide,
// and writes the dumps of a flight recorder. Used once. One thread at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "record/bpf_recording.h"
#include "record/child_process.h"
#include "record/control_socket.h"
#include "record/file_target.h"
#include "record/flight_target.h"
#include "record/haste.h"
#include "record/recorder.h"
#include "record/regulator.h"

namespace culprit::record {

class BpfRecorder {
 public:
  // Both outlive the recorder.
  BpfRecorder(const RecordOptions& options, const RecordListener& listener);

  // An Error if it could not begin, so that another tier may be tried. Nothing
  // has been started or written then.
  Status Prepare();
  Result<RecordOutcome> Run();

 private:
  assemble::EventTarget& target();
  void FillHead();
  void FillTail(const Cost& cost);
  Status Loop();
  void Sleep() const;
  bool IsOver();
  Status Govern();
  void CheckTriggers();
  void RenewFlight();
  void TryDump(std::string_view reason);
  Result<std::string> Dump(std::string_view reason);
  Result<pid_t> StartWriter(const std::string& path, std::string_view reason);
  [[noreturn]] void WriteDumpAndExit(const std::string& path, const Cost& cost);
  std::string Answer(std::string_view request);
  void Summarize();
  Status NameSymbols();

  const RecordOptions& options_;
  const RecordListener& listener_;
  Regulator regulator_;
  std::unique_ptr<FileTarget> file_;
  std::unique_ptr<FlightTarget> flight_;
  std::unique_ptr<FlightTarget> next_flight_;  // takes over when it has a whole window
  int64_t renewed_ns_ = 0;                     // when that began
  uint64_t renewals_ = 0;
  std::optional<ChildProcess> child_;
  std::unique_ptr<BpfRecording> recording_;
  std::optional<Haste> haste_;  // while it records
  std::optional<ControlSocket> control_;
  RecordOutcome outcome_;
  int64_t last_dump_ns_ = 0;
  int child_fd_ = -1;
};

}  // namespace culprit::record
