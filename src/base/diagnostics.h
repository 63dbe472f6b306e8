// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics: what was wrong with a good input. Every bad record is counted
// under a short sentence ("block with a wrong checksum"); the byte offset of
// the first is kept, so that a person can look. Nothing is lost in silence:
// commands print these rows beside their results.
//
// Not thread-safe: one object per trace and thread, merged afterwards. Rows
// are ordered by their sentence, so the outcome does not depend on the order
// of merging, except for first_offset, which keeps the smallest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace culprit {

class Diagnostics {
 public:
  struct Row {
    uint64_t count = 0;
    std::optional<uint64_t> first_offset;
  };

  void Count(std::string_view what, uint64_t count = 1, std::optional<uint64_t> offset = {});
  void Merge(const Diagnostics& other);

  bool empty() const { return rows_.empty(); }
  uint64_t total() const;
  const std::map<std::string, Row, std::less<>>& rows() const { return rows_; }

 private:
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace culprit
