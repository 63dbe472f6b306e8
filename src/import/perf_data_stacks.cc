// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_stacks.h"

#include <sys/utsname.h>

// Inlined: chains are short, and there is one for every event.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "import/kernel_stacks.h"

namespace culprit::import_ {
namespace {

using trace::FrameId;
using trace::kKernelMode;

constexpr std::string_view kKernel = "[kernel]";
constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kJit = "[jit]";
constexpr std::string_view kGuest = "[guest]";
constexpr uint64_t kLowestAddress = 4096;
constexpr size_t kUsualMaxStack = 127;
constexpr std::string_view kDeleted = " (deleted)";

// "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz" -> "[ext4]".
std::string KernelModuleName(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.starts_with("[kernel.") || file.starts_with("[guest.")) return std::string(kKernel);
  if (file.starts_with('[')) return std::string(file.substr(0, file.find(']') + 1));
  return "[" + std::string(file.substr(0, file.find(".ko"))) + "]";
}

// Memory that just-in-time compilers put code into.
bool MayHoldMadeCode(std::string_view path) {
  for (const std::string_view prefix :
       {"//anon", "/memfd:", "/dev/zero", "/anon_hugepage", "[anon", "[heap]"}) {
    if (path.starts_with(prefix)) return true;
  }
  return path.empty();
}

bool IsThisMachine(const PerfSession& session) {
  utsname name = {};
  return uname(&name) == 0 && session.os_release == name.release &&
         session.hostname == name.nodename;
}

// Files of /proc have no size to go by.
std::string LocalKallsyms() {
  std::ifstream file("/proc/kallsyms", std::ios::binary);
  std::string text;
  std::string buffer(1 << 16, '\0');
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
         file.gcount() > 0) {
    text.append(buffer, 0, static_cast<size_t>(file.gcount()));
  }
  return text;
}

// Nothing, if no file is to be read.
std::optional<symbol::SymbolizerOptions> SymbolOptions(const ImportOptions& options) {
  if (!options.symbols) return std::nullopt;
  return symbol::SymbolizerOptions{.sysroot = options.sysroot,
                                   .build_id_cache = options.build_id_cache,
                                   .debuginfod_cache = options.debuginfod_cache};
}

using Part = PerfCodePart;

Part PartOfMisc(uint16_t misc) {
  switch (misc & kMiscCpuModeMask) {
    case kMiscKernel:
      return Part::kKernelCode;
    case kMiscUser:
      return Part::kUserCode;
    case kMiscGuestKernel:
    case kMiscGuestUser:
      return Part::kGuestCode;
    default:
      return Part::kOther;
  }
}

Part PartOfMarker(uint64_t marker) {
  if (marker == kContextKernel) return Part::kKernelCode;
  if (marker == kContextUser || marker == kContextUserDeferred) return Part::kUserCode;
  if (marker == kContextGuest || marker == kContextGuestKernel || marker == kContextGuestUser) {
    return Part::kGuestCode;
  }
  return Part::kOther;
}

}  // namespace

PerfStacks::PerfStacks(const PerfSession& session, const ImportOptions& options,
                       trace::Dictionary& dictionary, Diagnostics& diagnostics)
    : big_(session.big),
      session_(session),
      dictionary_(dictionary),
      diagnostics_(diagnostics),
      user_stack_(session, SymbolOptions(options),
                  [this](int64_t pid, uint64_t address) { return FindCode(pid, address); }) {
  if (options.symbols) {
    symbolizer_.emplace(*SymbolOptions(options));
    const bool is_this_machine = IsThisMachine(session);
    may_use_local_kernel_ = options.kallsyms.empty() && is_this_machine;
    files_are_anothers_ = options.sysroot.empty() && !is_this_machine;
    // A process number of another machine means somebody else here.
    if (is_this_machine) jit_maps_.emplace("/tmp");
  }
  if (!options.perf_maps.empty() && !jit_maps_) jit_maps_.emplace("");
  for (const PerfMapFile& file : options.perf_maps) {
    const Result<std::string> text = ReadWholeFile(file.path);
    if (text.ok()) {
      jit_maps_->Give(file.pid, text.value());
    } else {
      diagnostics.Count("perf map that cannot be read");
    }
  }
  if (!session.kallsyms.empty()) UseKallsyms(session.kallsyms);
  if (options.kallsyms.empty()) return;
  if (options.kallsyms.find('\n') != std::string::npos) {
    UseKallsyms(options.kallsyms);
    return;
  }
  const Result<std::string> text = ReadWholeFile(options.kallsyms);
  if (text.ok()) {
    UseKallsyms(text.value());
  } else {
    diagnostics.Count("kallsyms file that cannot be read");
  }
}

