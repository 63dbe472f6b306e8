// SPDX-License-Identifier: Apache-2.0
#include "record/symbol_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "record/jit_names.h"
#include "symbol/elf_file.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::record {
namespace {

using trace::Frame;
using trace::FrameId;
using trace::StackId;

// How far from the outermost frame the function that starts a thread may be.
constexpr size_t kStartDepth = 3;

constexpr std::array<std::string_view, 11> kThreadStarts = {"_start",
                                                            "__libc_start_main",
                                                            "__libc_start_call_main",
                                                            "start_thread",
                                                            "thread_start",
                                                            "clone",
                                                            "__clone",
                                                            "clone3",
                                                            "__clone3",
                                                            "_dl_start_user",
                                                            "_dl_start"};

std::string PropertyText(uint64_t value) { return std::to_string(value); }

void StoreCounts(const SymbolCounts& counts, trace::Metadata& metadata) {
  metadata.properties["stacks.user"] = PropertyText(counts.user_stacks);
  metadata.properties["stacks.user_complete"] = PropertyText(counts.complete_stacks);
}

}  // namespace

SymbolPass::SymbolPass(const trace::Dictionary& from, bool symbols, trace::Dictionary& to)
    : from_(from), to_(to) {
  CopyTables();
  MapFrames(symbols);
  MapStacks();
}

void SymbolPass::CopyTables() {
  for (size_t i = 0; i < from_.strings().size(); ++i) to_.Intern(from_.Text(StringId(i)));
  for (trace::Module module : from_.modules()) {
    // A mapping that was there before has no build-id from the kernel.
    if (module.path.valid() && !module.build_id.valid()) {
      const auto file = symbol::ElfFile::Open(std::string(from_.Text(module.path)));
      if (file.ok() && !file.value().build_id().empty()) {
        module.build_id = to_.Intern(file.value().build_id());
      }
    }
    modules_.push_back(to_.InternModule(module));
  }
  for (const trace::Process& process : from_.processes()) to_.AddProcess(process);
  for (const trace::Thread& thread : from_.threads()) to_.AddThread(thread);
}

std::vector<FrameId> SymbolPass::FramesOf(const Frame& frame, symbol::Symbolizer& symbolizer) {
  const trace::Module& module = from_.modules()[frame.module.value];
  const symbol::ModuleKey key = {.path = std::string(from_.Text(module.path)),
                                 .build_id = std::string(from_.Text(module.build_id))};
  std::vector<FrameId> frames;
  ++counts_.frames;
  bool named = false;
  for (const symbol::Symbol& symbol : symbolizer.Lookup(key, frame.offset, false)) {
    Frame result;
    result.module = modules_[frame.module.value];
    if (!symbol.function.empty()) result.function = to_.Intern(symbol.function);
    if (!symbol.file.empty()) result.file = to_.Intern(symbol.file);
    result.line = symbol.line;
    result.flags = symbol.inlined ? trace::kInlined : 0;
    result.offset = symbol.function_start;
    if (result.offset == 0 && symbol.function.empty()) result.offset = frame.offset;
    named = named || result.function.valid();
    frames.push_back(to_.InternFrame(result));
  }
  if (named) ++counts_.named;
  return frames;
}

void SymbolPass::MapFrames(bool symbols) {
  symbol::Symbolizer symbolizer;
  frames_.reserve(from_.frames().size());
  for (const Frame& frame : from_.frames()) {
    const bool is_place = frame.module.valid() && !frame.function.valid() &&
                          (frame.flags & trace::kKernelMode) == 0 &&
                          from_.modules()[frame.module.value].path.valid();
    if (symbols && is_place) {
      frames_.push_back(FramesOf(frame, symbolizer));
    } else {
      Frame copy = frame;
      if (copy.module.valid()) copy.module = modules_[copy.module.value];
      frames_.push_back({to_.InternFrame(copy)});
    }
  }
  diagnostics_.Merge(symbolizer.diagnostics());
}

