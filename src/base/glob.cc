// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

namespace culprit {

bool MatchesGlob(std::string_view glob, std::string_view text) {
  size_t g = 0;
  size_t t = 0;
  // Where to go on after the last star: it swallows one more character. Going
  // back to an earlier star is never needed.
  size_t star = std::string_view::npos;
  size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = ++g;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

}  // namespace culprit