void PerfStacks::UseKallsyms(std::string_view text) {
  Result<symbol::KernelSymbols> symbols = symbol::KernelSymbols::Parse(text);
  if (!symbols.ok() || symbols.value().hidden()) {
    diagnostics_.Count("kallsyms without addresses");
    return;
  }
  kernel_symbols_ = std::move(symbols).value();
  kernel_frames_.Clear();
  ++kernel_version_;
}

uint32_t PerfStacks::ModuleOf(std::string_view path, std::string_view build_id) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  if (build_id.empty()) {
    const auto known = session_.build_ids.find(path);
    if (known != session_.build_ids.end()) build_id = known->second;
  }
  const auto [it, is_new] = module_numbers_.try_emplace({std::string(path), std::string(build_id)},
                                                        static_cast<uint32_t>(modules_.size()));
  if (!is_new) return it->second;
  Module module;
  module.may_be_jit = MayHoldMadeCode(path);
  module.has_file = path.starts_with('/') && !path.starts_with("//");
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (path.starts_with("//anon") || name.empty()) name = "[anon]";
  trace::Module row = {.name = dictionary_.Intern(name)};
  if (module.has_file) row.path = dictionary_.Intern(path);
  if (!build_id.empty()) row.build_id = dictionary_.Intern(build_id);
  module.id = dictionary_.InternModule(row);
  module.key = {.path = std::string(path), .build_id = std::string(build_id)};
  modules_.push_back(std::move(module));
  return it->second;
}

void PerfStacks::Map(int64_t pid, uint64_t start, uint64_t size, uint64_t file_offset,
                     std::string_view path, std::string_view build_id) {
  const uint64_t end = start + std::min(size, UINT64_MAX - start);
  spaces_.Map(
      pid,
      {.start = start, .end = end, .file_offset = file_offset, .module = ModuleOf(path, build_id)});
}

void PerfStacks::MapKernel(uint64_t start, uint64_t size, uint64_t file_offset,
                           std::string_view path) {
  const std::string name = KernelModuleName(path);
  kernel_frames_.Clear();
  ++kernel_version_;
  if (name == kKernel) {
    // The offset is the address of the symbol that the name ends with.
    kernel_base_ = path.ends_with("_text") || path.ends_with("_stext") ? file_offset : start;
    if (!may_use_local_kernel_ || kernel_symbols_) return;
    may_use_local_kernel_ = false;
    Result<symbol::KernelSymbols> symbols = symbol::KernelSymbols::Parse(LocalKallsyms());
    // Another boot has other addresses.
    if (symbols.ok() && !symbols.value().hidden() && kernel_base_ != 0 &&
        symbols.value().Lookup(kernel_base_).start == kernel_base_) {
      kernel_symbols_ = std::move(symbols).value();
    }
    return;
  }
  const uint64_t end = start + std::min(size, UINT64_MAX - start);
  spaces_.Map(PerfSpaces::kKernelPid,
              {.start = start, .end = end, .file_offset = 0, .module = ModuleOf(name, {})});
}

void PerfStacks::KernelFunction(uint64_t start, uint64_t size, std::string_view name) {
  if (size == 0) {
    kernel_functions_.erase(start);
  } else {
    kernel_functions_[start] = {.end = start + std::min(size, UINT64_MAX - start),
                                .name = std::string(name)};
  }
  kernel_frames_.Erase(start);
  ++kernel_version_;
}

FrameId PerfStacks::PlainFrame(std::string_view module, uint64_t offset, uint8_t flags) {
  trace::Frame frame;
  frame.module = dictionary_.InternModule({.name = dictionary_.Intern(module)});
  frame.flags = flags;
  frame.offset = offset;
  return dictionary_.InternFrame(frame);
}

