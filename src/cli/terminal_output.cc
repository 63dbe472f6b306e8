// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;
constexpr size_t kWidthWithoutTerminal = 100;

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != 0;
}

// A terminal that understands escape sequences.
bool IsCapable(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && term != nullptr && *term != 0 && std::string_view(term) != "dumb";
}

size_t WidthOf(int fd) {
  winsize size{};
  if (::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return kWidthWithoutTerminal;
}

// 0, or the errno of the write that failed.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

std::string PlainLines(std::string_view text) {
  std::string plain;
  while (true) {
    const size_t end = text.find('\n');
    plain += report::PlainText(text.substr(0, end));
    if (end == std::string_view::npos) return plain;
    plain += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string Clock(double seconds_left) {
  const auto seconds = static_cast<uint64_t>(std::ceil(std::min(seconds_left, 359'999.0)));
  const auto two = [](uint64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const uint64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  const std::string tail = ":" + two(seconds % 60);
  return hours > 0 ? std::to_string(hours) + ":" + two(minutes) + tail
                   : std::to_string(minutes) + tail;
}

std::string Rate(double per_second) {
  if (per_second >= 9.95) return FormatCount(static_cast<uint64_t>(std::llround(per_second)));
  const auto tenths = static_cast<uint64_t>(std::llround(per_second * 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

}  // namespace

std::string ProgressLine(const Progress::Report& report) {
  std::string line = report.what + "  " + std::to_string(report.done);
  if (report.total != 0) line += "/" + std::to_string(report.total);
  if (!report.unit.empty()) line += " " + report.unit;
  if (report.per_second > 0) line += "  " + Rate(report.per_second) + "/s";
  if (report.seconds_left) line += "  " + Clock(*report.seconds_left) + " left";
  return line;
}

TerminalOutput::TerminalOutput(int out_fd, int err_fd)
    : out_fd_(out_fd),
      err_fd_(err_fd),
      out_is_terminal_(::isatty(out_fd) == 1),
      draws_progress_(IsCapable(err_fd)),
      color_(IsCapable(out_fd) && !IsSet("NO_COLOR")),
      width_(WidthOf(out_fd)),
      progress_(draws_progress_ ? Progress::Listener([this](const auto& report) { Draw(report); })
                                : Progress::Listener()) {}

TerminalOutput::~TerminalOutput() {
  const std::lock_guard lock(mutex_);
  EraseProgress();
  WriteBuffer();
}

void TerminalOutput::Print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (error_number_ != 0) return;
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return;
  if (out_is_terminal_) EraseProgress();
  WriteBuffer();
}

void TerminalOutput::Flush() {
  const std::lock_guard lock(mutex_);
  if (out_is_terminal_) EraseProgress();
  WriteBuffer();
}

void TerminalOutput::Warn(std::string_view line) { Note("culprit: " + std::string(line)); }

void TerminalOutput::Note(std::string_view line) { WriteError(PlainLines(line) + "\n"); }

bool TerminalOutput::ok() const {
  const std::lock_guard lock(mutex_);
  return error_number_ == 0;
}

bool TerminalOutput::closed_pipe() const {
  const std::lock_guard lock(mutex_);
  return error_number_ == EPIPE;
}

Status TerminalOutput::Finish() {
  const std::lock_guard lock(mutex_);
  EraseProgress();
  WriteBuffer();
  if (error_number_ == 0) return {};
  errno = error_number_;
  return ErrnoError("write", "standard output");
}

void TerminalOutput::WriteBuffer() {
  if (error_number_ == 0) error_number_ = WriteAll(out_fd_, buffer_);
  buffer_.clear();
}

// Results printed before a warning appear before it, also when both streams go
// to one place.
void TerminalOutput::WriteError(const std::string& text) {
  const std::lock_guard lock(mutex_);
  EraseProgress();
  WriteBuffer();
  // Standard error that cannot be written leaves nobody to tell.
  static_cast<void>(WriteAll(err_fd_, text));
}

void TerminalOutput::EraseProgress() {
  if (!progress_shown_) return;
  static_cast<void>(WriteAll(err_fd_, "\r\033[K"));
  progress_shown_ = false;
}

void TerminalOutput::Draw(const Progress::Report& report) {
  const std::lock_guard lock(mutex_);
  if (report.finished) {
    EraseProgress();
    return;
  }
  std::string line = report::PlainText(ProgressLine(report));
  // The last column stays free: writing there wraps on some terminals.
  const size_t room = WidthOf(err_fd_) - 1;
  line.erase(report::CodePointOffset(line, room));
  static_cast<void>(WriteAll(err_fd_, "\r" + line + "\033[K"));
  progress_shown_ = true;
}

}  // namespace culprit::cli
