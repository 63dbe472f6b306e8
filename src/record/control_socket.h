// SPDX-License-Identifier: Apache-2.0
//
// ControlSocket: how other commands talk to a running recorder: a unix socket
// named after its process, in /run/culprit (root) or the user's runtime folder.
// One request a connection, one line each way:
//
//   dump                     -> ok PATH | error TEXT
//   mark TIME_NS PID TEXT    -> ok
//   cost                     -> ok SHARE, since the begin, in the budget's terms
//
// Requests are text of another process: nothing in them is trusted. The socket
// is removed with this object; one left behind by a killed recorder is ignored
// by FindRecorders and removed. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace culprit::record {

class ControlSocket {
 public:
  static Result<ControlSocket> Listen();
  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&&) = delete;
  ~ControlSocket();

  // Answers every request that waits.
  using Handler = std::function<std::string(std::string_view request)>;
  void Serve(const Handler& handler);
  const std::string& path() const { return path_; }

 private:
  ControlSocket(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  int fd_;
  std::string path_;
};

struct RunningRecorder {
  int64_t pid = -1;
  std::string socket;
};

// Those that answer, by process id.
std::vector<RunningRecorder> FindRecorders();
// The answer, without its line end.
Result<std::string> Ask(const RunningRecorder& recorder, const std::string& request);

struct MarkRequest {
  int64_t time_ns = 0;
  int64_t pid = -1;
  std::string_view text;
};
std::string FormatMark(const MarkRequest& mark);
// Nothing if it is no mark.
bool ParseMark(std::string_view request, MarkRequest& mark);

}  // namespace culprit::record