FrameId PerfStacks::KernelFrame(uint64_t address) {
  trace::Frame frame;
  frame.flags = kKernelMode;
  std::string_view module = kKernel;
  std::string_view name;
  const auto above = kernel_functions_.upper_bound(address);
  if (above != kernel_functions_.begin() && std::prev(above)->second.end > address) {
    module = "[bpf]";
    name = std::prev(above)->second.name;
  } else if (kernel_symbols_) {
    const auto found = kernel_symbols_->Lookup(address);
    name = found.name;
    if (!found.module.empty()) module = found.module;
  }
  std::string recorded;
  if (name.empty()) {
    recorded = session_.file_symbols.LookupKernel(address).name;
    name = recorded;
  }
  if (name.empty()) {
    const PerfMap* map = spaces_.Find(PerfSpaces::kKernelPid, address);
    frame.offset = address - (map != nullptr ? map->start : kernel_base_);
    if (map != nullptr) frame.module = modules_[map->module].id;
  } else {
    frame.function = dictionary_.Intern(name);
  }
  if (!frame.module.valid()) {
    frame.module = dictionary_.InternModule({.name = dictionary_.Intern(module)});
  }
  return dictionary_.InternFrame(frame);
}

PerfStacks::KernelCode PerfStacks::KernelCodeAt(uint64_t address) {
  const auto [code, is_new] = kernel_frames_.Insert(address);
  if (!is_new) return *code;
  code->frame = KernelFrame(address);
  const StringId function = dictionary_.frames()[code->frame.value].function;
  if (function.valid()) code->traits = TraitsOf(dictionary_.Text(function));
  return *code;
}

std::span<const FrameId> PerfStacks::ModuleFrames(Module& module, uint64_t offset, bool is_return) {
  const auto [span, is_new] = module.frames.Insert(offset * 2 + (is_return ? 1 : 0));
  const auto frames = [&, known = span] {
    return std::span(frame_pool_).subspan(known->begin, known->count);
  };
  if (!is_new) return frames();
  span->begin = static_cast<uint32_t>(frame_pool_.size());
  // A return address may be the first byte of the next function; who names the
  // frame later no longer knows that it was one.
  const uint64_t place = offset - (is_return && offset != 0 ? 1 : 0);
  if (!symbolizer_ || !module.has_file) {
    frame_pool_.push_back(dictionary_.InternFrame({.module = module.id, .offset = place}));
    span->count = 1;
    return frames();
  }
  for (const symbol::Symbol& symbol : symbolizer_->Lookup(module.key, offset, is_return)) {
    trace::Frame frame;
    frame.module = module.id;
    if (!symbol.function.empty()) frame.function = dictionary_.Intern(symbol.function);
    if (!symbol.file.empty()) frame.file = dictionary_.Intern(symbol.file);
    frame.line = symbol.line;
    frame.flags = symbol.inlined ? trace::kInlined : 0;
    frame.offset = symbol.function_start;
    if (frame.offset == 0 && symbol.function.empty()) frame.offset = place;
    frame_pool_.push_back(dictionary_.InternFrame(frame));
    ++span->count;
    const bool is_doubtful =
        files_are_anothers_ && module.key.build_id.empty() && frame.function.valid();
    if (is_doubtful && !std::exchange(module.is_doubted, true)) {
      diagnostics_.Count("module named by a file of this machine, with no build-id to compare");
    }
  }
  return frames();
}

// Code without a file: its address is all there is to find its name by, now or
// later.
void PerfStacks::AddMadeCode(int64_t pid, uint64_t address, const PerfMap* map, bool is_return) {
  const uint64_t place = address - (is_return ? 1 : 0);
  std::string name(jit_maps_ ? jit_maps_->Lookup(pid, place) : std::string_view());
  if (name.empty()) name = session_.file_symbols.LookupMadeCode(place).name;
  if (!name.empty()) {
    frames_.push_back(dictionary_.InternFrame(kJit, name));
  } else if (map == nullptr) {
    frames_.push_back(PlainFrame(kUnknown, place, 0));
  } else {
    frames_.push_back(
        dictionary_.InternFrame({.module = modules_[map->module].id, .offset = place}));
  }
}

// The recorder looked the name up where the file was.
bool PerfStacks::AddRecordedName(const Module& module, uint64_t address, uint64_t offset,
                                 bool is_return) {
  const PerfFileSymbols::Found found =
      session_.file_symbols.Lookup(module.key.path, address, offset, is_return);
  if (found.name.empty()) return false;
  if (found.made_code) {
    frames_.push_back(dictionary_.InternFrame(kJit, found.name));
  } else {
    frames_.push_back(dictionary_.InternFrame({.module = module.id,
                                               .function = dictionary_.Intern(found.name),
                                               .offset = found.file_start}));
  }
  return true;
}

