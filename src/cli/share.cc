// SPDX-License-Identifier: Apache-2.0
#include "cli/share.h"

#include <optional>
#include <string>

#include "base/text.h"

namespace culprit::cli {

Result<double> ReadShare(const Arguments& arguments, std::string_view flag, double most) {
  const std::string text = arguments.Text(flag);
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  const std::optional<double> value = ParseDouble(digits);
  const double share = value ? (percent ? *value / 100 : *value) : -1;
  if (!(share >= 0 && share <= most)) {
    return Error{.message = std::string(flag) + ": '" + text + "' is no share",
                 .hint = "write it as 5% or 0.05"};
  }
  return share;
}

}  // namespace culprit::cli
