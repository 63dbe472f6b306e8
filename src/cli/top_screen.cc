// SPDX-License-Identifier: Apache-2.0
#include "cli/top_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace culprit::cli {
namespace {

constexpr size_t kUsualWidth = 100;
constexpr size_t kUsualHeight = 40;
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";  // another screen, no cursor
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";

bool WriteOut(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

winsize WindowSize() {
  winsize size = {};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

}  // namespace

TopScreen::TopScreen() {
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && *term != 0 && std::string_view(term) != "dumb";
  if (!capable || isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) return;
  if (tcgetattr(STDIN_FILENO, &old_) != 0) return;
  termios raw = old_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return;
  active_ = true;
  WriteOut(kEnter);
}

TopScreen::~TopScreen() {
  if (!active_) return;
  WriteOut(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &old_);
}

size_t TopScreen::width() const {
  const winsize size = WindowSize();
  return size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

size_t TopScreen::height() const {
  const winsize size = WindowSize();
  return size.ws_row > 0 ? size.ws_row : kUsualHeight;
}

char TopScreen::Key() const {
  if (!active_) return 0;
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char key = 0;
  if (poll(&input, 1, 0) <= 0 || read(STDIN_FILENO, &key, 1) != 1) return 0;
  return key;
}

bool TopScreen::Show(std::string_view text) const {
  return WriteOut(active_ ? Picture(text) : std::string(text));
}

std::string TopScreen::Picture(std::string_view text) const {
  std::string picture = "\033[H";
  const size_t rows = height();
  for (size_t row = 0; row + 1 < rows && !text.empty(); ++row) {
    const size_t end = std::min(text.find('\n'), text.size());
    picture.append(text.substr(0, end)).append("\033[K\r\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return picture + "\033[J";
}

}  // namespace culprit::cli