bool SymbolPass::ReachesStart(StackId stack) const {
  const std::vector<FrameId> frames = to_.StackFrames(stack);
  for (size_t i = 0; i < std::min(frames.size(), kStartDepth); ++i) {
    const StringId function = to_.frames()[frames[i].value].function;
    if (!function.valid()) continue;
    const std::string_view name = to_.Text(function);
    if (std::find(kThreadStarts.begin(), kThreadStarts.end(), name) != kThreadStarts.end()) {
      return true;
    }
  }
  return false;
}

// Parents come before their children. Whether a stack is complete is known from
// its outermost frames, so it is decided at depth kStartDepth, or earlier where
// the stack ends; what hangs below follows.
void SymbolPass::MapStacks() {
  const auto& nodes = from_.stacks();
  const auto is_user = [&](FrameId id) {
    const Frame& frame = from_.frames()[id.value];
    return (frame.flags & trace::kKernelMode) == 0 && frame.module.valid();
  };
  std::vector<StackId> plain(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    StackId stack = nodes[i].parent.valid() ? plain[nodes[i].parent.value] : StackId();
    for (const FrameId frame : frames_[nodes[i].frame.value]) stack = to_.InternStack(stack, frame);
    plain[i] = stack;
  }
  // A node is a whole user stack if a kernel frame or nothing follows it.
  std::vector<uint8_t> inner(nodes.size(), 0);
  for (const trace::StackNode& node : nodes) {
    if (node.parent.valid() && is_user(node.frame)) inner[node.parent.value] = 1;
  }
  const FrameId mark = to_.InternFrame("", trace::kTruncatedFunction);
  std::vector<uint8_t> cut(nodes.size(), 0);
  stacks_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool user = is_user(nodes[i].frame);
    const StackId parent = nodes[i].parent;
    if (user) {
      cut[i] = ReachesStart(plain[i]) ? 0 : 1;
    } else {
      cut[i] = parent.valid() ? cut[parent.value] : 0;
    }
    if (user && inner[i] == 0) {
      ++counts_.user_stacks;
      if (cut[i] == 0) ++counts_.complete_stacks;
    }
    if (cut[i] == 0) {
      stacks_[i] = plain[i];
      continue;
    }
    std::vector<FrameId> frames = to_.StackFrames(plain[i]);
    if (frames.front() != mark) frames.insert(frames.begin(), mark);
    stacks_[i] = to_.InternStack(frames);
  }
}

SymbolCounts SymbolizeTrace(trace::Trace& trace, bool symbols) {
  trace::Trace named;
  const SymbolPass pass(trace.dictionary, symbols, named.dictionary);
  JitNames jit(named.dictionary);
  for (trace::Event& event : trace.events) {
    event.stack = pass.Map(event.stack);
    if (symbols) event.stack = jit.Map(event);
  }
  trace.dictionary = std::move(named.dictionary);
  StoreCounts(pass.counts(), trace.metadata);
  return pass.counts();
}

Result<SymbolCounts> SymbolizeFile(const std::string& path, bool symbols,
                                   Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const trace::TraceReader reader, trace::TraceReader::Open(path));
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, Overwrite::kAllow));
  trace::TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  writer.metadata() = reader.metadata();
  const SymbolPass pass(reader.dictionary(), symbols, writer.dictionary());
  StoreCounts(pass.counts(), writer.metadata());
  for (const trace::Instance& instance : reader.instances()) writer.AddInstance(instance);
  SymbolCounts counts = pass.counts();
  JitNames jit(writer.dictionary());
  std::vector<trace::Event> events;
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    CULPRIT_TRY(reader.ReadBlock(i, events));
    for (trace::Event event : events) {
      event.stack = pass.Map(event.stack);
      if (symbols) event.stack = jit.Map(event);
      if (event.kind == trace::EventKind::kWait) ++counts.waits;
      CULPRIT_TRY(writer.Add(event));
    }
  }
  CULPRIT_TRY(writer.Finish());
  CULPRIT_TRY(file.Commit());
  counts.bytes = writer.bytes();
  diagnostics.Merge(pass.diagnostics());
  diagnostics.Merge(jit.diagnostics());
  return counts;
}

}  // namespace culprit::record