void PerfStacks::AddUser(int64_t pid, uint64_t address, bool is_return) {
  // What a walk along broken frame pointers picks up.
  if (address < kLowestAddress) return;
  const PerfMap* map = spaces_.Find(pid, address);
  if (map == nullptr || modules_[map->module].may_be_jit) {
    AddMadeCode(pid, address, map, is_return);
    return;
  }
  const uint64_t offset = address - map->start + map->file_offset;
  if (!session_.file_symbols.empty() &&
      AddRecordedName(modules_[map->module], address, offset, is_return)) {
    return;
  }
  const std::span<const FrameId> frames = ModuleFrames(modules_[map->module], offset, is_return);
  frames_.insert(frames_.end(), frames.begin(), frames.end());
}

void PerfStacks::AddKernel(uint64_t address) {
  const KernelCode code = KernelCodeAt(address);
  frames_.push_back(code.frame);
  traits_.push_back(code.traits);
}

void PerfStacks::ReadAddresses(const PerfChain& chain) {
  pcs_.clear();
  Part part = PartOfMisc(chain.misc);
  bool first = true;
  const auto add = [&](std::string_view addresses) {
    for (size_t i = 0; i + 8 <= addresses.size(); i += 8) {
      const auto address = LoadInteger<uint64_t>(addresses.data() + i, big_);
      if (address >= kContextMax) {
        part = PartOfMarker(address);
        first = true;
        if (address == kContextUserDeferred) break;  // its cookie follows
        continue;
      }
      pcs_.push_back({.address = address, .part = part, .is_return = !first});
      first = false;
    }
  };
  add(chain.sample == nullptr ? chain.addresses
                              : user_stack_.WithLeafCaller(*chain.attr, *chain.sample));
  if (!chain.deferred.empty()) {
    part = Part::kUserCode;
    first = true;
    add(chain.deferred);
  }
}

void PerfStacks::Collect(const PerfChain& chain) {
  frames_.clear();
  traits_.clear();
  ReadAddresses(chain);
  const size_t limit = chain.max_stack != 0 ? chain.max_stack : kUsualMaxStack;
  if (chain.unwound ? chain.cut : pcs_.size() >= limit) {
    frames_.push_back(dictionary_.InternFrame("", trace::kTruncatedFunction));
  }
  for (auto pc = pcs_.rbegin(); pc != pcs_.rend(); ++pc) {
    if (pc->part == Part::kUserCode) AddUser(chain.pid, pc->address, pc->is_return);
    if (pc->part == Part::kGuestCode) frames_.push_back(PlainFrame(kGuest, pc->address, 0));
    if (pc->part == Part::kOther) frames_.push_back(PlainFrame(kUnknown, pc->address, 0));
  }
  kernel_begin_ = frames_.size();
  for (auto pc = pcs_.rbegin(); pc != pcs_.rend(); ++pc) {
    if (pc->part == Part::kKernelCode) AddKernel(pc->address);
  }
  while (!traits_.empty() && (traits_.back() & kTracerFrame) != 0) {
    traits_.pop_back();
    frames_.pop_back();
  }
}

PerfStacks::Key PerfStacks::KeyOf(const PerfChain& chain, uint64_t salt) const {
  uint64_t seed = spaces_.version(chain.pid) * 0x9e3779b97f4a7c15 +
                  kernel_version_ * 0xff51afd7ed558ccd + salt * 64 + chain.max_stack * 8192 +
                  (chain.misc & kMiscCpuModeMask) + (chain.cut ? 8 : 0);
  if (chain.sample != nullptr) {
    const uint64_t link = LoadInteger<uint64_t>(chain.sample->user_registers.data(), big_);
    seed += (link + chain.sample->user_abi) * 0xc2b2ae3d27d4eb4f;
  }
  XXH128_hash_t hash = XXH3_128bits_withSeed(chain.addresses.data(), chain.addresses.size(), seed);
  if (!chain.deferred.empty()) {
    const XXH128_hash_t more =
        XXH3_128bits_withSeed(chain.deferred.data(), chain.deferred.size(), hash.low64);
    hash.low64 ^= more.low64;
    hash.high64 ^= more.high64;
  }
  return {.low = hash.low64, .high = hash.high64};
}

