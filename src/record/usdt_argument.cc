// SPDX-License-Identifier: Apache-2.0
#include "record/usdt_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace culprit::record {
namespace {

// "rbx", "ebx" and "bx" are one register, of which the kernel has the last name.
std::optional<std::string> KernelRegister(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kNames = {"ax", "bx", "cx", "dx",
                                                             "si", "di", "bp", "sp"};
  std::string_view rest = name;
  if (rest.starts_with('r') || rest.starts_with('e')) rest.remove_prefix(1);
  if (std::find(kNames.begin(), kNames.end(), rest) != kNames.end()) return std::string(rest);
  const bool numbered =
      name.size() > 1 && (name[0] == 'x' || name[0] == 'r') && (name[1] != '0' || name.size() == 2);
  const std::optional<uint64_t> number =
      numbered ? ParseUnsigned(name.substr(1)) : std::optional<uint64_t>();
  if (!number || *number > 30 || (name[0] == 'r' && (*number < 8 || *number > 15))) return {};
  return std::string(name);
}

std::optional<std::string> InMemory(std::string_view reg, std::string_view offset) {
  const std::optional<std::string> name = KernelRegister(reg);
  int64_t number = 0;
  const bool negative = offset.starts_with('-');
  if (negative || offset.starts_with('+')) offset.remove_prefix(1);
  if (!offset.empty()) {
    const std::optional<uint64_t> value = ParseUnsigned(offset);
    if (!value || *value > INT32_MAX) return {};
    number = static_cast<int64_t>(*value);
  }
  if (!name) return {};
  return fmt::format("{}{}(%{})", negative ? '-' : '+', number, *name);
}

// The operand, as assemblers write it: x20, [sp, 152] or %rbx, -20(%rbp).
std::optional<std::string> FetchOfOperand(std::string_view operand) {
  if (operand.starts_with('[') && operand.ends_with(']')) {
    operand = operand.substr(1, operand.size() - 2);
    const size_t comma = operand.find(',');
    std::string_view offset =
        comma == std::string_view::npos ? std::string_view() : operand.substr(comma + 1);
    while (offset.starts_with(' ')) offset.remove_prefix(1);
    return InMemory(operand.substr(0, comma), offset);
  }
  const size_t open = operand.find("(%");
  if (open != std::string_view::npos && operand.ends_with(')')) {
    return InMemory(operand.substr(open + 2, operand.size() - open - 3), operand.substr(0, open));
  }
  if (operand.starts_with('%')) operand.remove_prefix(1);
  const std::optional<std::string> name = KernelRegister(operand);
  return name ? std::optional("%" + *name) : std::nullopt;
}

// Parts of "8@x20 -4@[sp, 152]".
std::vector<std::string_view> SplitArguments(std::string_view arguments) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i <= arguments.size(); ++i) {
    if (i < arguments.size() && arguments[i] == '[') inside = true;
    if (i < arguments.size() && arguments[i] == ']') inside = false;
    if (i < arguments.size() && (arguments[i] != ' ' || inside)) continue;
    if (i > begin) parts.push_back(arguments.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

}  // namespace

std::optional<std::string> FetchOfArgument(std::string_view arguments, size_t index) {
  const std::vector<std::string_view> parts = SplitArguments(arguments);
  if (index >= parts.size()) return {};
  const size_t at = parts[index].find('@');
  if (at == std::string_view::npos) return {};
  return FetchOfOperand(parts[index].substr(at + 1));
}

}  // namespace culprit::record
