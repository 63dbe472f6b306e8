// SPDX-License-Identifier: Apache-2.0
// Trampolines for every function of real binaries, of both architectures, read
// back by independent disassemblers: what was displaced must mean the same.
#include "guard/runtime/trampoline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "guard/runtime/arm64_instruction.h"
#include "guard/runtime/arm64_trampoline.h"
#include "guard/runtime/cross_jumps.h"
#include "guard/runtime/test_elf_image.h"
#include "guard/runtime/x86_instruction.h"
#include "guard/runtime/x86_trampoline.h"
#if defined(CULPRIT_HAVE_ZYDIS)
#include <Zydis/Zydis.h>
#endif
#if defined(CULPRIT_HAVE_CAPSTONE)
#include <capstone/capstone.h>
#endif

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr uint64_t kTrampoline = 0x4000000;  // within reach of all test binaries

// Only where there is a disassembler.
[[maybe_unused]] uint32_t WordAt(std::span<const uint8_t> code, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, code.data() + offset, 4);
  return word;
}

struct Written {
  EntryPatch patch;
  std::vector<uint8_t> code;
};

Written WriteFor(const EntrySite& site, bool is_x86, uint64_t at = kTrampoline) {
  Written written;
  written.code.resize(kMaxTrampolineBytes);
  CodeBuffer out(written.code, at);
  written.patch =
      is_x86 ? x86::WriteTrampoline(site, {}, {}, out) : arm64::WriteTrampoline(site, {}, {}, out);
  written.code.resize(out.size());
  return written;
}

#if defined(CULPRIT_HAVE_CAPSTONE)

class Capstone {
 public:
  Capstone() { cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle_); }
  ~Capstone() { cs_close(&handle_); }
  std::string Text(uint32_t word, uint64_t at) const {
    cs_insn* instruction = nullptr;
    if (cs_disasm(handle_, reinterpret_cast<const uint8_t*>(&word), 4, at, 1, &instruction) != 1) {
      return "";
    }
    const std::string text = std::string(instruction->mnemonic) + " " + instruction->op_str;
    cs_free(instruction, 1);
    return text;
  }

 private:
  csh handle_ = 0;
};

// The last number of a disassembled instruction.
uint64_t LastNumber(const std::string& text) {
  const size_t hash = text.rfind('#');
  return hash == std::string::npos ? 0 : std::strtoull(text.c_str() + hash + 1, nullptr, 0);
}

// The constant that movz and movk put into a register, and how many they are.
uint64_t Constant(std::span<const uint8_t> code, uint32_t reg, size_t& words) {
  uint64_t value = 0;
  for (words = 0; words * 4 + 4 <= code.size(); ++words) {
    const uint32_t word = WordAt(code, words * 4);
    const bool first = (word & 0xff800000) == 0xd2800000, next = (word & 0xff800000) == 0xf2800000;
    if ((word & 31) != reg || !(words == 0 ? first : next)) break;
    value |= uint64_t{word >> 5 & 0xffff} << 16 * (word >> 21 & 3);
  }
  return value;
}

// Empty: `code` at `to` does what `word` at `at` does.
std::string Mistake(const Capstone& capstone, uint32_t word, uint64_t at,
                    std::span<const uint8_t> code, uint64_t to) {
  const std::string text = capstone.Text(word, at);
  const std::string name = text.substr(0, text.find(' '));
  size_t words = 0;
  if (name == "adr" || name == "adrp") {
    if ((word & 31) == 31) return code.empty() ? "" : "a write to xzr became something";
    const uint64_t value = Constant(code, word & 31, words);
    return value == LastNumber(text) && words * 4 == code.size() ? "" : text;
  }
  if ((word & 0x3b000000) == 0x18000000) {  // literal loads: capstone names them as other loads
    const uint64_t value = Constant(code, 17, words);
    const std::string load = capstone.Text(WordAt(code, words * 4), 0);
    const std::string operand = text.substr(0, text.rfind('#'));
    return value == LastNumber(text) && load == operand + "[x17]" ? "" : text + " | " + load;
  }
  if (name == "b" || name == "bl") {
    if (name == "bl" && Constant(code, 30, words) != at + 4) return "link of " + text;
    const std::string jump = capstone.Text(WordAt(code, words * 4), to + words * 4);
    return jump == "b " + text.substr(text.find('#')) ? "" : text + " | " + jump;
  }
  if (name.rfind("b.", 0) == 0 || name == "cbz" || name == "cbnz" || name == "tbz" ||
      name == "tbnz") {
    const std::string test = capstone.Text(WordAt(code, 0), 0);
    const std::string over = capstone.Text(WordAt(code, 4), 4);
    const std::string jump = capstone.Text(WordAt(code, 8), to + 8);
    const size_t target = text.rfind('#');
    const bool same = test == text.substr(0, target) + "#8" && over == "b #0xc" &&
                      jump == "b " + text.substr(target);
    return same ? "" : text + " | " + test + " | " + over + " | " + jump;
  }
  if (name == "blr") return "";  // run by the patcher's tests
  return code.size() == 4 && WordAt(code, 0) == word ? "" : text;
}

