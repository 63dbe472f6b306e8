// SPDX-License-Identifier: Apache-2.0
#include "symbol/frame_naming.h"

#include <algorithm>
#include <iterator>

#include "base/file.h"
#include "trace/trace_writer.h"

namespace culprit::symbol {
namespace {

using trace::Frame;
using trace::FrameId;
using trace::StackId;

constexpr std::string_view kKernel = "[kernel]";
constexpr std::string_view kJit = "[jit]";

bool IsUnnamed(const Frame& frame) { return frame.module.valid() && !frame.function.valid(); }
bool IsKernel(const Frame& frame) { return (frame.flags & trace::kKernelMode) != 0; }

ModuleKey KeyOf(const trace::Dictionary& dictionary, trace::ModuleId id) {
  const trace::Module& module = dictionary.modules()[id.value];
  const auto text = [&](StringId string) {
    return string.valid() ? std::string(dictionary.Text(string)) : std::string();
  };
  // Kernel modules and the vdso are found by their bracketed names.
  return {.path = text(module.path.valid() ? module.path : module.name),
          .build_id = text(module.build_id)};
}

}  // namespace

FrameNaming::FrameNaming(const trace::Dictionary& from, const NameSources& sources,
                         trace::Dictionary& to)
    : from_(from), sources_(sources), to_(to), jit_maps_(sources.perf_map_folder) {
  CopyTables();
  MapFrames();
  MapStacks();
}

void FrameNaming::CopyTables() {
  for (size_t i = 0; i < from_.strings().size(); ++i) to_.Intern(from_.Text(StringId(i)));
  for (const trace::Module& module : from_.modules()) to_.InternModule(module);
  for (const trace::Process& process : from_.processes()) to_.AddProcess(process);
  for (const trace::Thread& thread : from_.threads()) to_.AddThread(thread);
}

std::vector<FrameId> FrameNaming::UserNames(const Frame& frame) {
  const ModuleKey key = KeyOf(from_, frame.module);
  if (key.build_id.empty()) return {};
  std::vector<FrameId> frames;
  const std::vector<Symbol>& symbols = sources_.symbolizer.Lookup(key, frame.offset, false);
  const bool identity = symbols.front().function_start == frame.offset;
  const bool named = std::any_of(symbols.begin(), symbols.end(),
                                 [](const Symbol& symbol) { return !symbol.function.empty(); });
  // Without a name the place is worth more than the function's start: with
  // another debug file it still has a line.
  if (!named || (identity && symbols.front().function.empty())) return {};
  for (const Symbol& symbol : symbols) {
    Frame result = {.module = frame.module, .flags = frame.flags};
    if (!symbol.function.empty()) result.function = to_.Intern(symbol.function);
    if (!symbol.file.empty() && !identity) result.file = to_.Intern(symbol.file);
    if (!identity) result.line = symbol.line;
    if (symbol.inlined) result.flags |= trace::kInlined;
    result.offset = symbol.function_start;
    frames.push_back(to_.InternFrame(result));
    if (identity) break;
  }
  return frames;
}

// Offsets in the kernel count from where its code begins. A recorder that did
// not know that kept the address itself, which is in the upper half.
std::vector<FrameId> FrameNaming::KernelNames(const Frame& frame) {
  const std::string_view name = from_.Text(from_.modules()[frame.module.value].name);
  if (name != kKernel || sources_.kernel == nullptr) return UserNames(frame);
  constexpr uint64_t kUpperHalf = uint64_t{1} << 63;
  if (frame.offset < kUpperHalf && !sources_.kernel->base()) return {};
  const uint64_t address =
      frame.offset >= kUpperHalf ? frame.offset : *sources_.kernel->base() + frame.offset;
  const KernelSymbols::Found found = sources_.kernel->Lookup(address);
  if (found.name.empty()) return {};
  Frame result = {.module = frame.module, .flags = frame.flags};
  if (!found.module.empty() && found.module != kKernel) {
    result.module = to_.InternModule({.name = to_.Intern(found.module)});
  }
  result.function = to_.Intern(found.name);
  return {to_.InternFrame(result)};
}

std::vector<FrameId> FrameNaming::NamesOf(const Frame& frame) {
  if (frame.module.valid()) ++counts_.frames;
  if (frame.module.valid() && frame.function.valid()) {
    ++counts_.named_before;
    ++counts_.named;
  }
  if (IsUnnamed(frame)) {
    std::vector<FrameId> names = IsKernel(frame) ? KernelNames(frame) : UserNames(frame);
    if (!names.empty()) {
      ++counts_.named;
      if (names.size() > 1) ++counts_.inlined;
      return names;
    }
  }
  return {to_.InternFrame(frame)};
}

void FrameNaming::MapFrames() {
  frames_.reserve(from_.frames().size());
  for (const Frame& frame : from_.frames()) frames_.push_back(NamesOf(frame));
}

bool FrameNaming::IsJitPlace(const Frame& frame) const {
  if (!IsUnnamed(frame) || IsKernel(frame)) return false;
  const trace::Module& module = from_.modules()[frame.module.value];
  return !module.path.valid() && !module.build_id.valid();
}

// Parents come before their children.
void FrameNaming::MapStacks() {
  const auto& nodes = from_.stacks();
  const bool jit = !sources_.perf_map_folder.empty();
  stacks_.resize(nodes.size());
  has_jit_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const StackId parent = nodes[i].parent;
    has_jit_[i] = jit && (IsJitPlace(from_.frames()[nodes[i].frame.value]) ||
                          (parent.valid() && has_jit_[parent.value]));
    StackId stack = parent.valid() ? stacks_[parent.value] : StackId();
    for (const FrameId frame : frames_[nodes[i].frame.value]) stack = to_.InternStack(stack, frame);
    stacks_[i] = stack;
  }
}

