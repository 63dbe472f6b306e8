// SPDX-License-Identifier: Apache-2.0
//
// Pseudonyms: other names for what must not leave a machine. The same text gets
// the same pseudonym under the same key, so traces of one sender still belong
// together; without the key it cannot be guessed by trying names (HMAC-SHA-256,
// of which 48 bits are shown). Words that name the machine or its users are also
// replaced inside other texts, where they stand as whole words. One thread at a
// time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace culprit::push {

// What was replaced, distinct texts by what they were: "paths", "arguments",
// "hosts", "users", "cgroups".
using Replaced = std::map<std::string, uint64_t>;

class Pseudonyms {
 public:
  explicit Pseudonyms(std::string key) : key_(std::move(key)) {}

  // Names to be replaced wherever they stand as words; of one or two letters
  // none, they would be found everywhere.
  void AddHost(std::string_view name);
  void AddUser(std::string_view name);
  // The user of /home/NAME/..., /Users/NAME/..., C:\Users\NAME\... if it names one.
  void LearnFromPath(std::string_view path);

  // "/srv/acme/bin/app" to "/d-4f19a2c0b1d7/d-.../d-.../app": folders go, the
  // file's name stays. Folders that every system has (/usr, /lib, ...) stay, and
  // so does what is no path.
  std::string Path(std::string_view path);
  // The program's name stays, every other word goes.
  std::string CommandLine(std::string_view line);
  // Every part between slashes goes, but for those that every system has.
  std::string Cgroup(std::string_view group);
  std::string Host(std::string_view name);
  // A text in which words and paths are replaced and the rest stays.
  std::string Text(std::string_view text);

  Replaced Counts() const;

 private:
  std::string Of(const char* kind, const char* prefix, std::string_view text);
  std::string Folder(std::string_view part);

  std::string key_;
  std::map<std::string, const char*, std::less<>> words_;  // to "hosts" or "users"
  std::map<std::string, std::map<std::string, std::string, std::less<>>> made_;  // by kind
};

}  // namespace culprit::push