TEST(Trampoline, MovedArm64InstructionsMeanTheSame) {
  const Capstone capstone;
  std::mt19937 random(2);
  const struct {
    uint32_t base, random;
  } classes[] = {{0x10000000, 0x60ffffff}, {0x90000000, 0x60ffffff}, {0x14000000, 0x03ffffff},
                 {0x94000000, 0x03ffffff}, {0x54000000, 0x00ffffef}, {0x34000000, 0x81ffffff},
                 {0x36000000, 0x81ffffff}, {0x18000000, 0x00ffffff}, {0x58000000, 0x00ffffff},
                 {0x98000000, 0x00ffffff}, {0xd8000000, 0x00ffffff}, {0x1c000000, 0x00ffffff},
                 {0x5c000000, 0x00ffffff}, {0x9c000000, 0x00ffffff}, {0, 0xffffffff}};
  uint64_t moved = 0;
  for (const auto& kind : classes) {
    for (int round = 0; round < 20000; ++round) {
      uint32_t word = kind.base | (static_cast<uint32_t>(random()) & kind.random);
      // Branches within the reach of both places.
      if (kind.base == 0x14000000 || kind.base == 0x94000000) word &= ~0x01800000u;
      const uint64_t at = 0x8000000 + (random() % 0x100000) * 4;
      if (capstone.Text(word, at).empty()) continue;
      uint8_t bytes[64];
      CodeBuffer out(bytes, 0x7800000);
      if (!arm64::Relocate(word, at, out)) continue;
      ++moved;
      ASSERT_EQ(Mistake(capstone, word, at, {bytes, out.size()}, 0x7800000), "")
          << capstone.Text(word, at);
    }
  }
  EXPECT_GT(moved, 200000u);
}

std::string CheckArm64(const Capstone& capstone, const EntrySite& site, const Written& written) {
  const uint64_t at = site.entry + written.patch.offset;
  const std::string jump = capstone.Text(WordAt(written.patch.jump, 0), at);
  if (LastNumber(jump) != kTrampoline || jump.rfind("b ", 0) != 0) return jump;
  if (written.code.size() < 4) return "no way back";
  const size_t body = written.code.size() - 4;
  const std::string back = capstone.Text(WordAt(written.code, body), kTrampoline + body);
  if (LastNumber(back) != at + 4 || back.rfind("b ", 0) != 0) return back;
  return Mistake(capstone, WordAt(site.code, written.patch.offset), at,
                 std::span(written.code).first(body), kTrampoline);
}

#endif  // CULPRIT_HAVE_CAPSTONE

#if defined(CULPRIT_HAVE_ZYDIS)

class Zydis {
 public:
  Zydis() {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter_, ZYDIS_FORMATTER_STYLE_INTEL);
  }
  // With absolute addresses; "" and length 0: no instruction.
  std::string Text(std::span<const uint8_t> code, uint64_t at, size_t& length) const {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    length = 0;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder_, code.data(), code.size(), &instruction, operands))) {
      return "";
    }
    length = instruction.length;
    char text[256] = {};
    ZydisFormatterFormatInstruction(&formatter_, &instruction, operands,
                                    instruction.operand_count_visible, text, sizeof(text), at,
                                    nullptr);
    return text;
  }

 private:
  ZydisDecoder decoder_;
  ZydisFormatter formatter_;
};

// A text without its first word.
std::string Operands(const std::string& text) { return text.substr(text.find(' ') + 1); }

// A call over a byte, whose return address is exchanged, then a jump to where the call went.
std::string CheckCall(const Zydis& zydis, const std::string& call, uint64_t next,
                      std::span<const uint8_t> code, uint64_t at, size_t& used) {
  size_t length = 0;
  constexpr size_t kPushBytes = 23;
  if (code.size() < kPushBytes + 2) return "no push";
  const uint8_t begin[] = {0xe8, 1, 0, 0, 0, 0xcc, 0x50, 0x48, 0xb8};
  const uint8_t end[] = {0x48, 0x89, 0x44, 0x24, 8, 0x58};
  if (!std::equal(std::begin(begin), std::end(begin), code.begin()) ||
      !std::equal(std::begin(end), std::end(end), code.begin() + 17)) {
    return "no push";
  }
  const uint64_t low = WordAt(code, 9), high = WordAt(code, 13);
  if ((high << 32 | low) != next) return "another return address";
  const std::string jump = zydis.Text(code.subspan(kPushBytes), at + kPushBytes, length);
  used = kPushBytes + length;
  return jump.rfind("jmp", 0) == 0 && Operands(jump) == Operands(call) ? "" : call + " | " + jump;
}

