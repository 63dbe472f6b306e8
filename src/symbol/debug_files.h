// SPDX-License-Identifier: Apache-2.0
//
// Where the files of a module are. The object itself: the recorded path, then
// perf's build-id cache; kernel modules and the vdso by their bracketed names.
// Its separate debug file: by build-id below the debug folders and in the
// cache, then by .gnu_debuglink, which carries a checksum. A file whose
// build-id is not the recorded one is never used: wrong names are worse than
// none.
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

}  // namespace culprit::symbol
