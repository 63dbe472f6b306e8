// SPDX-License-Identifier: Apache-2.0
//
// CommandTemplate: how a user's own launcher is called, as words with
// placeholders:
//
//   ssh {host} {command}        kubectl exec worker-{slot} -- {program} shard {verb} {run} {index}
//
//   {index}     number of the task          {verb}   map, reduce or finalize
//   {indexes}   of all tasks: 0-3,7         {run}    the run folder, absolute
//   {program}   culprit                     {slot}   0..N-1 of N tasks at a time
//   {host}      the slot's of the hosts given
//   {command}   all of "culprit shard VERB RUN INDEX" as one word for a shell at
//               the other end, quoted for it
//   {{  }}      braces themselves
//
// The template is cut into words first, at blanks outside '...' and "..." as a
// shell does, and each word is filled in afterwards; no shell sees the result, so
// no name can become a command. Immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scale/stage.h"

namespace culprit::scale {

struct TemplateValues {
  std::string program;
  Verb verb = Verb::kMap;
  std::string run;
  uint64_t index = 0;
  std::string indexes;
  uint64_t slot = 0;
  std::string host;
  std::vector<std::string> task_flags;  // at the end of {command}
};

class CommandTemplate {
 public:
  // An Error for an open quote, a placeholder that there is not, no words at all,
  // or a template that does not say which task it is for.
  static Result<CommandTemplate> Parse(std::string_view text);

  std::vector<std::string> Fill(const TemplateValues& values) const;
  // One call starts all tasks, not one.
  bool for_all() const { return for_all_; }
  bool uses_host() const { return uses_host_; }

 private:
  struct Piece {
    bool is_placeholder = false;
    std::string text;
  };
  using Word = std::vector<Piece>;

  static Result<Word> ParseWord(std::string_view word);

  std::vector<Word> words_;
  bool for_all_ = false;
  bool uses_host_ = false;
};

}  // namespace culprit::scale
