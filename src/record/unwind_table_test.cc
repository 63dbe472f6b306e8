// SPDX-License-Identifier: Apache-2.0
//
// The table compiler against libdw, which reads the same .eh_frame by code of its
// own: the rule of every address that begins a row of either.
#include "record/unwind_table.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "base/test_folder.h"

namespace culprit::record::TEST_FILE {
namespace {

namespace fs = std::filesystem;

std::string RuleText(const UnwindRule& rule) {
  return "cfa " + std::to_string(rule.cfa) + " " + std::to_string(rule.cfa_offset) + " return " +
         std::to_string(rule.return_place) + " " + std::to_string(rule.return_offset) + " frame " +
         std::to_string(rule.frame_place) + " " + std::to_string(rule.frame_offset) + " extra " +
         std::to_string(rule.extra);
}

struct RegisterNames {
  int stack;
  int frame;
  int return_address;
  bool has_link;
};

RegisterNames NamesOf(const symbol::ElfFile& file) {
  if (file.machine() == EM_AARCH64) return {31, 29, 30, true};
  return {7, 6, 16, false};
}

// A register plus an offset, in any of the ways in which libdw says so.
bool IsBase(const Dwarf_Op& op, int& number, int64_t& offset) {
  if (op.atom == DW_OP_bregx) {
    number = static_cast<int>(op.number);
    offset = static_cast<int64_t>(op.number2);
    return true;
  }
  if (op.atom < DW_OP_breg0 || op.atom > DW_OP_breg31) return false;
  number = op.atom - DW_OP_breg0;
  offset = static_cast<int64_t>(op.number);
  return true;
}

UnwindRule CfaOf(const Dwarf_Op* ops, size_t count, const RegisterNames& names) {
  int number = -1;
  int64_t offset = 0;
  if (count == 0 || !IsBase(ops[0], number, offset)) return {};
  if (number != names.stack && number != names.frame) return {};
  const bool stack = number == names.stack;
  UnwindRule rule = {};
  rule.cfa_offset = static_cast<int32_t>(offset);
  if (count == 1) {
    rule.cfa = stack ? kCfaStack : kCfaFrame;
  } else if (count == 2 && ops[1].atom == DW_OP_plus_uconst) {
    rule.cfa = stack ? kCfaStack : kCfaFrame;
    rule.cfa_offset += static_cast<int32_t>(ops[1].number);
  } else if (count == 2 && ops[1].atom == DW_OP_deref) {
    rule.cfa = stack ? kCfaStackDeref : kCfaFrameDeref;
  } else if (count == 3 && ops[1].atom == DW_OP_deref && ops[2].atom == DW_OP_plus_uconst) {
    rule.cfa = stack ? kCfaStackDeref : kCfaFrameDeref;
    rule.extra = static_cast<uint8_t>(ops[2].number);
  } else if (count == 9 && stack && ops[1].atom == DW_OP_breg16 && ops[2].atom == DW_OP_lit15 &&
             ops[3].atom == DW_OP_and && ops[5].atom == DW_OP_ge && ops[6].atom == DW_OP_lit3 &&
             ops[7].atom == DW_OP_shl && ops[8].atom == DW_OP_plus) {
    rule.cfa = kCfaPlt;
    rule.extra = static_cast<uint8_t>(ops[4].atom - DW_OP_lit0);
  } else {
    return {};
  }
  return rule;
}

struct OraclePlace {
  uint8_t kind = kPlaceUnknown;
  int32_t offset = 0;
};

OraclePlace PlaceOf(Dwarf_Frame* frame, int number, const RegisterNames& names) {
  Dwarf_Op memory[3];
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0) return {};
  if (count == 0) return {.kind = ops == nullptr ? kPlaceSame : kPlaceEnd};
  if (count == 1 && ops[0].atom == DW_OP_call_frame_cfa) return {.kind = kPlaceCfa};
  if (count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst) {
    return {.kind = kPlaceCfa, .offset = static_cast<int32_t>(ops[1].number)};
  }
  int base = -1;
  int64_t offset = 0;
  if (count == 1 && IsBase(ops[0], base, offset) && base == names.frame) {
    return {.kind = kPlaceFrame, .offset = static_cast<int32_t>(offset)};
  }
  return {};
}

UnwindRule OracleRule(Dwarf_Frame* frame, bool is_signal, const RegisterNames& names) {
  if (is_signal) return {.cfa = kCfaSignal};
  const OraclePlace back = PlaceOf(frame, names.return_address, names);
  if (back.kind == kPlaceEnd) return {.cfa = kCfaStack, .return_place = kPlaceEnd};
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0) return {};
  UnwindRule rule = CfaOf(ops, count, names);
  if (rule.cfa == kCfaUnknown || back.kind == kPlaceUnknown) return {};
  if (back.kind == kPlaceSame && !names.has_link) return {};
  OraclePlace saved = PlaceOf(frame, names.frame, names);
  if (saved.kind == kPlaceEnd) saved.kind = kPlaceSame;  // undefined
  rule.return_place = back.kind;
  rule.return_offset = back.offset;
  rule.frame_place = saved.kind;
  rule.frame_offset = saved.offset;
  return rule;
}

