// SPDX-License-Identifier: Apache-2.0
//
// UnwindModules: the files that are mapped as code, each compiled to an unwind table
// once: one file is known by device and inode, and files of the same build-id share
// a table (a container's libc is the host's). A file is found by what the process
// has mapped, not by its name, so it may be deleted, or in another mount namespace.
//
// Looking a module up costs a few system calls; compiling it is left to Compile(),
// for which nothing else here is needed meanwhile. Other than that, one thread at a
// time. Modules live as long as this object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "record/process_scan.h"
#include "record/unwind_image.h"
#include "record/unwind_table.h"

namespace culprit::record {

struct UnwindModule {
  enum class State : uint8_t {
    kNew,    // not compiled yet
    kReady,  // table and pieces are there
    kNone,   // no ELF file, no unwind information, or no room
  };
  struct Segment {
    uint64_t offset = 0;
    uint64_t address = 0;
    uint64_t size = 0;
  };

  State state = State::kNew;
  std::string path;
  std::string build_id;
  std::vector<Segment> segments;  // executable ones
  std::shared_ptr<const UnwindTable> table;
  std::vector<UnwindPiece> pieces;

  // What must be added to addresses of the file to get those of a mapping; false if
  // the mapping is of no executable segment.
  bool BiasOf(const MapEntry& map, uint64_t& bias) const;
};

// The file that a shell would execute for a name; empty if there is none.
std::string FindProgram(const std::string& name);

class UnwindModules {
 public:
  // Of a mapping of a process; null if it is of no file. The module may be new.
  UnwindModule* Find(int64_t pid, const MapEntry& map);

  struct Compiled {
    bool readable = false;  // it was an ELF file
    std::string build_id;
    std::vector<UnwindModule::Segment> segments;
    std::shared_ptr<const UnwindTable> table;  // null: there is none
  };
  // Reads the file that a new module was found by. Uses nothing of this object.
  static Compiled Compile(const UnwindModule& module);
  // The module is as compiled, with a table of the same build-id if there is one
  // already.
  void Finish(UnwindModule& module, Compiled compiled, UnwindImage& image);

  const std::vector<std::unique_ptr<UnwindModule>>& all() const { return modules_; }
  uint64_t refused() const { return refused_; }

 private:
  using Identity = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;  // device, inode, change

  UnwindModule* Add(const Identity& identity, const std::string& path);

  std::vector<std::unique_ptr<UnwindModule>> modules_;
  std::map<Identity, UnwindModule*> by_file_;
  std::map<std::string, UnwindModule*> by_build_id_;  // ready ones
  uint64_t refused_ = 0;                              // for want of room
};

}  // namespace culprit::record
