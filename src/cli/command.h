// SPDX-License-Identifier: Apache-2.0
//
// Command: one verb of culprit, described once. The same description parses
// the arguments and makes --help, the man page and the shell completions, so
// they cannot drift apart. A command of two words ("corpus add") is a row of
// its own. Adding a command: its file, and one line in commands.cc.
//
// Run returns the exit code: 0 done; 1 the operation failed or a check did not
// hold; 2 the command line was wrong (only main uses that). An Error returned
// is printed by main with its hint and becomes exit code 1.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"

namespace culprit::cli {

enum class ValueKind { kNone, kText, kPath, kNumber, kReal, kDuration, kChoice };

struct Flag {
  std::string_view name;  // "--seed"
  char letter = 0;        // 'o' for -o; 0: none
  ValueKind kind = ValueKind::kNone;
  std::string_view value = {};         // how the value is called in help: "N", "FILE"
  std::string_view help = {};          // one sentence, no full stop
  std::string_view default_text = {};  // shown in help; also what Arguments gives when absent
  std::vector<std::string_view> choices = {};  // kChoice
  bool required = false;                       // leaving it out is a wrong command line
};

struct Example {
  std::string_view command;  // "culprit info c"
  std::string_view what;     // "where the time of a corpus went"
};

class Arguments;
class Output;

struct Command {
  std::string_view name;      // "info", "corpus add"
  std::string_view summary;   // one line, no full stop
  std::string_view operands;  // "TRACE|CORPUS", "CORPUS TRACE..."; empty: none
  size_t min_operands = 0;
  size_t max_operands = 0;  // SIZE_MAX: any number
  std::vector<Example> examples;
  std::vector<Flag> flags;        // --help is implied
  std::string_view details = {};  // paragraphs for --help and the man page
  Result<int> (*run)(const Arguments&, Output&) = nullptr;
};

// Parsed and checked arguments: every value already fits its ValueKind, so the
// getters cannot fail. Of a flag given several times the last one counts, except
// in All(). Absent and without a default: "", 0. Asking for a flag the command
// does not have, or a default_text that does not fit its kind, is a bug.
class Arguments {
 public:
  const std::vector<std::string>& operands() const { return operands_; }
  bool Has(std::string_view flag) const;                      // given on the command line
  std::string Text(std::string_view flag) const;              // or its default_text
  std::vector<std::string> All(std::string_view flag) const;  // every occurrence
  uint64_t Number(std::string_view flag) const;
  double Real(std::string_view flag) const;
  int64_t DurationNs(std::string_view flag) const;

 private:
  friend Result<Arguments> ParseArguments(const Command&, const std::vector<std::string>&);
  const Command* command_ = nullptr;
  std::vector<std::string> operands_;
  std::vector<std::pair<std::string_view, std::string>> values_;
};

Result<Arguments> ParseArguments(const Command& command, const std::vector<std::string>& words);

// Where a command writes. Results go to standard output, everything else
// (progress, warnings, "next:" lines) to standard error. Colour and progress
// only where that stream is a terminal and NO_COLOR is unset.
class Output {
 public:
  virtual ~Output() = default;
  virtual void Print(std::string_view text) = 0;
  // Writes now what was printed: for results that come while a program runs on.
  virtual void Flush() {}
  // One line to standard error, "culprit: " before it.
  virtual void Warn(std::string_view line) = 0;
  // One plain line to standard error.
  virtual void Note(std::string_view line) = 0;
  virtual bool color() const = 0;    // of standard output
  virtual size_t width() const = 0;  // columns; 100 where there is no terminal
  virtual Progress& progress() = 0;  // draws on standard error, or nothing
  // False once standard output takes no more (closed pipe, full disk): who has
  // much left to print may stop. main says why and sets the exit code.
  virtual bool ok() const { return true; }
};

const std::vector<Command>& Commands();
const Command* FindCommand(std::string_view name);

}  // namespace culprit::cli