StackId FrameNaming::MapJit(StackId stack, int64_t pid) {
  const auto [it, is_new] = jit_stacks_.try_emplace({stack.value, pid});
  if (!is_new) return it->second;
  StackId result;
  for (const FrameId id : from_.StackFrames(stack)) {
    const Frame& frame = from_.frames()[id.value];
    const std::string_view name =
        IsJitPlace(frame) ? jit_maps_.Lookup(pid, frame.offset) : std::string_view();
    if (name.empty()) {
      for (const FrameId same : frames_[id.value]) result = to_.InternStack(result, same);
      continue;
    }
    result = to_.InternStack(result, to_.InternFrame(kJit, name));
    if (jit_frames_.emplace(id.value, pid).second) ++counts_.jit_named;
  }
  it->second = result;
  return result;
}

StackId FrameNaming::Map(StackId stack, trace::ThreadId thread) {
  if (!stack.valid()) return stack;
  if (!has_jit_[stack.value] || !thread.valid()) return stacks_[stack.value];
  const trace::ProcessId process = from_.threads()[thread.value].process;
  if (!process.valid()) return stacks_[stack.value];
  return MapJit(stack, from_.processes()[process.value].pid);
}

std::vector<UnnamedModule> UnnamedModules(const trace::Dictionary& dictionary) {
  std::vector<UnnamedModule> all(dictionary.modules().size());
  for (const Frame& frame : dictionary.frames()) {
    if (!IsUnnamed(frame)) continue;
    UnnamedModule& module = all[frame.module.value];
    if (module.frames++ != 0) continue;
    module.key = KeyOf(dictionary, frame.module);
    module.name = dictionary.Text(dictionary.modules()[frame.module.value].name);
    module.kernel = IsKernel(frame);
  }
  std::vector<UnnamedModule> unnamed;
  std::copy_if(std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()),
               std::back_inserter(unnamed),
               [](const UnnamedModule& module) { return module.frames != 0; });
  return unnamed;
}

Result<NamingCounts> WriteNamed(const trace::TraceReader& reader, const NameSources& sources,
                                const std::string& path) {
  if (!reader.complete() || !reader.diagnostics().empty()) {
    return Error{.message = "is damaged: a copy with names would hide that"};
  }
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, Overwrite::kAllow));
  trace::TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  writer.metadata() = reader.metadata();
  FrameNaming naming(reader.dictionary(), sources, writer.dictionary());
  for (const trace::Instance& instance : reader.instances()) writer.AddInstance(instance);
  std::vector<trace::Event> events;
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    CULPRIT_TRY(reader.ReadBlock(i, events));
    for (trace::Event event : events) {
      event.stack = naming.Map(event.stack, event.thread);
      CULPRIT_TRY(writer.Add(event));
    }
  }
  CULPRIT_TRY(writer.Finish());
  if (naming.counts().any_new()) CULPRIT_TRY(file.Commit());
  return naming.counts();
}

}  // namespace culprit::symbol
