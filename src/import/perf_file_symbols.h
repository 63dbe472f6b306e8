// SPDX-License-Identifier: Apache-2.0
//
// PerfFileSymbols: the functions that simpleperf wrote into a recording beside
// the files they are of, so that it can be read where those files are not. By
// path; code made at run time and the kernel by address, the rest by place in
// the file. Two encodings of the same table:
//
//   file  = { u32 size, path NUL, u32 type, u64 min address, u32 count,
//             count * { u64 address, u32 length, name NUL }, by type:
//             dex: u32 count, count * u64; ELF file: u64 offset of min address }
//   file2 = { u32 size, message: path 1, type 2, min address 3,
//             symbol 4 {address 1, length 2, name 3}, ELF file 6 {offset 1} }
//
// Immutable after Build(); any number of threads may then look names up. Memory
// is that of the names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/diagnostics.h"
#include "symbol/symbol_table.h"

namespace culprit::import_ {

class PerfFileSymbols {
 public:
  struct Found {
    std::string name;         // demangled; empty: not known
    uint64_t file_start = 0;  // where the function begins in its file
    bool made_code = false;   // compiled at run time
  };

  // The bytes of a feature section. `offset`: where it stands, for diagnostics.
  void AddFile(std::string_view bytes, uint64_t offset, Diagnostics& diagnostics);
  void AddFile2(std::string_view bytes, uint64_t offset, Diagnostics& diagnostics);
  void Build();

  bool empty() const { return files_.empty() && !has_made_code_; }
  // Whether the file has functions here: bytecode is read, not run, so its maps
  // need not be those of code.
  bool Has(std::string_view path) const { return files_.find(path) != files_.end(); }
  // A return address stands behind its call, except in bytecode.
  Found Lookup(std::string_view path, uint64_t address, uint64_t file_offset,
               bool is_return = false) const;
  // Code compiled at run time, whatever is said to be mapped there.
  Found LookupMadeCode(uint64_t address) const;
  Found LookupKernel(uint64_t address) const;

 private:
  enum class Type : uint32_t { kKernel = 0, kKernelModule = 1, kSymbolMap = 4 };
  struct File {
    bool bytecode = false;
    uint64_t min_address = 0;
    uint64_t min_offset = 0;
    symbol::SymbolTable table = {};
  };

  File& FileOf(std::string_view path, uint64_t type);
  static Found FindIn(const File& file, uint64_t address);

  std::map<std::string, File, std::less<>> files_;
  File kernel_;
  File made_code_;
  bool has_made_code_ = false;
};

}  // namespace culprit::import_
