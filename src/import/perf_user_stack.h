// SPDX-License-Identifier: Apache-2.0
//
// PerfUserStack: the user's call chain of a sample of `perf record --call-graph
// dwarf`, from the registers and the copy of the stack that the kernel put into
// it. Frame after frame, the call frame information of the module that the code
// stands in says where the caller is (symbol/call_frames.h); code made at run
// time and code without such information is followed by its frame pointer, if
// that leads to code. x86-64 and arm64 recordings, on either machine.
//
// On arm64 a chain of frame pointers lacks the caller of a leaf function, which
// keeps its return address in a register; newer perf records that register, and
// the leaf's call frame information tells whether it is needed.
//
// Where a module's file is not at hand the chain ends and is marked as cut, as
// where the copy of the stack ends. Each kind of cut is counted by sample with
// what to do about it. Memory: the tables of the modules met. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/diagnostics.h"
#include "import/perf_data_sample.h"
#include "import/perf_data_session.h"
#include "symbol/call_frames.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {

// Where an address stands, as the maps of its process say.
struct PerfCodePlace {
  uint32_t module = 0;  // a number for `key`
  const symbol::ModuleKey* key = nullptr;
  bool has_file = false;
  uint64_t file_offset = 0;
};

struct PerfUserChain {
  // Addresses of 8 bytes in the file's order, leaf first; a user marker where
  // the next one is no return address.
  std::string_view addresses;
  bool cut = false;
};

class PerfUserStack {
 public:
  static constexpr size_t kMaxFrames = 1024;

  using FindCode = std::function<std::optional<PerfCodePlace>(int64_t pid, uint64_t address)>;

  // Without `symbols` no file is read, and no frame beyond the leaf is found.
  PerfUserStack(const PerfSession& session, std::optional<symbol::SymbolizerOptions> symbols,
                FindCode find_code);

  // Valid until the next call; empty if the sample has no user registers.
  // `offset`: of its record, for the count of cuts.
  PerfUserChain Walk(const PerfAttr& attr, const PerfSample& sample, uint64_t offset);
  // The sample's own chain, with the caller of the leaf put in where it is
  // missing. Valid until the next call.
  std::string_view WithLeafCaller(const PerfAttr& attr, const PerfSample& sample);
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  enum class Machine : uint8_t { kOther, kX86, kArm };

  Machine MachineOf(const PerfAttr& attr) const;
  bool ReadRegisters(Machine machine, const PerfAttr& attr, const PerfSample& sample,
                     symbol::CallFrameRegisters& registers) const;
  // nullptr: its file is not at hand.
  symbol::CallFrames* FramesOf(const PerfCodePlace& place);
  symbol::CallFrameStep FollowFramePointer(int64_t pid, const symbol::CallFrameMemory& memory,
                                           symbol::CallFrameRegisters& registers) const;
  symbol::CallFrameStep Step(int64_t pid, bool is_return, const symbol::CallFrameMemory& memory,
                             symbol::CallFrameRegisters& registers);
  void Append(uint64_t address);
  PerfUserChain Cut(std::string_view why, uint64_t offset);

  const PerfSession& session_;
  std::optional<symbol::SymbolizerOptions> symbols_;
  FindCode find_code_;
  Diagnostics diagnostics_;
  std::unordered_map<uint32_t, std::optional<symbol::CallFrames>> frames_;  // by module
  Machine machine_ = Machine::kOther;                                       // of the last sample
  std::string_view reason_;
  std::string addresses_;
};

}  // namespace culprit::import_
