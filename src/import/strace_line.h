// SPDX-License-Identifier: Apache-2.0
//
// One line of strace: whose it is, when, and what:
//
//   [PID] [TIME] NAME(ARGS) = RESULT [ERRNO (TEXT)] [<SECONDS>]
//   [PID] [TIME] NAME(ARGS <unfinished ...>
//   [PID] [TIME] <... NAME resumed>ARGS) = RESULT ...
//   [PID] [TIME] --- SIGNAL {...} ---       +++ exited with 0 +++
//    > MODULE(FUNCTION+0x1) [0x2]           a frame, with -k
//
// PID is "[pid 12]" or, with -o, a bare number; -Y puts the thread's name behind
// it in <>, -i and -n an address and a number in [] before NAME. TIME is seconds since the epoch
// (-ttt), since the line before (-r) or a time of day (-t, -tt). Views point
// into the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::import_ {

enum class StraceKind : uint8_t { kCall, kUnfinished, kResumed, kSignal, kExit };

struct StraceLine {
  enum class Clock : uint8_t { kNone, kSeconds, kOfDay };
  StraceKind kind = StraceKind::kCall;
  std::optional<int64_t> tid;
  Clock clock = Clock::kNone;
  int64_t time_ns = 0;
  std::string_view name;                 // of the call
  std::optional<int64_t> result;         // errors negative; nothing: "?"
  std::optional<int64_t> dur_ns;         // with -T
  std::string_view first_argument = {};  // of execve: the program
  std::string_view arguments = {};       // what stands behind "NAME("
};

std::optional<StraceLine> ParseStraceLine(std::string_view line);

// One of the arguments, from 0, without what strace puts around strings and
// structures taken apart; empty: there are not so many.
std::string_view StraceArgument(std::string_view arguments, size_t index);

// The head of a call without its end: the rest may be on the next line.
bool BeginsStraceCall(std::string_view line);

struct StraceFrame {
  std::string_view module;
  std::string_view function;  // empty: not known
  uint64_t address = 0;
};
std::optional<StraceFrame> ParseStraceFrame(std::string_view line);

}  // namespace culprit::import_
