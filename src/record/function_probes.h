// SPDX-License-Identifier: Apache-2.0
//
// FunctionProbes: the entries and exits of an interpreted program's functions, as
// the USDT probes of its interpreter tell them. The kernel reads the names at the
// probe (uprobe events of tracefs), so they are true even if the code object is
// gone a moment later; they come through perf rings, one a CPU.
//
// The probes are switched on for all processes that have the interpreter's file,
// and off again when this object goes. Each hit costs the program a trap, one or
// two microseconds: for learning, not for production. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/perf_ring.h"
#include "symbol/elf_file.h"

namespace culprit::record {

// "python" or "python=FILE", as users write it.
struct FunctionRuntime {
  std::string name;
  std::string file;  // that has the probes; empty: that of the command or of the processes
};
Result<FunctionRuntime> ParseFunctionRuntime(std::string_view text);

struct FunctionHit {
  int64_t time_ns = 0;
  int64_t pid = -1;
  int64_t tid = -1;
  bool is_entry = false;
  std::string function = {};  // "py::do_GET:/srv/app.py", as CPython's own perf maps name it
};

struct RuntimeProbes;

class FunctionProbes {
 public:
  // `files` are looked into where the runtime names none. An Error if none of them has
  // the probes.
  static Result<FunctionProbes> Open(const FunctionRuntime& runtime,
                                     const std::vector<std::string>& files);
  FunctionProbes(FunctionProbes&& other) noexcept = default;
  FunctionProbes& operator=(FunctionProbes&&) = delete;
  ~FunctionProbes();

  // What has come until a moment ago, by time. The rings are emptied one after the
  // other, so the latest hits wait for the next call; the last one takes `all`.
  std::vector<FunctionHit> Take(bool all);
  uint64_t lost() const { return lost_; }

 private:
  struct Watched {
    PerfRing ring;
    bool is_entry;
    uint32_t file_at;  // in the raw record: where the two names are told
    uint32_t function_at;
  };
  FunctionProbes() = default;
  Status Define(const std::string& name, const std::string& definition);
  Status Watch(const std::string& name, bool is_entry);
  Status Hold(const std::string& name);
  Status AddFile(const std::string& path, const symbol::ElfFile& elf, const RuntimeProbes& runtime);
  void TakeRecord(const Watched& watched, std::string_view record);

  std::string group_;                 // of the events, this process's own
  std::string prefix_;                // of functions' names
  std::vector<std::string> defined_;  // names
  std::vector<Watched> watched_;
  std::vector<PerfRing> held_;  // what keeps a counter up, and tells nothing
  std::vector<FunctionHit> waiting_;
  uint64_t lost_ = 0;
};

}  // namespace culprit::record
