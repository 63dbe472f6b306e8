// SPDX-License-Identifier: Apache-2.0
#include "record/stack_table.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "import/kernel_stacks.h"
#include "import/perf_data_layout.h"
#include "record/bpf/records.h"

namespace culprit::record {
namespace {

using trace::FrameId;
using trace::StackId;

// How deep below the leaf frames of the tracer may stand.
constexpr size_t kTracerDepth = 10;
// As the flags of a tracepoint have it.
constexpr uint64_t kHardInterruptFlag = 0x08;

bool IsTracer(std::string_view name) {
  return name.starts_with("bpf_prog_") || name.starts_with("bpf_trace_run") ||
         name.starts_with("__bpf_trace_") || name.starts_with("__traceiter_") ||
         name.starts_with("trace_call_bpf") || name.starts_with("perf_trace_") ||
         name.starts_with("bpf_get_stack") || name == "__switch_to" || name == "__switch_to_asm";
}

void Append(std::string& chain, uint64_t address) {
  chain.append(reinterpret_cast<const char*>(&address), sizeof(address));
}

import_::PerfSession SessionOf(std::string_view kallsyms) {
  import_::PerfSession session;
  session.kallsyms = kallsyms;
  return session;
}

}  // namespace

StackTable::StackTable(std::string_view kallsyms, trace::Dictionary& dictionary, size_t max_stacks)
    : dictionary_(dictionary), session_(SessionOf(kallsyms)), max_stacks_(max_stacks) {
  const import_::ImportOptions options = {.symbols = false};
  stacks_ = std::make_unique<import_::PerfStacks>(session_, options, dictionary_, diagnostics_);
  session_.kallsyms.clear();
  Result<symbol::KernelSymbols> parsed = symbol::KernelSymbols::Parse(kallsyms);
  if (parsed.ok()) kernel_ = std::move(parsed).value();
}

void StackTable::Map(int64_t pid, uint64_t start, uint64_t size, uint64_t file_offset,
                     std::string_view path, std::string_view build_id) {
  stacks_->Map(pid, start, size, file_offset, path, build_id);
  spaces_.erase(pid);
}

void StackTable::Fork(int64_t parent_pid, int64_t pid) {
  stacks_->spaces().Fork(parent_pid, pid);
  spaces_.erase(pid);
}

void StackTable::Forget(int64_t pid) {
  stacks_->spaces().Forget(pid);
  spaces_.erase(pid);
}

// The programs themselves have no names that tell, but what calls them does.
size_t StackTable::TracerFrames(std::span<const uint64_t> addresses) {
  size_t count = 0;
  for (size_t i = 0; i < std::min(addresses.size(), kTracerDepth); ++i) {
    const auto [is_tracer, is_new] = is_tracer_.Insert(addresses[i]);
    if (is_new) *is_tracer = IsTracer(kernel_.Lookup(addresses[i]).name);
    if (*is_tracer) count = i + 1;
  }
  return count;
}

import_::PerfChain StackTable::Chain(uint64_t context, std::span<const uint64_t> addresses) {
  chain_.clear();
  Append(chain_, context);
  for (const uint64_t address : addresses) Append(chain_, address);
  return {.addresses = chain_, .max_stack = kMaxStackFrames};
}

FrameId StackTable::UserFrame(Space& space, int64_t pid, uint64_t address, bool is_leaf) {
  const uint64_t key = address * 2 + (is_leaf ? 1 : 0);
  if (const FrameId* known = space.frames.Find(key)) return *known;
  const FrameId frame = stacks_->UserFrame(pid, address, !is_leaf);
  if (frame.valid()) *space.frames.Insert(key).first = frame;
  return frame;
}

// Invalid: some address has not one frame.
StackId StackTable::Callers(Space& space, int64_t pid, std::span<const uint64_t> addresses) {
  if (addresses.empty()) return {};
  const uint64_t key = XXH3_64bits(addresses.data(), addresses.size_bytes());
  if (const StackId* known = space.callers.Find(key)) return *known;
  StackId stack;
  for (size_t i = addresses.size(); i-- > 0;) {
    const FrameId frame = UserFrame(space, pid, addresses[i], false);
    if (!frame.valid()) return {};
    stack = dictionary_.InternStack(stack, frame);
  }
  *space.callers.Insert(key).first = stack;
  return stack;
}

// Most stacks that are new have callers that are not. Invalid: as Callers.
StackId StackTable::UserStackByFrames(Space& space, int64_t pid,
                                      std::span<const uint64_t> addresses) {
  const StackId callers = Callers(space, pid, addresses.subspan(1));
  if (!callers.valid() && addresses.size() > 1) return {};
  const FrameId leaf = UserFrame(space, pid, addresses.front(), true);
  return leaf.valid() ? dictionary_.InternStack(callers, leaf) : StackId();
}

StackId StackTable::UserStack(int64_t pid, std::span<const uint64_t> addresses) {
  Space& space = spaces_[pid];
  if (!addresses.empty() && addresses.size() < kMaxStackFrames) {
    const StackId stack = UserStackByFrames(space, pid, addresses);
    if (stack.valid()) return stack;
  }
  import_::PerfChain chain = Chain(import_::kContextUser, addresses);
  chain.pid = pid;
  return stacks_->Stack(chain);
}

void StackTable::ForgetOlder() {
  told_before_ = std::exchange(told_, {});
  spaces_.clear();
  known_.Clear();
  known_below_.Clear();
  judged_.Clear();
}

void StackTable::DefineKernel(uint64_t id, std::span<const uint64_t> addresses) {
  const auto [it, is_new] = told_.kernel.try_emplace(id);
  if (!is_new) return;
  ++counts_.defined;
  KernelStack& stack = it->second;
  addresses = addresses.subspan(TracerFrames(addresses));
  stack.addresses.assign(addresses.begin(), addresses.end());
  const std::span frames = stacks_->Frames(Chain(import_::kContextKernel, addresses));
  stack.frames.assign(frames.begin(), frames.end());
}

void StackTable::Define(uint64_t id, int64_t pid, std::span<const uint64_t> addresses) {
  if (pid == 0) {
    DefineKernel(id, addresses);
    return;
  }
  if (!addresses.empty() && addresses.front() == 0) {
    const auto [it, is_new] = told_.callers.try_emplace(id);
    if (!is_new) return;
    ++counts_.defined;
    const bool is_whole = addresses.size() < kMaxStackFrames;
    addresses = addresses.subspan(1);
    it->second = {.pid = pid,
                  .stack = is_whole ? Callers(spaces_[pid], pid, addresses) : StackId(),
                  .addresses = {addresses.begin(), addresses.end()}};
    return;
  }
  if (told_.user.Find(id) != nullptr) return;
  ++counts_.defined;
  *told_.user.Insert(id).first = UserStack(pid, addresses);
}

const StackId* StackTable::FindUser(uint64_t id) {
  if (id == 0) return nullptr;
  for (const Told* told : {&told_, &told_before_}) {
    if (const StackId* stack = told->user.Find(id)) return stack;
  }
  ++counts_.undefined;
  return nullptr;
}

template <class Value>
const Value* StackTable::Find(std::unordered_map<uint64_t, Value> Told::*stacks, uint64_t id) {
  if (id == 0) return nullptr;
  for (const Told* told : {&told_, &told_before_}) {
    const auto it = (told->*stacks).find(id);
    if (it != (told->*stacks).end()) return &it->second;
  }
  ++counts_.undefined;
  return nullptr;
}

StackId StackTable::UserStackBelow(const CallersOf& callers, uint64_t leaf) {
  if (callers.stack.valid() || callers.addresses.empty()) {
    const FrameId frame = UserFrame(spaces_[callers.pid], callers.pid, leaf, true);
    if (frame.valid()) return dictionary_.InternStack(callers.stack, frame);
  }
  std::vector<uint64_t> addresses = {leaf};
  addresses.insert(addresses.end(), callers.addresses.begin(), callers.addresses.end());
  return UserStack(callers.pid, addresses);
}

StackId StackTable::WithKernel(StackId stack, const KernelStack& kernel) {
  for (const FrameId frame : kernel.frames) stack = dictionary_.InternStack(stack, frame);
  return stack;
}

StackId StackTable::StackBelow(uint64_t callers_id, uint64_t leaf, uint64_t kernel_id) {
  const CallersOf* callers = FindCallers(callers_id);
  const StackId user = callers != nullptr ? UserStackBelow(*callers, leaf) : StackId();
  const KernelStack* kernel = FindKernel(kernel_id);
  if (kernel == nullptr) return user;
  if (known_below_.size() >= max_stacks_) known_below_.Clear();
  const auto [stack, is_new] = known_below_.Insert({.user = user.value, .kernel = kernel_id});
  if (is_new) *stack = WithKernel(user, *kernel);
  return *stack;
}

StackId StackTable::Stack(uint64_t user_id, uint64_t kernel_id) {
  if (user_id == 0 && kernel_id == 0) return {};
  const Key key = {user_id, kernel_id};
  if (const StackId* known = known_.Find(key)) return *known;
  const StackId* user = FindUser(user_id);
  const KernelStack* kernel = FindKernel(kernel_id);
  StackId stack = user != nullptr ? *user : StackId();
  if (kernel != nullptr) stack = WithKernel(stack, *kernel);
  // What is not defined yet may be told later.
  const bool all = (user != nullptr || user_id == 0) && (kernel != nullptr || kernel_id == 0);
  if (all) *known_.Insert(key).first = stack;
  return stack;
}

import_::PerfWaker StackTable::Judge(const Key& key) {
  import_::PerfWaker waker;
  waker.context = assemble::WakeContext::kThread;
  if (key.flags != 0) {
    const KernelStack* kernel = FindKernel(key.kernel);
    waker = stacks_->Waker(Chain(import_::kContextKernel,
                                 kernel != nullptr ? std::span<const uint64_t>(kernel->addresses)
                                                   : std::span<const uint64_t>()),
                           key.flags);
  }
  if (waker.context != assemble::WakeContext::kInterrupt) {
    waker.stack = Stack(key.user, key.kernel);
  }
  return waker;
}

import_::PerfWaker StackTable::Waker(uint64_t user_id, uint64_t kernel_id, bool hard_irq,
                                     bool soft_irq) {
  const Key key = {
      .user = user_id,
      .kernel = kernel_id,
      .flags = (hard_irq ? kHardInterruptFlag : 0) | (soft_irq ? import_::kSoftInterruptFlag : 0)};
  if (const import_::PerfWaker* known = judged_.Find(key)) return *known;
  const uint64_t undefined = counts_.undefined;
  const import_::PerfWaker waker = Judge(key);
  // What is not defined yet may be told later.
  if (counts_.undefined == undefined) *judged_.Insert(key).first = waker;
  return waker;
}

Diagnostics StackTable::TakeDiagnostics() {
  stacks_->Finish();
  return diagnostics_;
}

}  // namespace culprit::record
