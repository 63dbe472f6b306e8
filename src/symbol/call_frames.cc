// SPDX-License-Identifier: Apache-2.0
#include "symbol/call_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstdlib>

#include "symbol/call_frame_expression.h"

namespace culprit::symbol {
namespace {

using Registers = CallFrameRegisters;

enum class CallFrameRule : uint8_t {
  kUndefined,
  kAtOffset,      // in memory, at a distance from the frame's address
  kOffset,        // that address itself
  kRegister,      // in another register
  kAtExpression,  // in memory, at what an expression yields
  kExpression,
};

struct CallFrameSlot {
  uint8_t number = 0;
  CallFrameRule rule = CallFrameRule::kUndefined;
  int64_t operand = 0;
  CallFrameExpression expression = {};
};

// Returned by libdw with malloc.
struct FreeDwarfFrame {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};
using DwarfFrame = std::unique_ptr<Dwarf_Frame, FreeDwarfFrame>;

CallFrameExpression ExpressionOf(const Dwarf_Op* ops, size_t count) {
  CallFrameExpression expression;
  for (size_t i = 0; i < count; ++i) {
    expression.push_back({ops[i].atom, ops[i].number, ops[i].number2});
  }
  return expression;
}

// What libdw says as an expression is nearly always one of three simple rules.
CallFrameSlot SlotOf(uint8_t number, CallFrameExpression ops) {
  CallFrameSlot slot{.number = number};
  if (ops.empty()) return slot;
  const bool value = ops.back().atom == DW_OP_stack_value;
  if (value) ops.pop_back();
  const bool from_frame = !ops.empty() && ops.front().atom == DW_OP_call_frame_cfa;
  if (ops.size() == 1 && ops.front().atom == DW_OP_regx) {
    slot.rule = CallFrameRule::kRegister;
    slot.operand = static_cast<int64_t>(ops.front().number);
  } else if (ops.size() == 1 && ops.front().atom >= DW_OP_reg0 && ops.front().atom <= DW_OP_reg31) {
    slot.rule = CallFrameRule::kRegister;
    slot.operand = ops.front().atom - DW_OP_reg0;
  } else if (from_frame &&
             (ops.size() == 1 || (ops.size() == 2 && ops[1].atom == DW_OP_plus_uconst))) {
    slot.rule = value ? CallFrameRule::kOffset : CallFrameRule::kAtOffset;
    if (ops.size() == 2) slot.operand = static_cast<int64_t>(ops[1].number);
  } else {
    slot.rule = value ? CallFrameRule::kExpression : CallFrameRule::kAtExpression;
    slot.expression = std::move(ops);
  }
  return slot;
}

}  // namespace

std::optional<uint64_t> CallFrameMemory::Load(uint64_t address, unsigned size) const {
  if (address < start || size > 8) return std::nullopt;
  const uint64_t at = address - start;
  if (at > bytes.size() || bytes.size() - at < size) return std::nullopt;
  uint64_t value = 0;
  for (unsigned i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

struct CallFrames::Row {
  bool found = false;
  bool signal = false;
  bool outermost = false;
  uint8_t return_number = 0;
  CallFrameExpression frame_address;
  std::vector<CallFrameSlot> slots;  // registers that are not as they were
};

struct CallFrames::Tables {
  struct EndFrames {
    void operator()(Dwarf_CFI* frames) const { dwarf_cfi_end(frames); }
  };
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };

  // Ends before the file it reads from.
  ElfFile file;
  std::optional<ElfFile> debug_file;
  std::unique_ptr<Dwarf_CFI, EndFrames> eh_frame;
  std::vector<std::unique_ptr<Dwarf, EndDwarf>> dwarfs;
  std::vector<Dwarf_CFI*> sources;  // in the order to be asked
  unsigned stack_number = 0;

  Tables(ElfFile own, std::optional<ElfFile> debug)
      : file(std::move(own)), debug_file(std::move(debug)) {
    stack_number = file.machine() == EM_AARCH64 ? Registers::kArmSp : Registers::kX86Sp;
    if (file.machine() != EM_AARCH64 && file.machine() != EM_X86_64) return;
    eh_frame.reset(dwarf_getcfi_elf(file.handle()));
    if (eh_frame) sources.push_back(eh_frame.get());
    AddDebugFrame(file);
    if (debug_file) AddDebugFrame(*debug_file);
  }
  void AddDebugFrame(const ElfFile& from) {
    // dwarf_begin_elf of a file without any debug section is an error.
    if (from.FindSection(".debug_frame") == nullptr) return;
    Dwarf* dwarf = dwarf_begin_elf(from.handle(), DWARF_C_READ, nullptr);
    if (dwarf == nullptr) return;
    dwarfs.emplace_back(dwarf);
    Dwarf_CFI* frames = dwarf_getcfi(dwarf);
    if (frames != nullptr) sources.push_back(frames);
  }
  DwarfFrame Find(uint64_t address) const {
    for (Dwarf_CFI* source : sources) {
      Dwarf_Frame* frame = nullptr;
      if (dwarf_cfi_addrframe(source, address, &frame) == 0) return DwarfFrame(frame);
    }
    return nullptr;
  }
  unsigned registers() const { return file.machine() == EM_AARCH64 ? 32 : 17; }
};

CallFrames::CallFrames(ElfFile file, std::optional<ElfFile> debug_file)
    : tables_(std::make_unique<Tables>(std::move(file), std::move(debug_file))) {}
CallFrames::CallFrames(CallFrames&&) noexcept = default;
CallFrames::~CallFrames() = default;

const CallFrames::Row& CallFrames::RowAt(uint64_t file_offset) {
  if (rows_.size() >= kMaxRows) rows_.clear();
  const auto [it, is_new] = rows_.try_emplace(file_offset);
  if (!is_new) return *it->second;
  auto row = std::make_unique<Row>();
  const auto address = tables_->file.AddressOfOffset(file_offset);
  const DwarfFrame frame = address ? tables_->Find(*address) : nullptr;
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (frame != nullptr && dwarf_frame_cfa(frame.get(), &ops, &count) == 0 && count > 0) {
    row->frame_address = ExpressionOf(ops, count);
    const int number = dwarf_frame_info(frame.get(), nullptr, nullptr, &row->signal);
    row->found = number >= 0 && static_cast<unsigned>(number) < Registers::kCount;
    row->return_number = static_cast<uint8_t>(row->found ? number : 0);
    for (unsigned i = 0; i < tables_->registers() && row->found; ++i) {
      Dwarf_Op memory[3];
      if (dwarf_frame_register(frame.get(), static_cast<int>(i), memory, &ops, &count) != 0) {
        continue;
      }
      if (count == 0 && ops == nullptr) continue;
      row->slots.push_back(SlotOf(static_cast<uint8_t>(i), ExpressionOf(ops, count)));
      row->outermost = row->outermost || (count == 0 && i == row->return_number);
    }
  }
  it->second = std::move(row);
  return *it->second;
}

bool CallFrames::ReturnsByRegister(uint64_t file_offset) {
  const Row& row = RowAt(file_offset);
  return row.found && !row.outermost &&
         std::none_of(row.slots.begin(), row.slots.end(),
                      [&](const CallFrameSlot& slot) { return slot.number == row.return_number; });
}

CallFrameStep CallFrames::Step(uint64_t file_offset, const CallFrameMemory& memory,
                               CallFrameRegisters& registers) {
  const Row& row = RowAt(file_offset);
  if (!row.found) return CallFrameStep::kNoRow;
  if (row.outermost) return CallFrameStep::kOutermost;
  const auto frame = EvaluateCallFrame(row.frame_address, registers, memory, 0);
  if (!frame) return CallFrameStep::kOutside;
  Registers caller = registers;
  caller.Set(tables_->stack_number, *frame);
  for (const CallFrameSlot& slot : row.slots) {
    std::optional<uint64_t> value;
    const uint64_t near = *frame + static_cast<uint64_t>(slot.operand);
    switch (slot.rule) {
      case CallFrameRule::kUndefined:
        break;
      case CallFrameRule::kAtOffset:
        value = memory.Load(near);
        break;
      case CallFrameRule::kOffset:
        value = near;
        break;
      case CallFrameRule::kRegister:
        if (registers.Has(static_cast<unsigned>(slot.operand))) {
          value = registers.values[static_cast<size_t>(slot.operand)];
        }
        break;
      case CallFrameRule::kAtExpression:
      case CallFrameRule::kExpression:
        value = EvaluateCallFrame(slot.expression, registers, memory, *frame);
        if (value && slot.rule == CallFrameRule::kAtExpression) value = memory.Load(*value);
        break;
    }
    if (value) {
      caller.Set(slot.number, *value);
    } else if (slot.number != tables_->stack_number) {
      caller.known &= ~(uint64_t{1} << slot.number);
    }
  }
  if (!caller.Has(row.return_number)) return CallFrameStep::kOutside;
  caller.pc = caller.values[row.return_number];
  registers = caller;
  return row.signal ? CallFrameStep::kInterrupted : CallFrameStep::kCaller;
}

}  // namespace culprit::symbol
