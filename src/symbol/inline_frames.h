// SPDX-License-Identifier: Apache-2.0
//
// InlineFrames: source lines and inlined callers of an address, from DWARF by
// libdw. Units are found through their own ranges, so files without
// .debug_aranges work too; the functions of a unit are indexed when one of its
// addresses is first asked for. An answer costs tens of microseconds: ask once
// an address and keep it. The ElfFile must outlive it. One thread at a time.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"

namespace culprit::symbol {

class InlineFrames {
 public:
  // Nothing if the file has no DWARF, or none that can be used.
  static std::unique_ptr<InlineFrames> Open(const ElfFile& file);

  // Appends the frames of `address`, outermost first; false if no unit covers
  // it. A function without a name and a line are still a frame. `has_name`: the
  // caller has a name for the outermost, none is looked for.
  bool Lookup(uint64_t address, bool has_name, std::vector<Symbol>& frames);

 private:
  struct Range {
    uint64_t start;
    uint64_t end;
    uint32_t index;  // of a unit or of a function
  };
  struct Unit {
    Dwarf_Die lines = {};  // where the line table hangs
    Dwarf_Die tree = {};   // where the functions are: another file if split
    bool indexed = false;
    std::vector<Range> ranges;
    std::vector<Dwarf_Die> functions;
  };
  struct CloseDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };

  InlineFrames() = default;
  void ReadUnits();
  static void IndexFunctions(Unit& unit);
  static const Range* FindRange(const std::vector<Range>& ranges, uint64_t address);
  static void AppendChain(Unit& unit, uint64_t address, std::vector<Dwarf_Die>& chain);
  const std::string& NameOf(Dwarf_Die& die);

  std::unique_ptr<Dwarf, CloseDwarf> dwarf_;
  std::vector<Unit> units_;
  std::vector<Range> ranges_;
  std::unordered_map<const void*, std::string> names_;  // by where the declaration stands
};

}  // namespace culprit::symbol
