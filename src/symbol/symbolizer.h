// SPDX-License-Identifier: Apache-2.0
//
// Symbolizer: addresses in modules to frames. A module is known by path and
// build-id; its tables (ELF symbols, .gnu_debugdata, separate debug files,
// DWARF for lines and inlined callers, function starts from .eh_frame) are read
// on first use and kept. Lookups of a stripped module fall back to the start of
// the function's frame description, so that a function keeps one identity even
// without a name. Safe from several threads; a lookup after the first is a
// binary search, inline frames of an address are looked up once and cached.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace culprit::symbol {

struct SymbolizerOptions {
  std::string sysroot = {};  // prefix of recorded paths
  std::vector<std::string> debug_folders = {"/usr/lib/debug"};
  bool inlines = true;                // DWARF inlined callers and lines
  std::string build_id_cache = {};    // perf's ~/.debug layout, if any
  std::string debuginfod_cache = {};  // what a debuginfod client kept, if any
};

class Module;  // one object file and its tables (module.h)

struct ModuleKey {
  std::string path;      // as recorded: "/usr/lib/libc.so.6"
  std::string build_id;  // hexadecimal; empty: not known
};

// One frame of an address; an address in inlined code has several, the
// outermost (the real function) first.
struct Symbol {
  std::string function;  // demangled; empty: no name
  std::string file;
  uint32_t line = 0;
  bool inlined = false;
  // Offset in the module's file of the function's start; 0: unknown, or inlined.
  uint64_t function_start = 0;
};

class Symbolizer {
 public:
  explicit Symbolizer(SymbolizerOptions options = {});
  ~Symbolizer();

  // `file_offset`: where in the module's file the code stands (address - map
  // start + map offset). `is_return_address`: the call is one byte before. At
  // least one Symbol, possibly without a name.
  const std::vector<Symbol>& Lookup(const ModuleKey& module, uint64_t file_offset,
                                    bool is_return_address);
  // The same in two steps, for loops over one module: found once, it stays.
  Module& Find(const ModuleKey& key);
  static const std::vector<Symbol>& Lookup(Module& module, uint64_t file_offset,
                                           bool is_return_address);
  // What could not be read: modules missing, build-ids that differ.
  Diagnostics diagnostics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The kernel's own symbols, from the text of /proc/kallsyms.
class KernelSymbols {
 public:
  static Result<KernelSymbols> Parse(std::string_view text);
  // "name" and "[module]" ("[kernel]" for the core); empty name: not found.
  struct Found {
    std::string_view name;
    std::string_view module;
    uint64_t start = 0;
  };
  Found Lookup(uint64_t address) const;
  size_t size() const;
  // Addresses that are all zero: the reader had no permission to see them.
  bool hidden() const;
  // Where the kernel's code begins: the symbol that perf counts offsets from.
  std::optional<uint64_t> base() const { return base_; }

 private:
  struct Row {
    uint64_t address;
    uint32_t name_offset;
    uint32_t name_length;  // 0: not code, but where code ends
    uint32_t module;
    bool global;
  };
  void KeepBest();

  std::string text_;
  std::vector<std::string> modules_;
  std::vector<Row> rows_;
  size_t named_ = 0;
  bool hidden_ = false;
  std::optional<uint64_t> base_;
};

// Functions that a just-in-time compiler wrote to perf-PID.map. Where lines
// overlap the later one counts: compilers reuse their memory.
class JitSymbols {
 public:
  static JitSymbols Parse(std::string_view text, Diagnostics& diagnostics);
  std::string_view Lookup(uint64_t address) const;

 private:
  struct Row {
    uint64_t start;
    uint64_t end;
    size_t name;  // offset in names_
    size_t length;
  };
  void LayOut(const std::vector<Row>& rows);

  std::string names_;
  std::vector<Row> rows_;  // disjoint, by start
};

// C++ (Itanium), Rust (legacy and v0) and D names as people write them; other
// names come back unchanged.
std::string Demangle(std::string_view name);

}  // namespace culprit::symbol
