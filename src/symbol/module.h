// SPDX-License-Identifier: Apache-2.0
//
// Module: one object file and its tables, read on the first lookup. Without
// DWARF the answer depends on the function alone and is made once a function;
// with DWARF it is made once an address. Answers never move or change, so
// references stay valid as long as the module. Safe from several threads by
// one lock a module.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "symbol/elf_file.h"
#include "symbol/inline_frames.h"
#include "symbol/symbol_table.h"
#include "symbol/symbolizer.h"

namespace culprit::symbol {

class Module {
 public:
  Module(ModuleKey key, const SymbolizerOptions& options)
      : key_(std::move(key)), options_(options) {}

  const std::vector<Symbol>& Lookup(uint64_t file_offset, bool is_return_address);
  Diagnostics diagnostics() const;
  const ModuleKey& key() const { return key_; }

 private:
  using Answer = std::unique_ptr<const std::vector<Symbol>>;
  void Load();
  Symbol FunctionOf(uint32_t row) const;
  const std::vector<Symbol>& OfFunction(uint32_t row);
  const std::vector<Symbol>& OfAddress(uint64_t address);

  const ModuleKey key_;
  const SymbolizerOptions& options_;
  mutable std::mutex mutex_;
  bool loaded_ = false;
  Diagnostics diagnostics_;
  std::optional<ElfFile> file_;
  std::optional<ElfFile> debug_file_;
  SymbolTable table_;
  std::unique_ptr<InlineFrames> inlines_;
  std::vector<Answer> by_function_;  // beside the table's rows
  std::unordered_map<uint64_t, Answer> by_address_;
  const std::vector<Symbol> unknown_ = std::vector<Symbol>(1);
};

}  // namespace culprit::symbol
