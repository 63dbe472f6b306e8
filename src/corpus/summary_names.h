// SPDX-License-Identifier: Apache-2.0
//
// SummaryNames: the names that the summaries of a corpus have in common, kept once.
// Most of a summary would be names of frames, and thousands of traces have the same.
//
//   FOLDER/summaries/names/0b7c52d1a9e8f3340b7c52d1a9e8f334
//
// is a table of names, sealed (sealed_bytes.h), called by a digest of its content and
// never changed. A summary says which table its names are numbers of, and spells those
// that the table does not have:
//
//   packed  := table:string count:varint code{count} spelled:string... rest
//   code    := 0 for a spelled name | 1 + zigzag(number - number of the last one)
//
// What Pack is given comes back from Unpack byte for byte, whichever table served.
// Summaries with many new names make a new table, which has the old names too. A table
// that is missing or damaged means that the summaries on it are made again. Tables grow
// to kMostTableBytes, then a new one is begun; few are in memory at a time.
//
// Safe from several threads and processes: nothing is ever written but whole new
// files, and two writers of one table write the same bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"

namespace culprit::corpus {

class SummaryNames {
 public:
  explicit SummaryNames(const std::string& summaries_folder);
  ~SummaryNames();

  // `payload` begins with a list of strings (part_codec.h). Writes a new table where
  // one is called for, and does without where that fails.
  std::string Pack(std::string_view payload);
  // None if the table is not there, or the bytes are not those of Pack.
  std::optional<std::string> Unpack(std::string_view packed);

  uint64_t bytes_written() const;

 private:
  struct Table;
  using TablePointer = std::shared_ptr<const Table>;

  TablePointer Load(const std::string& digest) const;
  TablePointer Find(const std::string& digest);
  TablePointer Largest() const;
  TablePointer Current();
  TablePointer Grow(const std::vector<std::string_view>& names);
  TablePointer Make(const Table* grown_from, const std::vector<std::string_view>& names);
  void Remember(const TablePointer& table);
  // None where the table does not have the name.
  static std::vector<StringId> NumbersOf(const Table* table,
                                         const std::vector<std::string_view>& names);

  const std::string folder_;
  mutable std::mutex mutex_;
  bool looked_ = false;              // for tables of earlier runs
  TablePointer current_;             // what is packed with; may be none
  std::deque<TablePointer> loaded_;  // the last used first
  uint64_t bytes_written_ = 0;
};

// The folder of tables, in that of summaries.
std::string NamesFolder(const std::string& summaries_folder);

}  // namespace culprit::corpus