struct Compared {
  uint64_t functions = 0;
  uint64_t rows = 0;     // of libdw
  uint64_t unknown = 0;  // of these, by rules that are not understood
  uint64_t different = 0;
  std::string first;
};

struct CloseElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
struct EndCfi {
  void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
};

// libdw's own answer for every row of a function, and ours at its first and last
// address. Ours may not change in between.
void CompareFunction(Dwarf_CFI* cfi, const UnwindTable& table, const CfiFunction& function,
                     const RegisterNames& names, Compared& compared) {
  ++compared.functions;
  uint64_t address = function.start;
  while (address < function.end) {
    Dwarf_Frame* frame = nullptr;
    if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) return;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    bool is_signal = false;
    dwarf_frame_info(frame, &start, &end, &is_signal);
    if (end <= address) end = function.end;
    const UnwindRule expected = OracleRule(frame, is_signal, names);
    free(frame);
    ++compared.rows;
    if (expected == UnwindRule{}) ++compared.unknown;
    for (const uint64_t at : {address, address + (end - address) / 2, end - 1}) {
      const UnwindRule& rule = table.At(at);
      if (rule == expected) continue;
      ++compared.different;
      if (compared.first.empty()) {
        compared.first = std::to_string(at) + ": " + RuleText(rule) + " not " + RuleText(expected);
      }
      break;
    }
    address = end;
  }
}

Compared CompareWithLibdw(const symbol::ElfFile& file) {
  Compared compared;
  const Result<UnwindTable> table = UnwindTable::Build(file);
  if (!table.ok()) return compared;
  EXPECT_EQ(table.value().bad(), 0u) << file.path();
  const std::unique_ptr<Dwarf_CFI, EndCfi> cfi(dwarf_getcfi_elf(file.handle()));
  const symbol::Section* section = file.FindSection(".eh_frame");
  if (cfi == nullptr || section == nullptr) return compared;
  const RegisterNames names = NamesOf(file);
  ReadCfi({.bytes = file.SectionBytes(*section),
           .address = section->header.sh_addr,
           .machine = names.has_link ? UnwindMachine::kArm64 : UnwindMachine::kX86_64},
          [&](const CfiFunction& function) {
            CompareFunction(cfi.get(), table.value(), function, names, compared);
          });
  return compared;
}

Compared ExpectEqual(const std::string& path) {
  const Result<symbol::ElfFile> file = symbol::ElfFile::Open(path);
  if (!file.ok()) return {};
  const Compared compared = CompareWithLibdw(file.value());
  EXPECT_EQ(compared.different, 0u) << path << " " << compared.first;
  // Rules that we do not understand must stay rare.
  EXPECT_LE(compared.unknown * 100, compared.rows) << path;
  return compared;
}

TEST(UnwindTable, EqualsLibdwOnSystemBinaries) {
  uint64_t files = 0;
  uint64_t rows = 0;
  std::set<std::string> seen;
  for (const char* pattern :
       {"/lib/aarch64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
        "/bin/bash", "/usr/bin/perf", "/usr/sbin/nginx", "/proc/self/exe",
        "/lib/ld-linux-aarch64.so.1", "/lib64/ld-linux-x86-64.so.2",
        "/usr/lib/aarch64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}) {
    std::error_code code;
    const fs::path path = fs::canonical(pattern, code);
    if (code || !seen.insert(path.string()).second) continue;
    const Compared compared = ExpectEqual(path.string());
    if (compared.rows == 0) continue;
    ++files;
    rows += compared.rows;
  }
  RecordProperty("rows", static_cast<int64_t>(rows));
  EXPECT_GE(files, 2u);
  EXPECT_GT(rows, 5000u);
}

// A tree of x86-64 binaries, for machines that are not of that kind:
// CULPRIT_X86_64_ROOT=FOLDER with unpacked packages.
TEST(UnwindTable, EqualsLibdwOnBinariesOfTheOtherArchitecture) {
  const char* root = getenv("CULPRIT_X86_64_ROOT");
  if (root == nullptr) GTEST_SKIP() << "CULPRIT_X86_64_ROOT names no folder of x86-64 binaries";
  uint64_t files = 0;
  uint64_t rows = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    const Compared compared = ExpectEqual(entry.path().string());
    if (compared.rows == 0) continue;
    ++files;
    rows += compared.rows;
  }
  RecordProperty("rows", static_cast<int64_t>(rows));
  EXPECT_GT(files, 0u);
  EXPECT_GT(rows, 5000u);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
