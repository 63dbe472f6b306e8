// SPDX-License-Identifier: Apache-2.0
//
// PerfStacks: call chains of addresses to stacks of the trace. A user address
// becomes module and place in its file through the maps of its process, and a
// name through the Symbolizer (a place without one is, of a caller, the byte
// before the return address), or, in memory without a file, through the
// perf-PID.map of a recording of this machine; a kernel address a name through
// kallsyms, if there is one, else its distance from the kernel's start, which no
// randomization of addresses changes. A chain as long as the recorder allows
// gets the outermost frame [truncated].
//
// Whole chains are cached by a 128-bit hash of their addresses and the version
// of the address space, so a chain seen before costs one hash, also where the
// caller of its leaf is in a register. Memory: distinct
// addresses, and kMaxCachedChains chains. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "base/flat_map.h"
#include "import/importer.h"
#include "import/perf_data_session.h"
#include "import/perf_data_space.h"
#include "import/perf_user_stack.h"
#include "symbol/jit_maps.h"
#include "symbol/symbolizer.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

struct PerfChain {
  std::string_view addresses;  // 8 bytes each, leaf first, with context markers
  std::string_view deferred;   // the user part, where it was recorded or unwound apart
  bool unwound = false;        // it was unwound, whatever its length
  bool cut = false;            // though not to its end
  // Set if a register of the sample may hold the caller of the leaf.
  const PerfAttr* attr = nullptr;
  const PerfSample* sample = nullptr;
  int64_t pid = -1;
  uint16_t misc = 0;  // where the leaf is if there is no marker
  uint16_t max_stack = 0;
};

enum class PerfCodePart : uint8_t { kKernelCode, kUserCode, kGuestCode, kOther };

struct PerfWaker {
  trace::StackId stack;
  assemble::WakeContext context = assemble::WakeContext::kUnknown;
  std::string_view device;  // static text
};

class PerfStacks {
 public:
  static constexpr size_t kMaxCachedChains = 1 << 19;

  PerfStacks(const PerfSession& session, const ImportOptions& options,
             trace::Dictionary& dictionary, Diagnostics& diagnostics);

  // What the recording tells about memory.
  void Map(int64_t pid, uint64_t start, uint64_t size, uint64_t file_offset, std::string_view path,
           std::string_view build_id);
  void MapKernel(uint64_t start, uint64_t size, uint64_t file_offset, std::string_view path);
  void KernelFunction(uint64_t start, uint64_t size, std::string_view name);
  void UseKallsyms(std::string_view text);
  PerfSpaces& spaces() { return spaces_; }

  // Adds what a sample's user registers and its copy of the stack tell of the
  // user's part. Holds until the next one.
  void Unwind(const PerfAttr& attr, const PerfSample& sample, uint64_t offset, PerfChain& chain);
  trace::StackId Stack(const PerfChain& chain);
  // Its frames, caller first, until the next call.
  std::span<const trace::FrameId> Frames(const PerfChain& chain);
  // One frame of a process by itself; invalid if it is none, or several.
  trace::FrameId UserFrame(int64_t pid, uint64_t address, bool is_return);
  // The stack of a waker, cut to the interrupt's part if it was one.
  PerfWaker Waker(const PerfChain& chain, uint64_t common_flags);
  void Finish();

 private:
  struct FrameSpan {
    uint32_t begin = 0;  // in frame_pool_
    uint32_t count = 0;
  };
  struct KernelCode {
    trace::FrameId frame;
    uint8_t traits = 0;
  };
  struct Pc {
    uint64_t address;
    PerfCodePart part;
    bool is_return;
  };
  struct Module {
    trace::ModuleId id;
    symbol::ModuleKey key;
    bool has_file = false;
    bool may_be_jit = false;
    bool is_doubted = false;              // it was counted that its file may be another
    FlatMap<uint64_t, FrameSpan> frames;  // by offset * 2, + 1 for return addresses
  };
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    uint64_t operator()(const Key& key) const { return key.low; }
  };
  struct Function {
    uint64_t end = 0;
    std::string name;
  };

  std::optional<PerfCodePlace> FindCode(int64_t pid, uint64_t address) const;
  uint32_t ModuleOf(std::string_view path, std::string_view build_id);
  Key KeyOf(const PerfChain& chain, uint64_t salt) const;
  // Fills frames_ (caller first), traits_ and kernel_begin_.
  void Collect(const PerfChain& chain);
  void ReadAddresses(const PerfChain& chain);
  void AddUser(int64_t pid, uint64_t address, bool is_return);
  void AddMadeCode(int64_t pid, uint64_t address, const PerfMap* map, bool is_return);
  void AddKernel(uint64_t address);
  KernelCode KernelCodeAt(uint64_t address);
  trace::FrameId KernelFrame(uint64_t address);
  std::span<const trace::FrameId> ModuleFrames(Module& module, uint64_t offset, bool is_return);
  bool AddRecordedName(const Module& module, uint64_t address, uint64_t offset, bool is_return);
  // The stack of frames_.
  trace::StackId Intern();
  trace::FrameId PlainFrame(std::string_view module, uint64_t offset, uint8_t flags);

  bool big_;
  const PerfSession& session_;
  trace::Dictionary& dictionary_;
  Diagnostics& diagnostics_;
  PerfSpaces spaces_;
  std::vector<Module> modules_;
  std::map<std::pair<std::string, std::string>, uint32_t> module_numbers_;
  std::optional<symbol::Symbolizer> symbolizer_;
  std::optional<symbol::JitMaps> jit_maps_;
  PerfUserStack user_stack_;
  std::optional<symbol::KernelSymbols> kernel_symbols_;
  bool may_use_local_kernel_ = false;
  bool files_are_anothers_ = false;  // of a machine that was not recorded
  uint64_t kernel_base_ = 0;
  uint64_t kernel_version_ = 0;
  std::map<uint64_t, Function> kernel_functions_;
  FlatMap<uint64_t, KernelCode> kernel_frames_;
  FlatMap<Key, trace::StackId, KeyHash> stacks_;
  FlatMap<Key, PerfWaker, KeyHash> wakers_;
  std::vector<trace::FrameId> frame_pool_;
  std::vector<trace::FrameId> last_frames_;  // of the last new stack,
  std::vector<trace::StackId> last_stacks_;  // and the stack up to each of them
  std::vector<Pc> pcs_;                      // of the chain at hand, leaf first
  std::vector<trace::FrameId> frames_;
  std::vector<uint8_t> traits_;  // of the kernel's frames
  size_t kernel_begin_ = 0;
};

}  // namespace culprit::import_
