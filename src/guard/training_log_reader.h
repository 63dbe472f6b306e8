// SPDX-License-Identifier: Apache-2.0
//
// LogCursor: the records of one training log (runtime/wire.h, LogKind), read in
// pieces of a megabyte, up to where it ended when it was listed. Words that begin no record are
// stepped over one by one and counted; a record cut by the end of the file ends
// the reading. Behind either, and behind a kLost record, `broken` is set on the
// next record: what came before does not connect with it.
//
// ListLogs finds the logs of a session folder by name and checks their headers;
// files that are no logs are counted. One thread a cursor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/result.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

struct LogFile {
  std::string path;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t parent_pid = 0;
  uint64_t begin_ns = 0;
  uint64_t bytes = 0;
};

// By pid and tid.
Result<std::vector<LogFile>> ListLogs(const std::string& session_folder, Diagnostics& diagnostics);

// Parents before the processes they forked: a child's log says little without.
std::vector<LogFile> InOrderOfBirth(std::vector<LogFile> logs);

struct LogRecord {
  wire::LogKind kind = wire::LogKind::kEnter;
  bool broken = false;
  uint32_t a = 0;
  uint64_t b = 0;                   // stack pointers are not shifted back
  std::span<const uint64_t> words;  // valid until the next call of Next
};

class LogCursor {
 public:
  // The diagnostics must outlive the cursor.
  static Result<LogCursor> Open(const LogFile& log, Diagnostics& diagnostics);

  bool Next(LogRecord& record) {
    if (end_ - next_ > 1) {
      const uint64_t word = words_[next_];
      if (word >> 60 == static_cast<uint64_t>(wire::LogKind::kEnter)) {
        Split(word, record);
        record.words = std::span<const uint64_t>(words_.data() + next_ + 1, 1);
        next_ += 2;
        return true;
      }
    }
    return NextSlow(record);
  }
  uint64_t position() const { return file_offset_ - (end_ - next_) * sizeof(uint64_t); }

 private:
  LogCursor(InputFile file, Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(&diagnostics) {}
  void Split(uint64_t word, LogRecord& record) {
    record.kind = static_cast<wire::LogKind>(word >> 60);
    record.a = static_cast<uint32_t>(word >> 40 & 0xfffff);
    record.b = word & 0xff'ffff'ffff;
    record.broken = broken_;
    broken_ = false;
  }
  bool NextSlow(LogRecord& record);
  bool Refill();

  InputFile file_;
  Diagnostics* diagnostics_;
  uint64_t file_offset_ = 0;  // of what was not read yet
  uint64_t file_end_ = 0;     // as it was when the logs were listed
  std::vector<uint64_t> words_;
  std::string bytes_;
  size_t next_ = 0;
  size_t end_ = 0;
  bool broken_ = false;
};

}  // namespace culprit::guard