std::optional<PerfCodePlace> PerfStacks::FindCode(int64_t pid, uint64_t address) const {
  const PerfMap* map = spaces_.Find(pid, address);
  if (map == nullptr) return std::nullopt;
  const Module& module = modules_[map->module];
  return PerfCodePlace{.module = map->module,
                       .key = &module.key,
                       .has_file = !module.may_be_jit,
                       .file_offset = address - map->start + map->file_offset};
}

void PerfStacks::Unwind(const PerfAttr& attr, const PerfSample& sample, uint64_t offset,
                        PerfChain& chain) {
  if (!attr.Has(kSampleStackUser)) {
    // One register is what perf adds to chains of frame pointers; it goes into
    // the key of the chain. With more of them hardly two samples are alike.
    if (sample.user_registers.size() == 8) {
      chain.attr = &attr;
      chain.sample = &sample;
    } else {
      chain.addresses = user_stack_.WithLeafCaller(attr, sample);
    }
    return;
  }
  const PerfUserChain user = user_stack_.Walk(attr, sample, offset);
  if (user.addresses.empty()) return;
  chain.deferred = user.addresses;
  chain.unwound = true;
  chain.cut = user.cut;
}

// New stacks come in bursts that share their outer callers.
trace::StackId PerfStacks::Intern() {
  const size_t both = std::min(frames_.size(), last_frames_.size());
  const auto differs =
      std::mismatch(frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(both),
                    last_frames_.begin())
          .first;
  const auto same = static_cast<size_t>(differs - frames_.begin());
  last_stacks_.resize(same);
  trace::StackId stack = same == 0 ? trace::StackId() : last_stacks_.back();
  for (auto frame = differs; frame != frames_.end(); ++frame) {
    stack = dictionary_.InternStack(stack, *frame);
    last_stacks_.push_back(stack);
  }
  last_frames_ = frames_;
  return stack;
}

FrameId PerfStacks::UserFrame(int64_t pid, uint64_t address, bool is_return) {
  frames_.clear();
  AddUser(pid, address, is_return);
  return frames_.size() == 1 ? frames_.front() : FrameId();
}

trace::StackId PerfStacks::Stack(const PerfChain& chain) {
  if (chain.addresses.empty() && chain.deferred.empty()) return {};
  if (stacks_.size() >= kMaxCachedChains) stacks_.Clear();
  const auto [stack, is_new] = stacks_.Insert(KeyOf(chain, 0));
  if (!is_new) return *stack;
  Collect(chain);
  *stack = Intern();
  return *stack;
}

std::span<const FrameId> PerfStacks::Frames(const PerfChain& chain) {
  Collect(chain);
  return frames_;
}

PerfWaker PerfStacks::Waker(const PerfChain& chain, uint64_t common_flags) {
  const uint64_t flags = common_flags & (kHardInterruptFlags | kSoftInterruptFlag);
  if (wakers_.size() >= kMaxCachedChains) wakers_.Clear();
  const auto [known, is_new] = wakers_.Insert(KeyOf(chain, flags + 1));
  if (!is_new) return *known;
  PerfWaker& waker = *known;
  Collect(chain);
  const bool named = std::any_of(
      frames_.begin() + static_cast<ptrdiff_t>(kernel_begin_), frames_.end(),
      [&](FrameId frame) { return dictionary_.frames()[frame.value].function.valid(); });
  const WakeVerdict verdict =
      JudgeWaking(flags, named ? std::span<const uint8_t>(traits_) : std::span<const uint8_t>());
  waker.context = verdict.context;
  waker.device = verdict.device;
  if (verdict.context == assemble::WakeContext::kInterrupt) {
    const size_t cut = std::min(kernel_begin_ + verdict.first_frame, frames_.size());
    // Without names the end of the interrupted code is not known: no stack is
    // better than an innocent thread's.
    frames_.erase(frames_.begin(),
                  named ? frames_.begin() + static_cast<ptrdiff_t>(cut) : frames_.end());
  }
  waker.stack = Intern();
  return waker;
}

void PerfStacks::Finish() {
  if (symbolizer_) diagnostics_.Merge(symbolizer_->diagnostics());
  diagnostics_.Merge(user_stack_.diagnostics());
  if (jit_maps_) diagnostics_.Merge(jit_maps_->diagnostics());
  if (spaces_.left_out() != 0) diagnostics_.Count("map beyond what is kept", spaces_.left_out());
}

}  // namespace culprit::import_
