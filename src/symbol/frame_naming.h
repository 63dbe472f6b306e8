// SPDX-License-Identifier: Apache-2.0
//
// FrameNaming: names for the frames of a trace, long after it was recorded. A
// frame without a name is its module and a place in the module's file (of a
// caller, the byte before the return address); where a file with the module's
// build-id is found now, the place becomes function, file and line, and the
// functions inlined there become frames of their own. Modules without a
// build-id stay as they are: a file of the same name proves nothing.
//
// Strings, modules, processes and threads keep their ids; frames and stacks get
// new ones. A frame that has a name is not touched. A place that is the start
// of a function is taken as the function's identity (traces of stripped
// binaries keep no more): it gets the name and no line. Memory: two
// dictionaries. One thread at a time; the Symbolizer may be shared.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "symbol/jit_maps.h"
#include "symbol/symbolizer.h"
#include "trace/dictionary.h"
#include "trace/trace_reader.h"

namespace culprit::symbol {

struct NameSources {
  Symbolizer& symbolizer;
  const KernelSymbols* kernel = nullptr;  // of the recorded kernel
  std::string perf_map_folder = {};       // with perf-PID.map files
};

// Distinct frames; what was inlined counts with the frame it belongs to.
struct NamingCounts {
  uint64_t frames = 0;
  uint64_t named_before = 0;
  uint64_t named = 0;      // now
  uint64_t inlined = 0;    // places that are in inlined code
  uint64_t jit_named = 0;  // per process, so beside `named`

  bool any_new() const { return named > named_before || jit_named > 0; }
};

class FrameNaming {
 public:
  // Fills `to`, which is empty.
  FrameNaming(const trace::Dictionary& from, const NameSources& sources, trace::Dictionary& to);

  // The same stack in the new dictionary; `thread` is whose it is.
  trace::StackId Map(trace::StackId stack, trace::ThreadId thread);
  const NamingCounts& counts() const { return counts_; }

 private:
  void CopyTables();
  void MapFrames();
  void MapStacks();
  std::vector<trace::FrameId> NamesOf(const trace::Frame& frame);
  std::vector<trace::FrameId> UserNames(const trace::Frame& frame);
  std::vector<trace::FrameId> KernelNames(const trace::Frame& frame);
  bool IsJitPlace(const trace::Frame& frame) const;
  trace::StackId MapJit(trace::StackId stack, int64_t pid);

  const trace::Dictionary& from_;
  const NameSources& sources_;
  trace::Dictionary& to_;
  JitMaps jit_maps_;
  std::vector<std::vector<trace::FrameId>> frames_;  // by old id, caller first
  std::vector<trace::StackId> stacks_;               // by old id
  std::vector<bool> has_jit_;                        // by old stack id
  std::map<std::pair<uint32_t, int64_t>, trace::StackId> jit_stacks_;
  std::set<std::pair<uint32_t, int64_t>> jit_frames_;
  NamingCounts counts_;
};

// A module with frames that have no name.
struct UnnamedModule {
  ModuleKey key;
  std::string name;
  uint64_t frames = 0;
  bool kernel = false;
};
// In the order of the dictionary's modules.
std::vector<UnnamedModule> UnnamedModules(const trace::Dictionary& dictionary);

// Copies a whole trace to the new file `path` with names. A trace with damage
// is an Error: the copy would hide it. Where nothing got a name, nothing is
// written.
Result<NamingCounts> WriteNamed(const trace::TraceReader& reader, const NameSources& sources,
                                const std::string& path);

}  // namespace culprit::symbol
