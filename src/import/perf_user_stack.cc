// SPDX-License-Identifier: Apache-2.0
#include "import/perf_user_stack.h"

#include <array>
#include <bit>
#include <cstring>

#include "symbol/debug_files.h"

namespace culprit::import_ {
namespace {

using symbol::CallFrameMemory;
using symbol::CallFrameRegisters;
using symbol::CallFrames;
using symbol::CallFrameStep;

constexpr std::string_view kNotRead = "user stack not unwound: no binaries are to be read";
constexpr std::string_view kNoModule =
    "user stack cut at a module that is not on this machine (see --sysroot)";
constexpr std::string_view kNoMap = "user stack cut at an address where no code is mapped";
constexpr std::string_view kNoDescription = "user stack cut at code without unwind information";
constexpr std::string_view kStackEnds =
    "user stack longer than its recorded part (perf record --call-graph dwarf,BYTES)";
constexpr std::string_view kNoProgress = "user stack cut where unwinding went in a circle";
constexpr std::string_view kOtherMachine =
    "user stack of a machine that is neither x86-64 nor arm64";
constexpr uint64_t kAbi64 = 2;
constexpr unsigned kPerfX86Pc = 8;
constexpr unsigned kPerfX86Sp = 7;
constexpr unsigned kPerfArmPc = 32;

// DWARF's number of the kernel's x86 register (PERF_REG_X86_*); 255: none.
constexpr std::array<uint8_t, 24> kX86Numbers = {
    0, 3, 2, 1, 4, 5, 6, 7, 16, 255, 255, 255, 255, 255, 255, 255, 8, 9, 10, 11, 12, 13, 14, 15};

// Signed return addresses carry their signature above the 48 bits of user space.
constexpr uint64_t kArmAddressMask = (uint64_t{1} << 48) - 1;

}  // namespace

PerfUserStack::PerfUserStack(const PerfSession& session,
                             std::optional<symbol::SymbolizerOptions> symbols, FindCode find_code)
    : session_(session), symbols_(std::move(symbols)), find_code_(std::move(find_code)) {}

// Recordings cut short and those of pipes need not name the machine; the set of
// registers does.
PerfUserStack::Machine PerfUserStack::MachineOf(const PerfAttr& attr) const {
  if (session_.big) return Machine::kOther;
  const uint64_t mask = attr.user_register_mask;
  if (session_.arch == "x86_64") return Machine::kX86;
  if (session_.arch == "aarch64" || session_.arch == "arm64") return Machine::kArm;
  if (!session_.arch.empty()) return Machine::kOther;
  if ((mask >> kPerfArmPc & 1) != 0) return Machine::kArm;
  return mask >> kX86Numbers.size() == 0 && (mask >> 16 & 0xff) == 0xff ? Machine::kX86
                                                                        : Machine::kOther;
}

bool PerfUserStack::ReadRegisters(Machine machine, const PerfAttr& attr, const PerfSample& sample,
                                  CallFrameRegisters& registers) const {
  size_t at = 0;
  bool has_pc = false;
  bool has_sp = false;
  for (unsigned bit = 0; bit < 64 && at + 8 <= sample.user_registers.size(); ++bit) {
    if ((attr.user_register_mask >> bit & 1) == 0) continue;
    const auto value = LoadInteger<uint64_t>(sample.user_registers.data() + at, session_.big);
    at += 8;
    if (machine == Machine::kArm) {
      if (bit < kPerfArmPc) registers.Set(bit, value);
      if (bit == kPerfArmPc) registers.pc = value;
      has_pc = has_pc || bit == kPerfArmPc;
      has_sp = has_sp || bit == CallFrameRegisters::kArmSp;
    } else if (bit < kX86Numbers.size() && kX86Numbers[bit] < CallFrameRegisters::kCount) {
      registers.Set(kX86Numbers[bit], value);
      if (bit == kPerfX86Pc) registers.pc = value;
      has_pc = has_pc || bit == kPerfX86Pc;
      has_sp = has_sp || bit == kPerfX86Sp;
    }
  }
  return has_pc && has_sp;
}

CallFrames* PerfUserStack::FramesOf(const PerfCodePlace& place) {
  const auto [it, is_new] = frames_.try_emplace(place.module);
  if (is_new && symbols_) {
    Diagnostics ignored;  // who names the frames counts the same modules
    auto file = symbol::OpenModuleFile(*place.key, *symbols_, ignored);
    if (file) {
      auto debug_file = symbol::OpenDebugFile(*file, *symbols_);
      it->second.emplace(std::move(*file), std::move(debug_file));
    }
  }
  return it->second ? &*it->second : nullptr;
}

CallFrameStep PerfUserStack::FollowFramePointer(int64_t pid, const CallFrameMemory& memory,
                                                CallFrameRegisters& registers) const {
  const bool arm = machine_ == Machine::kArm;
  const unsigned fp = arm ? CallFrameRegisters::kArmFp : CallFrameRegisters::kX86Bp;
  const unsigned sp = arm ? CallFrameRegisters::kArmSp : CallFrameRegisters::kX86Sp;
  if (!registers.Has(fp) || registers.values[fp] < registers.values[sp]) {
    return CallFrameStep::kNoRow;
  }
  const uint64_t record = registers.values[fp];
  const auto next = memory.Load(record);
  const auto pc = memory.Load(record + 8);
  if (!next || !pc || !find_code_(pid, arm ? *pc & kArmAddressMask : *pc)) {
    return CallFrameStep::kNoRow;
  }
  // Of the others nothing is known.
  registers.known = 0;
  registers.Set(fp, *next);
  registers.Set(sp, record + 16);
  if (arm) registers.Set(CallFrameRegisters::kArmLr, *pc);
  registers.pc = *pc;
  return CallFrameStep::kCaller;
}

CallFrameStep PerfUserStack::Step(int64_t pid, bool is_return, const CallFrameMemory& memory,
                                  CallFrameRegisters& registers) {
  const auto place = find_code_(pid, registers.pc);
  if (!place) {
    reason_ = kNoMap;
    return CallFrameStep::kOutside;
  }
  CallFrames* frames = nullptr;
  if (place->has_file) {
    frames = FramesOf(*place);
    if (frames == nullptr) {
      reason_ = symbols_ ? kNoModule : kNotRead;
      return CallFrameStep::kOutside;
    }
    const uint64_t offset = place->file_offset - (is_return && place->file_offset > 0 ? 1 : 0);
    const CallFrameStep step = frames->Step(offset, memory, registers);
    reason_ = kStackEnds;
    if (step != CallFrameStep::kNoRow) return step;
  }
  const CallFrameStep step = FollowFramePointer(pid, memory, registers);
  if (step == CallFrameStep::kCaller) return step;
  reason_ = kNoDescription;
  return CallFrameStep::kOutside;
}

void PerfUserStack::Append(uint64_t address) {
  char bytes[sizeof address];
  const uint64_t stored = session_.big == (std::endian::native == std::endian::big)
                              ? address
                              : __builtin_bswap64(address);
  std::memcpy(bytes, &stored, sizeof bytes);
  addresses_.append(bytes, sizeof bytes);
}

PerfUserChain PerfUserStack::Cut(std::string_view why, uint64_t offset) {
  diagnostics_.Count(why, 1, offset);
  return {.addresses = addresses_, .cut = true};
}

std::string_view PerfUserStack::WithLeafCaller(const PerfAttr& attr, const PerfSample& sample) {
  const std::string_view chain = sample.chain;
  constexpr uint64_t kLink = uint64_t{1} << CallFrameRegisters::kArmLr;
  if (!symbols_ || sample.user_abi != kAbi64 || (attr.user_register_mask & kLink) == 0 ||
      MachineOf(attr) != Machine::kArm) {
    return chain;
  }
  const size_t place_of_link =
      static_cast<size_t>(std::popcount(attr.user_register_mask & (kLink - 1))) * 8;
  if (place_of_link + 8 > sample.user_registers.size()) return chain;
  const auto address_at = [&](size_t at) {
    return at + 8 <= chain.size() ? LoadInteger<uint64_t>(chain.data() + at, session_.big) : 0;
  };
  size_t leaf = 0;
  while (leaf < chain.size() && address_at(leaf) != kContextUser) leaf += 8;
  leaf += 8;
  if (leaf + 8 > chain.size()) return chain;
  const uint64_t link =
      LoadInteger<uint64_t>(sample.user_registers.data() + place_of_link, session_.big) &
      kArmAddressMask;
  if (link == 0 || address_at(leaf + 8) == link) return chain;
  const auto place = find_code_(sample.pid, address_at(leaf));
  if (!place || !place->has_file || !find_code_(sample.pid, link)) return chain;
  CallFrames* frames = FramesOf(*place);
  if (frames == nullptr || !frames->ReturnsByRegister(place->file_offset)) return chain;
  addresses_ = chain.substr(0, leaf + 8);
  Append(link);
  addresses_ += chain.substr(leaf + 8);
  return addresses_;
}

PerfUserChain PerfUserStack::Walk(const PerfAttr& attr, const PerfSample& sample, uint64_t offset) {
  addresses_.clear();
  if (sample.user_abi == 0 || sample.user_registers.empty()) return {};
  machine_ = sample.user_abi == kAbi64 ? MachineOf(attr) : Machine::kOther;
  CallFrameRegisters registers;
  if (machine_ == Machine::kOther || !ReadRegisters(machine_, attr, sample, registers)) {
    diagnostics_.Count(kOtherMachine, 1, offset);
    return {};
  }
  const unsigned sp =
      machine_ == Machine::kArm ? CallFrameRegisters::kArmSp : CallFrameRegisters::kX86Sp;
  const CallFrameMemory memory = {.start = registers.values[sp], .bytes = sample.user_stack};
  bool is_return = false;
  for (size_t frames = 0; frames < kMaxFrames; ++frames) {
    if (frames > 0 && !is_return) Append(kContextUser);
    Append(registers.pc);
    const uint64_t old_pc = registers.pc;
    const uint64_t old_sp = registers.values[sp];
    const CallFrameStep step = Step(sample.pid, is_return, memory, registers);
    if (step == CallFrameStep::kOutermost) return {.addresses = addresses_};
    if (step == CallFrameStep::kOutside || step == CallFrameStep::kNoRow) {
      return Cut(reason_, offset);
    }
    if (machine_ == Machine::kArm) registers.pc &= kArmAddressMask;
    // Where nobody called, programs leave a zero.
    if (registers.pc == 0) return {.addresses = addresses_};
    is_return = step == CallFrameStep::kCaller;
    const bool moved = registers.values[sp] > old_sp ||
                       (registers.values[sp] == old_sp && registers.pc != old_pc && frames == 0);
    // An alternate signal stack may lie anywhere.
    if (is_return && !moved) return Cut(kNoProgress, offset);
  }
  return Cut(kStackEnds, offset);
}

}  // namespace culprit::import_
