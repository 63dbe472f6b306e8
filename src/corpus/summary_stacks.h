// SPDX-License-Identifier: Apache-2.0
//
// SummaryStacks: the stacks that the summaries of a corpus have in common, kept once.
// A trace has thousands of stacks, and most of them in common with others.
//
//   FOLDER/summaries/stacks/5f0c9a1e77d0b2c45f0c9a1e77d0b2c4
//
// is a table of stacks (shared_tables.h) in canonical order (call_forest.h). A summary
// has a bit for each stack of the table that it could have (those whose caller it has),
// and spells the stacks that the table lacks:
//
//   packed  := 1 table:string names:string... own:varint bits:string more:varint
//              parent{more} name{more} rest   (`own` of the names are those of frames)
//            | 0 payload, its names packed (summary_names.h)
//   parent  := zigzag(1 + place of its caller, or 0; less 1 + place of the last one)
//   name    := 2 · number in the table | 2 · number of its own + 1
//
// where places are numbers of stacks: those of the table that are there, then the
// spelled ones. What Pack is given comes back from Unpack byte for byte, whichever table
// served. Tables grow to kMostTableStacks. Safe from several threads and processes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"
#include "corpus/call_forest.h"
#include "corpus/shared_tables.h"
#include "corpus/summary_names.h"

namespace culprit::corpus {

class SummaryStacks {
 public:
  // `names` must live longer.
  SummaryStacks(const std::string& summaries_folder, SummaryNames& names);

  // `payload` begins with a forest (call_forest.h). Where its stacks are not in canonical
  // order they are spelled.
  std::string Pack(std::string_view payload);
  // None if a table is not there, or the bytes are not those of Pack.
  std::optional<std::string> Unpack(std::string_view packed);

  uint64_t bytes_written() const { return tables_.bytes_written(); }

 private:
  class Content {
   public:
    static std::unique_ptr<const Content> Read(std::string raw);

    const CallForest& forest() const { return forest_; }
    // By stack of the other, which is in canonical order too: the number it has here, or
    // kNoCall.
    std::vector<uint32_t> PlacesOf(const CallForest& other) const;
    // The symbol of a name here, or kNoCall.
    uint32_t SymbolOf(std::string_view name) const;

   private:
    void MakeIndex() const;

    std::string raw_;  // what names are views of
    CallForest forest_;
    // Made when first searched: most tables are only read from front to back.
    mutable std::once_flag indexed_;
    mutable StringTable symbols_;
    mutable std::vector<uint32_t> first_callee_;  // by stack; behind the last, of no caller
    mutable std::vector<uint32_t> next_callee_;
  };

  static std::optional<std::string> Grown(const Content* table, const CallForest& forest);

  SummaryNames& names_;
  SharedTables<Content> tables_;
};

// The folder of tables, in that of summaries.
std::string StacksFolder(const std::string& summaries_folder);

}  // namespace culprit::corpus
