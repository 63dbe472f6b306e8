// SPDX-License-Identifier: Apache-2.0
#include "push/pseudonyms.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"

namespace culprit::push {
namespace {

constexpr size_t kShownBytes = 6;
constexpr size_t kShortestWord = 3;

// Names of folders and groups that tell nothing of who uses the machine.
constexpr std::array<std::string_view, 27> kEverywhere = {
    "usr",   "lib",     "lib64",   "lib32", "libexec",    "bin",         "sbin",
    "local", "share",   "include", "proc",  "sys",        "dev",         "tmp",
    "run",   "modules", "kernel",  "etc",   "opt",        "var",         "home",
    "root",  "Users",   "Windows", "debug", "user.slice", "system.slice"};

bool IsEverywhere(std::string_view part) {
  return std::find(kEverywhere.begin(), kEverywhere.end(), part) != kEverywhere.end();
}

bool IsWordLetter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool EndsAPath(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '"' || c == '\'' || c == ',' || c == ';' ||
         c == ')' || c == '(' || c == '=' || c == ':';
}

// Of a path of either kind.
size_t NextSeparator(std::string_view path, size_t from) { return path.find_first_of("/\\", from); }

std::string_view UserIn(std::string_view path) {
  for (const std::string_view before : {"/home/", "/Users/", "\\Users\\", "/var/home/"}) {
    const size_t at = path.find(before);
    if (at == std::string_view::npos) continue;
    const size_t begin = at + before.size();
    return path.substr(begin, std::min(NextSeparator(path, begin), path.size()) - begin);
  }
  return {};
}

}  // namespace

void Pseudonyms::AddHost(std::string_view name) {
  if (name.size() >= kShortestWord) words_.emplace(name, "hosts");
}

void Pseudonyms::AddUser(std::string_view name) {
  // "root" is a user of every machine.
  if (name.size() >= kShortestWord && name != "root") words_.emplace(name, "users");
}

void Pseudonyms::LearnFromPath(std::string_view path) { AddUser(UserIn(path)); }

std::string Pseudonyms::Of(const char* kind, const char* prefix, std::string_view text) {
  auto& made = made_[kind];
  if (const auto found = made.find(text); found != made.end()) return found->second;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  // The kind is part of what is hashed: a user and a folder of one name differ.
  const std::string message = std::string(prefix) + '\0' + std::string(text);
  CULPRIT_CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                     digest.data(), &size) != nullptr);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = prefix;
  for (size_t i = 0; i < kShownBytes; ++i) {
    name += kDigits[digest[i] >> 4U];
    name += kDigits[digest[i] & 15U];
  }
  made.emplace(text, name);
  return name;
}

std::string Pseudonyms::Folder(std::string_view part) {
  if (part.empty() || part == "." || part == ".." || IsEverywhere(part)) return std::string(part);
  if (part.size() == 2 && part[1] == ':') return std::string(part);  // a drive
  return Of("paths", "d-", part);
}

std::string Pseudonyms::Path(std::string_view path) {
  if (NextSeparator(path, 0) == std::string_view::npos) return Text(path);
  if (path.front() == '[') return std::string(path);  // "[kernel.kallsyms]_text"
  std::string result;
  size_t begin = 0;
  for (size_t end = NextSeparator(path, 0); end != std::string_view::npos;
       end = NextSeparator(path, begin)) {
    result += Folder(path.substr(begin, end - begin));
    result += path[end];
    begin = end + 1;
  }
  return result + std::string(path.substr(begin));
}

std::string Pseudonyms::CommandLine(std::string_view line) {
  std::string result;
  size_t begin = 0;
  while (begin < line.size()) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (begin == 0) {
      result += Path(word);
    } else if (!word.empty()) {
      result += ' ' + Of("arguments", "a-", word);
    }
    begin = end + 1;
  }
  return result;
}

std::string Pseudonyms::Cgroup(std::string_view group) {
  std::string result;
  size_t begin = 0;
  while (begin <= group.size()) {
    const size_t end = std::min(group.find('/', begin), group.size());
    const std::string_view part = group.substr(begin, end - begin);
    result += part.empty() || IsEverywhere(part) ? std::string(part) : Of("cgroups", "g-", part);
    if (end < group.size()) result += '/';
    begin = end + 1;
  }
  return result;
}

std::string Pseudonyms::Host(std::string_view name) {
  return name.empty() ? std::string() : Of("hosts", "host-", name);
}

std::string Pseudonyms::Text(std::string_view text) {
  std::string result;
  size_t at = 0;
  while (at < text.size()) {
    const bool starts = at == 0 || !IsWordLetter(text[at - 1]);
    if (starts && text[at] == '/' && at + 1 < text.size() && IsWordLetter(text[at + 1])) {
      size_t end = at;
      while (end < text.size() && !EndsAPath(text[end])) ++end;
      result += Path(text.substr(at, end - at));
      at = end;
      continue;
    }
    if (!starts || !IsWordLetter(text[at])) {
      result += text[at++];
      continue;
    }
    size_t end = at;
    while (end < text.size() && IsWordLetter(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const auto found = words_.find(word);
    if (found == words_.end()) {
      result += word;
    } else {
      const bool host = std::string_view(found->second) == "hosts";
      result += host ? Host(word) : Of("users", "user-", word);
    }
    at = end;
  }
  return result;
}

Replaced Pseudonyms::Counts() const {
  Replaced counts;
  for (const auto& [kind, made] : made_) counts[kind] = made.size();
  return counts;
}

}  // namespace culprit::push
