// SPDX-License-Identifier: Apache-2.0
#include "symbol/module.h"

#include <utility>

#include "symbol/debug_files.h"
#include "symbol/elf_symbols.h"

namespace culprit::symbol {

// Names come from every table there is; the table sorts out duplicates. A
// separate debug file is looked for only if something is missing.
void Module::Load() {
  loaded_ = true;
  file_ = OpenModuleFile(key_, options_, diagnostics_);
  if (!file_) return;
  const bool has_names = HasSymbolTable(*file_);
  if (options_.inlines) inlines_ = InlineFrames::Open(*file_);
  if (!has_names || (options_.inlines && inlines_ == nullptr)) {
    debug_file_ = OpenDebugFile(*file_, options_);
  }
  AddElfSymbols(*file_, table_);
  AddPltSymbols(*file_, table_);
  if (debug_file_) {
    AddElfSymbols(*debug_file_, table_);
    const bool wanted = options_.inlines && inlines_ == nullptr;
    if (wanted) inlines_ = InlineFrames::Open(*debug_file_);
    if (!wanted || inlines_ == nullptr) debug_file_.reset();  // its symbols were all it had
  } else if (!has_names) {
    if (const auto mini = OpenMiniDebugInfo(*file_, diagnostics_)) AddElfSymbols(*mini, table_);
  }
  AddFrameRanges(*file_, table_, diagnostics_);
  table_.Build();
  by_function_.resize(table_.size());
}

const std::vector<Symbol>& Module::Lookup(uint64_t file_offset, bool is_return_address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!loaded_) Load();
  if (!file_) return unknown_;
  const auto address =
      file_->AddressOfOffset(file_offset - (is_return_address && file_offset > 0 ? 1 : 0));
  if (!address) return unknown_;
  return inlines_ == nullptr ? OfFunction(table_.Find(*address)) : OfAddress(*address);
}

Symbol Module::FunctionOf(uint32_t row) const {
  Symbol symbol;
  if (row == SymbolTable::kNone) return symbol;
  symbol.function = Demangle(table_.Name(row));
  symbol.function_start = file_->OffsetOfAddress(table_.Start(row)).value_or(0);
  return symbol;
}

const std::vector<Symbol>& Module::OfFunction(uint32_t row) {
  if (row == SymbolTable::kNone) return unknown_;
  Answer& answer = by_function_[row];
  if (answer == nullptr) answer = std::make_unique<std::vector<Symbol>>(1, FunctionOf(row));
  return *answer;
}

const std::vector<Symbol>& Module::OfAddress(uint64_t address) {
  Answer& answer = by_address_[address];
  if (answer != nullptr) return *answer;
  // The symbol table has the name the linker knows, clones and aliases included.
  Symbol function = FunctionOf(table_.Find(address));
  std::vector<Symbol> frames;
  if (!inlines_->Lookup(address, !function.function.empty(), frames)) frames.emplace_back();
  if (!function.function.empty()) frames.front().function = std::move(function.function);
  frames.front().function_start = function.function_start;
  answer = std::make_unique<std::vector<Symbol>>(std::move(frames));
  return *answer;
}

Diagnostics Module::diagnostics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return diagnostics_;
}

}  // namespace culprit::symbol
