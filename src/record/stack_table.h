// SPDX-License-Identifier: Apache-2.0
//
// StackTable: from the hashes that the kernel programs name stacks by to stacks
// of the trace. A stack is defined once by its addresses and turned into frames
// at once, by the mappings of that time: a moment later its process may have
// executed another program. Kernel frames are named from kallsyms; user frames
// are places in modules, without names (symbol_pass.h gives them later). The
// frames of the tracer itself are cut off at the leaf.
//
// Memory: the addresses of distinct kernel stacks and of user frames. When there are too many
// (is_full) the kernel side is to tell all that it meets again, under other names
// (BpfEngine::RenameStacks); what it told before is kept for a while (ForgetOlder), because
// it may have been used already.
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/diagnostics.h"
#include "base/flat_map.h"
#include "import/perf_data_stacks.h"
#include "trace/dictionary.h"

namespace culprit::record {

struct StackCounts {
  uint64_t defined = 0;
  uint64_t undefined = 0;  // uses of a stack whose definition was lost
};

class StackTable {
 public:
  static constexpr size_t kMaxStacks = 1 << 17;

  // `kallsyms` is the kernel's own; the dictionary outlives this object.
  StackTable(std::string_view kallsyms, trace::Dictionary& dictionary,
             size_t max_stacks = kMaxStacks);

  // What is mapped where.
  void Map(int64_t pid, uint64_t start, uint64_t size, uint64_t file_offset, std::string_view path,
           std::string_view build_id);
  void Fork(int64_t parent_pid, int64_t pid);
  void Forget(int64_t pid);

  // Addresses are leaf first; pid 0: the kernel's. A leaf of 0: callers, for StackBelow.
  void Define(uint64_t id, int64_t pid, std::span<const uint64_t> addresses);
  // Both may be 0. Kernel frames are the leaf part.
  trace::StackId Stack(uint64_t user_id, uint64_t kernel_id);
  // The same of a leaf below these callers.
  trace::StackId StackBelow(uint64_t callers_id, uint64_t leaf, uint64_t kernel_id);
  // The stack of a waker, judged: an interrupt's is cut to its own frames.
  import_::PerfWaker Waker(uint64_t user_id, uint64_t kernel_id, bool hard_irq, bool soft_irq);

  // A user stack of this name has been told of.
  bool Knows(uint64_t id) const {
    return told_.user.Find(id) != nullptr || told_before_.user.Find(id) != nullptr;
  }
  bool is_full() const { return told_.size() >= max_stacks_; }
  // What was told since the last call is kept until the next, all else forgotten.
  void ForgetOlder();

  StackCounts counts() const { return counts_; }
  Diagnostics TakeDiagnostics();

 private:
  // Without what is the tracer's.
  struct KernelStack {
    std::vector<trace::FrameId> frames;  // caller first
    std::vector<uint64_t> addresses;     // leaf first
  };
  // What is known of a process while its mappings are as they are: the frame of every
  // address, by address * 2, + 1 for leaves; and the stacks below which leaves were met,
  // by a hash of their addresses.
  struct Space {
    FlatMap<uint64_t, trace::FrameId> frames;
    FlatMap<uint64_t, trace::StackId> callers;
  };
  struct CallersOf {
    int64_t pid = 0;
    trace::StackId stack;             // invalid: there are none, or some have not one frame
    std::vector<uint64_t> addresses;  // leaf first
  };
  // By names.
  struct Told {
    FlatMap<uint64_t, trace::StackId> user;
    std::unordered_map<uint64_t, KernelStack> kernel;
    std::unordered_map<uint64_t, CallersOf> callers;

    size_t size() const { return user.size() + kernel.size() + callers.size(); }
  };
  struct Key {
    uint64_t user = 0;
    uint64_t kernel = 0;
    uint64_t flags = 0;  // of a waker
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return key.user ^ (key.kernel * 31) ^ (key.flags << 56);
    }
  };

  void DefineKernel(uint64_t id, std::span<const uint64_t> addresses);
  // Null: it was not told, or there is none.
  const trace::StackId* FindUser(uint64_t id);
  const KernelStack* FindKernel(uint64_t id) { return Find(&Told::kernel, id); }
  const CallersOf* FindCallers(uint64_t id) { return Find(&Told::callers, id); }
  template <class Value>
  const Value* Find(std::unordered_map<uint64_t, Value> Told::*stacks, uint64_t id);
  trace::StackId UserStackBelow(const CallersOf& callers, uint64_t leaf);
  trace::StackId WithKernel(trace::StackId stack, const KernelStack& kernel);
  import_::PerfChain Chain(uint64_t context, std::span<const uint64_t> addresses);
  size_t TracerFrames(std::span<const uint64_t> addresses);
  trace::StackId UserStack(int64_t pid, std::span<const uint64_t> addresses);
  trace::FrameId UserFrame(Space& space, int64_t pid, uint64_t address, bool is_leaf);
  trace::StackId Callers(Space& space, int64_t pid, std::span<const uint64_t> addresses);
  trace::StackId UserStackByFrames(Space& space, int64_t pid, std::span<const uint64_t> addresses);
  import_::PerfWaker Judge(const Key& key);

  trace::Dictionary& dictionary_;
  Diagnostics diagnostics_;
  import_::PerfSession session_;
  std::unique_ptr<import_::PerfStacks> stacks_;
  symbol::KernelSymbols kernel_;
  size_t max_stacks_;
  Told told_;
  Told told_before_;
  FlatMap<uint64_t, bool> is_tracer_;  // by address in the kernel
  std::unordered_map<int64_t, Space> spaces_;
  FlatMap<Key, trace::StackId, KeyHash> known_;        // by ids of both parts
  FlatMap<Key, trace::StackId, KeyHash> known_below_;  // by the user part's StackId and an id
  FlatMap<Key, import_::PerfWaker, KeyHash> judged_;
  std::string chain_;
  StackCounts counts_;
};

}  // namespace culprit::record
