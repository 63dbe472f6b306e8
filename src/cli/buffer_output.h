// SPDX-License-Identifier: Apache-2.0
//
// BufferOutput: an Output that keeps everything in two strings, for running
// commands inside a test. No colour, 100 columns, silent progress.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.h"

namespace culprit::cli {

class BufferOutput : public Output {
 public:
  void Print(std::string_view text) override { out_ += text; }
  void Warn(std::string_view line) override { Note("culprit: " + std::string(line)); }
  void Note(std::string_view line) override { err_.append(line).append("\n"); }
  bool color() const override { return false; }
  size_t width() const override { return 100; }
  Progress& progress() override { return progress_; }

  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  std::string out_;
  std::string err_;
  Progress progress_;
};

}  // namespace culprit::cli
