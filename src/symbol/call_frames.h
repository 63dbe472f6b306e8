// SPDX-License-Identifier: Apache-2.0
//
// CallFrames: from a function's registers to its caller's, by the call frame
// information of one module (.eh_frame, else .debug_frame, also of its separate
// debug file). A row says, for one place in the code, where the caller's
// registers are (DWARF 5 §6.4); libdw reads it once, afterwards the place costs
// one look into a table. Registers have their DWARF numbers. For x86-64 and
// arm64 programs, whatever machine this runs on.
//
// Rows and memory are untrusted: every load is checked against the memory given,
// an expression has a bounded number of steps. kMaxRows rows are kept. One
// thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbol/elf_file.h"

namespace culprit::symbol {

struct CallFrameRegisters {
  static constexpr unsigned kCount = 33;
  static constexpr unsigned kX86Bp = 6;
  static constexpr unsigned kX86Sp = 7;
  static constexpr unsigned kX86Pc = 16;
  static constexpr unsigned kArmFp = 29;
  static constexpr unsigned kArmLr = 30;
  static constexpr unsigned kArmSp = 31;

  std::array<uint64_t, kCount> values = {};
  uint64_t known = 0;  // a bit a register
  uint64_t pc = 0;

  bool Has(unsigned number) const { return number < kCount && (known >> number & 1) != 0; }
  void Set(unsigned number, uint64_t value) {
    values[number] = value;
    known |= uint64_t{1} << number;
  }
};

// A copy of a part of the program's memory, in little-endian order.
struct CallFrameMemory {
  uint64_t start = 0;
  std::string_view bytes;

  std::optional<uint64_t> Load(uint64_t address, unsigned size = 8) const;
};

enum class CallFrameStep : uint8_t {
  kCaller,       // the registers are the caller's
  kInterrupted,  // they are those of the code that a signal interrupted
  kOutermost,    // there is no caller
  kNoRow,        // nothing is known about this place
  kOutside,      // a register is in memory that was not given
};

class CallFrames {
 public:
  static constexpr size_t kMaxRows = 1 << 18;

  explicit CallFrames(ElfFile file, std::optional<ElfFile> debug_file = {});
  CallFrames(CallFrames&&) noexcept;
  ~CallFrames();

  // Where `registers.pc` stands in the module's file; a return address is one
  // beyond its call.
  CallFrameStep Step(uint64_t file_offset, const CallFrameMemory& memory,
                     CallFrameRegisters& registers);
  // Whether at this place the return address is still in its register.
  bool ReturnsByRegister(uint64_t file_offset);

 private:
  struct Row;
  struct Tables;
  const Row& RowAt(uint64_t file_offset);

  std::unique_ptr<Tables> tables_;
  std::unordered_map<uint64_t, std::unique_ptr<const Row>> rows_;
};

}  // namespace culprit::symbol
