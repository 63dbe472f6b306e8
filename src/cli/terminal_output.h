// SPDX-License-Identifier: Apache-2.0
//
// TerminalOutput: the real Output. Standard output is buffered and written
// whole when the buffer is full, before anything goes to standard error, and
// at Finish(). A write that fails is remembered, later text is dropped and
// Finish() gives the Error: nobody takes a cut result for a whole one.
//
// Colour and width are asked of the terminal once, at the start. Progress is a
// line on standard error that is drawn over itself and erased at the end, and
// only where standard error is a terminal that can do so. Lines on standard
// error lose their control characters: they quote file names and traces.
// Safe from several threads.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "cli/command.h"

namespace culprit::cli {

class TerminalOutput : public Output {
 public:
  // Descriptors for standard output and error; they stay open.
  TerminalOutput(int out_fd, int err_fd);
  ~TerminalOutput() override;

  void Print(std::string_view text) override;
  void Flush() override;
  void Warn(std::string_view line) override;
  void Note(std::string_view line) override;
  bool color() const override { return color_; }
  size_t width() const override { return width_; }
  Progress& progress() override { return progress_; }
  bool ok() const override;

  // Writes what is left. closed_pipe() tells a reader that went away, which
  // needs no message, from other errors.
  Status Finish();
  bool closed_pipe() const;

 private:
  void Draw(const Progress::Report& report);
  void EraseProgress();
  void WriteBuffer();
  void WriteError(const std::string& text);

  const int out_fd_;
  const int err_fd_;
  const bool out_is_terminal_;
  const bool draws_progress_;
  const bool color_;
  const size_t width_;
  mutable std::mutex mutex_;
  std::string buffer_;
  int error_number_ = 0;
  bool progress_shown_ = false;
  Progress progress_;
};

// "simulating  312/921 traces  45/s  0:13 left"
std::string ProgressLine(const Progress::Report& report);

}  // namespace culprit::cli
