// SPDX-License-Identifier: Apache-2.0
//
// TopScreen: the terminal of `culprit top`: keys without a line's end, a picture
// drawn over the one before, and the terminal as it was when this object goes.
// Does nothing where standard input or output is no terminal. Escape sequences of
// any terminal made since the VT100.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace culprit::cli {

class TopScreen {
 public:
  TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;
  ~TopScreen();

  bool active() const { return active_; }
  // As it is now: people change their windows.
  size_t width() const;
  size_t height() const;
  // The next key that was pressed, 0 if none was.
  char Key() const;
  // At once, unlike Output's: over the picture before, or below it where there is
  // no terminal. Lines beyond the height are left out. False once nobody reads.
  bool Show(std::string_view text) const;

 private:
  std::string Picture(std::string_view text) const;

  bool active_ = false;
  termios old_ = {};
};

}  // namespace culprit::cli
