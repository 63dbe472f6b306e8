// SPDX-License-Identifier: Apache-2.0
//
// CtfStacks: addresses in CTF events to frames and stacks. Kernel addresses are
// KernelStacks' business; for user space it keeps where each process has its
// modules (LTTng's user-space tracer tells when they are loaded). An address
// outside of all known modules is a frame of [unknown] with the address as its
// offset. Each address of a process is looked up once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/ctf_program.h"
#include "import/kernel_stacks.h"
#include "symbol/symbolizer.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

class CtfStacks {
 public:
  // All outlive this object; `kernel` and `symbolizer` may be nullptr.
  CtfStacks(trace::Dictionary& dictionary, const symbol::KernelSymbols* kernel,
            symbol::Symbolizer* symbolizer)
      : dictionary_(dictionary), kernel_(dictionary, kernel), symbolizer_(symbolizer) {}

  void AddModule(int64_t pid, uint64_t base, uint64_t size, std::string_view path);
  // Of the module at `base`; raw bytes.
  void AddBuildId(int64_t pid, uint64_t base, std::string_view build_id);

  // The function at `address`, called from `parent`.
  trace::StackId FunctionOn(trace::StackId parent, int64_t pid, uint64_t address);
  // From two arrays of addresses, each leaf first; either may be missing.
  trace::StackId FromContexts(int64_t pid, const CtfValue& kernel, const CtfValue& user);
  // From perf's chain: leaf first, with marks where the kernel ends.
  trace::StackId FromChain(int64_t pid, const CtfValue& chain);
  // Kernel frames of the stack made last, caller first: what they tell.
  const std::vector<uint8_t>& kernel_traits() const { return traits_; }
  trace::StackId KernelPart(size_t first_frame);

 private:
  struct Mapped {
    uint64_t end = 0;
    std::string path;
    std::string build_id;
    trace::ModuleId module;
  };
  struct Space {
    std::map<uint64_t, Mapped> modules;                   // by base
    std::unordered_map<uint64_t, trace::FrameId> frames;  // of addresses seen
  };

  void Addresses(const CtfValue& value, std::vector<uint64_t>& out);
  trace::FrameId UserFrame(int64_t pid, uint64_t address);
  trace::FrameId MakeUserFrame(const Space& space, uint64_t address);
  trace::StackId Join(int64_t pid);

  trace::Dictionary& dictionary_;
  KernelStacks kernel_;
  symbol::Symbolizer* symbolizer_;
  std::unordered_map<int64_t, Space> spaces_;
  std::vector<uint64_t> kernel_addresses_;
  std::vector<uint64_t> user_addresses_;
  std::vector<trace::FrameId> kernel_frames_;
  std::vector<uint8_t> traits_;
  bool truncated_ = false;
};

}  // namespace culprit::import_
