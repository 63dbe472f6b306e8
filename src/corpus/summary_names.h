// SPDX-License-Identifier: Apache-2.0
//
// SummaryNames: the names that the summaries of a corpus have in common, kept once.
// Most of a summary would be names of frames, and thousands of traces have the same.
//
//   FOLDER/summaries/names/0b7c52d1a9e8f3340b7c52d1a9e8f334
//
// is a table of names (shared_tables.h). A summary says which table its names are
// numbers of, and spells those that the table does not have:
//
//   packed  := table:string count:varint code{count} spelled:string... rest
//   code    := 0 for a spelled name | 1 + zigzag(number - number of the last one)
//
// What Pack is given comes back from Unpack byte for byte, whichever table served.
// Summaries with many new names make a new table, which has the old names too. Tables
// grow to kMostTableBytes, then a new one is begun. Safe from several threads and
// processes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"
#include "corpus/shared_tables.h"

namespace culprit::corpus {

class SummaryNames {
 public:
  explicit SummaryNames(const std::string& summaries_folder);

  // `payload` begins with a list of strings (part_codec.h). Writes a new table where
  // one is called for, and does without where that fails.
  std::string Pack(std::string_view payload);
  // None if the table is not there, or the bytes are not those of Pack.
  std::optional<std::string> Unpack(std::string_view packed);

  uint64_t bytes_written() const { return tables_.bytes_written(); }

 private:
  struct Content {
    StringTable names;
    static std::unique_ptr<const Content> Read(std::string raw);
  };

  // None where there is no such table, or it does not have the name.
  static std::vector<StringId> NumbersOf(const Content* table,
                                         const std::vector<std::string_view>& names);
  static std::optional<std::string> Grown(const Content* table,
                                          const std::vector<std::string_view>& names);

  SharedTables<Content> tables_;
};

// The folder of tables, in that of summaries.
std::string NamesFolder(const std::string& summaries_folder);

}  // namespace culprit::corpus
