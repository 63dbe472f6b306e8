// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "cli/shell_run.h"

namespace culprit::cli::TEST_FILE {
namespace {

class Environment {
 public:
  Environment(const char* term, const char* no_color) {
    Set("TERM", term);
    Set("NO_COLOR", no_color);
  }

 private:
  static void Set(const char* name, const char* value) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
};

class Pipe {
 public:
  Pipe() { CULPRIT_CHECK(::pipe(fds_) == 0); }
  ~Pipe() {
    CloseReader();
    if (fds_[1] >= 0) ::close(fds_[1]);
  }
  int writer() const { return fds_[1]; }
  void CloseReader() {
    if (fds_[0] >= 0) ::close(std::exchange(fds_[0], -1));
  }
  std::string ReadAll() {
    ::close(std::exchange(fds_[1], -1));
    std::string text;
    char chunk[4096];
    for (ssize_t count; (count = ::read(fds_[0], chunk, sizeof(chunk))) > 0;) {
      text.append(chunk, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int fds_[2];
};

// A terminal of 60 columns that is not on anybody's screen.
class Terminal {
 public:
  // A root without /dev/pts has none to give.
  static bool Available() {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
    const bool ok = master >= 0 && ::grantpt(master) == 0 && ::unlockpt(master) == 0;
    if (master >= 0) ::close(master);
    return ok;
  }

  Terminal() {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    CULPRIT_CHECK(master_ >= 0 && ::grantpt(master_) == 0 && ::unlockpt(master_) == 0);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    CULPRIT_CHECK(slave_ >= 0);
    termios raw{};
    ::tcgetattr(slave_, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(slave_, TCSANOW, &raw);
    winsize size{};
    size.ws_col = 60;
    ::ioctl(slave_, TIOCSWINSZ, &size);
  }
  ~Terminal() {
    ::close(slave_);
    ::close(master_);
  }
  int fd() const { return slave_; }
  std::string Shown() const {
    std::string text;
    char chunk[4096];
    pollfd poll_fd{.fd = master_, .events = POLLIN, .revents = 0};
    while (::poll(&poll_fd, 1, 50) == 1) {
      const ssize_t count = ::read(master_, chunk, sizeof(chunk));
      if (count <= 0) break;
      text.append(chunk, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int master_;
  int slave_;
};

TEST(TerminalOutput, WithoutATerminalHasNoColorAndAHundredColumns) {
  Environment environment("xterm", nullptr);
  Pipe out, err;
  {
    TerminalOutput output(out.writer(), err.writer());
    EXPECT_FALSE(output.color());
    EXPECT_EQ(output.width(), 100u);
    output.Print("result\n");
    output.Warn("careful");
    output.Note("next: x");
    output.progress().Start("working", "things", 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    output.progress().Advance();
    output.progress().Finish();
    EXPECT_TRUE(output.Finish().ok());
  }
  EXPECT_EQ(out.ReadAll(), "result\n");
  EXPECT_EQ(err.ReadAll(), "culprit: careful\nnext: x\n");
}

TEST(TerminalOutput, KeepsTheOrderOfBothStreamsInOnePlace) {
  Pipe both;
  {
    TerminalOutput output(both.writer(), both.writer());
    output.Print("one\n");
    output.Note("two");
    output.Print("three\n");
  }
  EXPECT_EQ(both.ReadAll(), "one\ntwo\nthree\n");
}

TEST(TerminalOutput, LinesOnStandardErrorCannotDriveTheTerminal) {
  Pipe out, err;
  { TerminalOutput(out.writer(), err.writer()).Warn("a\x1b[2Jb\x07\nc\xff"); }
  EXPECT_EQ(err.ReadAll(), "culprit: a?[2Jb?\nc\uFFFD\n");
}

TEST(TerminalOutput, ColorNeedsACapableTerminalAndNoRefusal) {
  if (!Terminal::Available()) GTEST_SKIP() << "this system has no pseudo-terminals";
  Terminal terminal;
  Pipe other;
  const auto color = [&](const char* term, const char* no_color, int fd) {
    Environment environment(term, no_color);
    return TerminalOutput(fd, other.writer()).color();
  };
  EXPECT_TRUE(color("xterm", nullptr, terminal.fd()));
  EXPECT_TRUE(color("xterm", "", terminal.fd()));
  EXPECT_FALSE(color("xterm", "1", terminal.fd()));
  EXPECT_FALSE(color("dumb", nullptr, terminal.fd()));
  EXPECT_FALSE(color(nullptr, nullptr, terminal.fd()));
  EXPECT_FALSE(color("xterm", nullptr, other.writer()));
  EXPECT_EQ(TerminalOutput(terminal.fd(), other.writer()).width(), 60u);
}

TEST(TerminalOutput, DrawsProgressOverItselfAndErasesIt) {
  if (!Terminal::Available()) GTEST_SKIP() << "this system has no pseudo-terminals";
  Environment environment("xterm", nullptr);
  Pipe out;
  Terminal err;
  TerminalOutput output(out.writer(), err.fd());
  output.progress().Start("simulating " + std::string(80, 'x'), "traces", 10);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  output.progress().Advance(4);
  const std::string drawn = err.Shown();
  EXPECT_EQ(drawn, "\rsimulating " + std::string(48, 'x') + "\033[K");
  output.Note("in between");
  EXPECT_EQ(err.Shown(), "\r\033[Kin between\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  output.progress().Advance(6);
  EXPECT_NE(err.Shown(), "");
  output.progress().Finish();
  EXPECT_EQ(err.Shown(), "\r\033[K");
}

TEST(TerminalOutput, AFullDiskIsAnError) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  Pipe err;
  TerminalOutput output(full, err.writer());
  output.Print("x");
  EXPECT_TRUE(output.ok());
  const Status status = output.Finish();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().ToString(), "standard output: cannot write: No space left on device");
  EXPECT_FALSE(output.ok());
  EXPECT_FALSE(output.closed_pipe());
  ::close(full);
}

TEST(TerminalOutput, AReaderThatWentAwayIsNoticedWhilePrinting) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe out, err;
  TerminalOutput output(out.writer(), err.writer());
  out.CloseReader();
  output.Print(std::string(1 << 20, 'x'));
  EXPECT_FALSE(output.ok());
  EXPECT_TRUE(output.closed_pipe());
  EXPECT_FALSE(output.Finish().ok());
}

TEST(ProgressLine, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(ProgressLine({.what = "simulating",
                          .unit = "traces",
                          .done = 312,
                          .total = 921,
                          .per_second = 45.2,
                          .seconds_left = 12.4}),
            "simulating  312/921 traces  45/s  0:13 left");
  EXPECT_EQ(ProgressLine({.what = "reading",
                          .unit = "events",
                          .done = 5'000'000,
                          .total = 0,
                          .per_second = 1'234'567,
                          .seconds_left = {}}),
            "reading  5000000 events  1.23 M/s");
  EXPECT_EQ(ProgressLine({.what = "hashing",
                          .unit = "files",
                          .done = 1,
                          .total = 9000,
                          .per_second = 1.25,
                          .seconds_left = 7199.2}),
            "hashing  1/9000 files  1.3/s  2:00:00 left");
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
