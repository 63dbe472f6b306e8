// SPDX-License-Identifier: Apache-2.0
//
// Where the files of a module are. The object itself: the recorded path, then
// perf's build-id cache and that of debuginfod clients, then the debug folders,
// by build-id or under its path or name; kernel modules and the vdso by their
// bracketed names. Its separate debug file: by build-id below the debug folders
// and in the caches, then by .gnu_debuglink, which carries a checksum. A file
// whose build-id is not the recorded one is never used: wrong names are worse
// than none.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostics.h"
#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"

namespace culprit::symbol {

// The module's own file; what is missing or differs is counted.
std::optional<ElfFile> OpenModuleFile(const ModuleKey& key, const SymbolizerOptions& options,
                                      Diagnostics& diagnostics);
// The file with its symbols and DWARF, if they are kept apart.
std::optional<ElfFile> OpenDebugFile(const ElfFile& file, const SymbolizerOptions& options);

// What there is for a module now, without reading its tables.
struct ModuleFiles {
  std::string path;    // of the file itself; empty: not found
  bool names = false;  // a whole symbol table, there or in a debug file
  bool lines = false;  // DWARF
};
ModuleFiles FindModuleFiles(const ModuleKey& key, const SymbolizerOptions& options);

// Where debuginfod clients of this user keep what they fetched; empty: unknown.
std::string DebuginfodCacheFolder();

}  // namespace culprit::symbol
