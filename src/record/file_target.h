// SPDX-License-Identifier: Apache-2.0
//
// FileTarget: a trace file that grows in place while it is recorded. Whoever
// reads it before it is finished, or after the recorder was killed, finds all
// whole blocks and metadata that fit them; so the file is written under its own
// name, not under a temporary one. A full disk is an Error of the write that met
// it; what was written before stays readable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "assemble/event_target.h"
#include "base/file.h"
#include "base/result.h"

namespace culprit::record {

class FileTarget final : public assemble::EventTarget {
 public:
  // With kRefuse an existing file is an Error.
  static Result<std::unique_ptr<FileTarget>> Create(const std::string& path, Overwrite overwrite);
  ~FileTarget() override;

  Status Add(const trace::Event& event) override;
  void AddInstance(const trace::Instance& instance) override { writer_.AddInstance(instance); }
  trace::Dictionary& dictionary() override { return writer_.dictionary(); }
  trace::Metadata& metadata() override { return writer_.metadata(); }

  // For who writes events himself: they do not come by Add().
  trace::TraceWriter& writer() { return writer_; }
  // Writes what has come, once a second: also of a machine on which little happens a
  // recorder that is killed leaves nearly all.
  Status FlushIfDue();
  Status Finish();
  uint64_t events() const { return writer_.events(); }
  uint64_t bytes() const { return writer_.bytes(); }

 private:
  FileTarget(std::string path, int fd);
  Status Write(std::string_view bytes);

  std::string path_;
  int fd_;
  int64_t flushed_ns_ = 0;
  trace::TraceWriter writer_;
};

}  // namespace culprit::record
