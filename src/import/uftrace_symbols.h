// SPDX-License-Identifier: Apache-2.0
//
// UftraceSymbols: addresses of uftrace's records to frames. A data folder has,
// for each program image ("session"), a map of its modules (sid-ID.map, the
// lines of /proc/PID/maps; libraries opened later are told in task.txt), and for
// each module a list of its symbols:
//
//   NAME.sym = "# path name: PATH", "# build-id: HEX",
//              { address, [size], type letter, name } per line, by address
//
// Addresses of symbols count from where the module was mapped; those of old
// recorders may be absolute. Calls through the linkage table are frames of "[plt]":
// which library they lead to is not told. A function of a module without such a list is
// looked up in the binaries of this machine, else it is its offset. Symbol
// lists are read on first use; each address of a session is looked up once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "import/source.h"
#include "symbol/symbolizer.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

// One .sym file. Names point into its text.
class UftraceSymbolFile {
 public:
  struct Symbol {
    uint64_t start = 0;
    uint64_t end = 0;
    std::string_view name;
    bool linkage = false;  // a call of a library through the linkage table
  };

  explicit UftraceSymbolFile(std::string text);
  UftraceSymbolFile(const UftraceSymbolFile&) = delete;
  UftraceSymbolFile& operator=(const UftraceSymbolFile&) = delete;

  // nullptr: in no function.
  const Symbol* Find(uint64_t address) const;
  std::string_view path() const { return path_; }
  std::string_view build_id() const { return build_id_; }
  uint64_t end() const { return symbols_.empty() ? 0 : symbols_.back().end; }
  bool empty() const { return symbols_.empty(); }

 private:
  void Line(std::string_view line);

  const std::string text_;
  std::string_view path_;
  std::string_view build_id_;
  std::vector<Symbol> symbols_;  // by start, disjoint
};

class UftraceSymbols {
 public:
  // All outlive this object; `symbolizer` may be nullptr.
  UftraceSymbols(const Source& source, trace::Dictionary& dictionary,
                 symbol::Symbolizer* symbolizer, Diagnostics& diagnostics);

  // A session by its id in file names; always the same number for the same id.
  size_t Session(std::string_view sid);
  void AddModule(size_t session, uint64_t base, std::string_view path);
  trace::FrameId FrameAt(size_t session, uint64_t address);
  // Where the modules of all sessions so far are: begin and end.
  std::vector<std::pair<uint64_t, uint64_t>> CodeRanges() const;

 private:
  struct Module {
    uint64_t base = 0;
    uint64_t end = 0;
    std::string path;
    std::string build_id;
    trace::ModuleId id;
    const UftraceSymbolFile* symbols = nullptr;
  };
  struct Space {
    std::string sid;
    std::map<uint64_t, Module> modules;  // by base
    std::unordered_map<uint64_t, trace::FrameId> frames;
  };

  void ReadMap(Space& space);
  void MapLine(Space& space, std::string_view line);
  Module MakeModule(uint64_t base, uint64_t end, std::string_view path, std::string_view build_id);
  const UftraceSymbolFile* SymbolsOf(std::string_view path, std::string_view build_id);
  const UftraceSymbolFile* Load(const std::string& name);
  trace::FrameId MakeFrame(const Space& space, uint64_t address);

  const Source& source_;
  trace::Dictionary& dictionary_;
  symbol::Symbolizer* symbolizer_;
  Diagnostics& diagnostics_;
  std::vector<Space> spaces_;
  std::map<std::string, std::unique_ptr<UftraceSymbolFile>> files_;  // by name; nullptr: none
};

}  // namespace culprit::import_
