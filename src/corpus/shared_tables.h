// SPDX-License-Identifier: Apache-2.0
//
// SharedTables: what the summaries of a corpus have in common, kept once, as tables
// in a folder. A table is a sealed file (sealed_bytes.h) that is called by a digest of
// its content and never changed; one that lacks too much is followed by a new one that
// has all of the old. Content is made from the bytes of a table:
//
//   static std::unique_ptr<const Content> Content::Read(std::string raw);   // null: not one
//
// A table that is missing or damaged is none, and what refers to it is made again. Few
// are in memory at a time, the last used ones.
//
// Safe from several threads and processes: nothing is ever written but whole new files,
// and two writers of one table write the same bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "corpus/quick_write.h"
#include "corpus/sealed_bytes.h"

namespace culprit::corpus {

// A new table pays when it has this share more, one in so many, of what a summary has.
inline constexpr size_t kNewTableShare = 8;

template <class Content>
class SharedTables {
 public:
  struct Table {
    std::string digest;
    std::unique_ptr<const Content> content;
  };
  using Pointer = std::shared_ptr<const Table>;

  // `kind` is what its tables are sealed as.
  SharedTables(std::string folder, std::string kind)
      : folder_(std::move(folder)), kind_(std::move(kind)) {}

  // Null if it is not there.
  Pointer Find(const std::string& digest) {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(loaded_.begin(), loaded_.end(),
                                    [&](const Pointer& table) { return table->digest == digest; });
    const Pointer table = known != loaded_.end() ? *known : Load(digest);
    if (table) Remember(table);
    return table;
  }

  // The one to write with: the last made, else the largest of earlier runs, else null.
  Pointer Current() {
    const std::lock_guard lock(mutex_);
    if (!looked_) current_ = Largest();
    looked_ = true;
    return current_;
  }

  // Makes a new one of the bytes that `grown(current content or null)` gives, one thread
  // at a time; the current one stays where it gives none, or where they cannot be written.
  template <class Grown>
  Pointer Grow(const Grown& grown) {
    const std::lock_guard lock(mutex_);
    std::optional<std::string> raw = grown(current_ ? current_->content.get() : nullptr);
    if (!raw) return current_;
    const std::string digest = ShortDigest(*raw);
    const std::string sealed = Seal(kind_, digest, *raw);
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    if (code || !WriteQuickly(folder_ + "/" + digest, sealed).ok()) return current_;
    bytes_written_ += sealed.size();
    const Pointer made = MakeTable(digest, std::move(*raw));
    if (!made) return current_;
    current_ = made;
    Remember(made);
    return made;
  }

  uint64_t bytes_written() const {
    const std::lock_guard lock(mutex_);
    return bytes_written_;
  }

 private:
  static constexpr size_t kMostLoaded = 8;

  static Pointer MakeTable(const std::string& digest, std::string raw) {
    std::unique_ptr<const Content> content = Content::Read(std::move(raw));
    if (!content) return nullptr;
    return std::make_shared<const Table>(Table{digest, std::move(content)});
  }

  Pointer Load(const std::string& digest) const {
    // The digest comes from a file: it must not lead out of the folder.
    if (digest.empty() || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return nullptr;
    }
    const Result<std::string> sealed = ReadWholeFile(folder_ + "/" + digest);
    if (!sealed.ok()) return nullptr;
    std::optional<std::string> raw = Unseal(kind_, digest, sealed.value());
    if (!raw || ShortDigest(*raw) != digest) return nullptr;
    return MakeTable(digest, std::move(*raw));
  }

  // The one that grew longest, of those that earlier runs made.
  Pointer Largest() const {
    std::vector<std::pair<uint64_t, std::string>> files;
    std::error_code code;
    for (std::filesystem::directory_iterator it(folder_, code), end; !code && it != end;
         it.increment(code)) {
      std::error_code no_size;
      const uint64_t bytes = it->file_size(no_size);
      if (!no_size) files.emplace_back(bytes, it->path().filename().string());
    }
    std::sort(files.rbegin(), files.rend());
    if (files.size() > kMostLoaded) files.resize(kMostLoaded);
    for (const auto& [bytes, name] : files) {
      if (Pointer table = Load(name)) return table;
    }
    return nullptr;
  }

  void Remember(const Pointer& table) {
    std::erase(loaded_, table);
    loaded_.push_front(table);
    if (loaded_.size() > kMostLoaded) loaded_.pop_back();
  }

  const std::string folder_;
  const std::string kind_;
  mutable std::mutex mutex_;
  bool looked_ = false;         // for tables of earlier runs
  Pointer current_;             // may be null
  std::deque<Pointer> loaded_;  // the last used first
  uint64_t bytes_written_ = 0;
};

}  // namespace culprit::corpus