std::string CheckX86(const Zydis& zydis, const EntrySite& site, const Written& written) {
  const uint64_t entry = site.entry + written.patch.offset;
  size_t length = 0;
  char target[32];
  std::snprintf(target, sizeof(target), "jmp 0x%016llX",
                static_cast<unsigned long long>(kTrampoline));
  const std::string jump = zydis.Text({written.patch.jump, 5}, entry, length);
  if (jump != target) return jump;
  const std::span<const uint8_t> code = written.code;
  size_t original = 0, moved = 0;
  bool ends = false;
  while (original < 5 && !ends) {
    const std::string text =
        zydis.Text(site.code.subspan(written.patch.offset + original), entry + original, length);
    original += length;
    ends = text.rfind("jmp", 0) == 0 || text.rfind("ret", 0) == 0 || text.rfind("ud", 0) == 0 ||
           text == "hlt" || text == "int3";
    size_t used = 0;
    if (text.find("call") == 0) {
      const std::string mistake =
          CheckCall(zydis, text, entry + original, code.subspan(moved), kTrampoline + moved, used);
      if (!mistake.empty()) return mistake;
    } else {
      const std::string copy = zydis.Text(code.subspan(moved), kTrampoline + moved, used);
      if (copy != text) return text + " | " + copy;
    }
    moved += used;
  }
  if (ends) return moved == code.size() ? "" : "code behind the end";
  const uint64_t next = entry + original;
  std::snprintf(target, sizeof(target), "jmp 0x%016llX", static_cast<unsigned long long>(next));
  const std::string back = zydis.Text(code.subspan(moved), kTrampoline + moved, length);
  return back == target && moved + length == code.size() ? "" : back;
}

#endif  // CULPRIT_HAVE_ZYDIS

std::string Check([[maybe_unused]] const EntrySite& site, [[maybe_unused]] const Written& written,
                  bool is_x86) {
  if (is_x86) {
#if defined(CULPRIT_HAVE_ZYDIS)
    static const Zydis zydis;
    return CheckX86(zydis, site, written);
#endif
  } else {
#if defined(CULPRIT_HAVE_CAPSTONE)
    static const Capstone capstone;
    return CheckArm64(capstone, site, written);
#endif
  }
  return "";
}

void PrintShare(const std::string& path, bool is_x86, const size_t (&count)[kPatchOutcomes],
                size_t entries) {
  std::printf("  %s (%s): %zu of %zu entries patchable (%.2f %%)", path.c_str(),
              is_x86 ? "x86-64" : "arm64", count[0], entries,
              100.0 * static_cast<double>(count[0]) / static_cast<double>(entries));
  for (uint32_t i = 1; i < kPatchOutcomes; ++i) {
    if (count[i] != 0) std::printf(", %zu %s", count[i], Name(static_cast<PatchOutcome>(i)));
  }
  std::printf("\n");
}

TEST(Trampoline, NearlyAllFunctionsOfRealBinariesCanBePatched) {
  size_t binaries = 0;
  for (const std::string& path : TestBinaries()) {
    const TestElfImage image(path);
    MappedArray<FunctionStart> starts;
    if (!image.good() ||
        ReadFunctionStarts(image.segments(), image.eh_frame_hdr(), starts) != StartsState::kRead) {
      continue;
    }
    ++binaries;
    MappedArray<uint64_t> jumps;
    if (image.is_x86()) {
      ASSERT_TRUE(FindCrossJumps(image.segments(), starts.span(), starts.span(), {}, jumps));
    }
    size_t count[kPatchOutcomes] = {}, entries = 0, wrong = 0;
    for (const FunctionStart& start : starts) {
      if (start.flags != 0) continue;
      ++entries;
      EntrySite site;
      site.entry = start.entry;
      site.code = image.Code(start.entry, start.size);
      const uint64_t end = start.entry + start.size;
      site.padding = image.Code(end, (16 - end % 16) % 16);
      site.jumps = jumps.span();
      const Written written = WriteFor(site, image.is_x86());
      ++count[static_cast<uint32_t>(written.patch.outcome)];
      if (written.patch.outcome != PatchOutcome::kPatched) continue;
      const std::string mistake = Check(site, written, image.is_x86());
      if (!mistake.empty() && ++wrong < 10) {
        ADD_FAILURE() << path << " at " << std::hex << start.entry << ": " << mistake;
      }
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(count[0] * 100, entries * 96) << path;
    PrintShare(path, image.is_x86(), count, entries);
  }
  if (binaries == 0) GTEST_SKIP() << "none of the binaries is installed";
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
