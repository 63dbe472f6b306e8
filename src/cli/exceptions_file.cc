// SPDX-License-Identifier: Apache-2.0
#include "cli/exceptions_file.h"

#include "base/file.h"

namespace culprit::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view WithoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    // A # within a word belongs to it: "app!operator#2".
    const bool begins_word = at == 0 || kBlanks.find(line[at - 1]) != std::string_view::npos;
    if (begins_word) return line.substr(0, at);
  }
  return line;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

std::vector<std::string> ParseExceptions(std::string_view text) {
  std::vector<std::string> globs;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view glob = Trimmed(WithoutComment(text.substr(0, end)));
    if (!glob.empty()) globs.emplace_back(glob);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return globs;
}

Result<std::vector<std::string>> ReadExceptions(const std::string& path) {
  CULPRIT_ASSIGN(const std::string text, ReadWholeFile(path));
  return ParseExceptions(text);
}

}  // namespace culprit::cli
