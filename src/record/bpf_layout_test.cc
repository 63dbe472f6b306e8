// SPDX-License-Identifier: Apache-2.0
//
// The kernel programs as the compiler has laid them out, against a rule of kernels before 6.8
// (Debian 12 has 6.1): a loop must be closed by a jump. Where the last block of a loop stands
// before its head and just goes on into it, such kernels refuse the program ("back-edge"),
// though it is right; newer ones, on which it is written, say nothing.
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace culprit::record {
namespace {

enum class Seen { kNo, kOnTheWay, kDone };

bool IsJump(const bpf_insn& instruction) {
  const int kind = BPF_CLASS(instruction.code);
  return kind == BPF_JMP || kind == BPF_JMP32;
}
bool IsExit(const bpf_insn& instruction) { return instruction.code == (BPF_JMP | BPF_EXIT); }
bool IsCall(const bpf_insn& instruction) { return instruction.code == (BPF_JMP | BPF_CALL); }
bool IsGoto(const bpf_insn& instruction) { return instruction.code == (BPF_JMP | BPF_JA); }

// The walk over all ways that such kernels make, and the first instruction that leads back
// without being a jump.
class Walk {
 public:
  explicit Walk(std::span<const bpf_insn> code) : code_(code), seen_(code.size(), Seen::kNo) {}

  std::optional<size_t> BackEdge() {
    Visit(0);
    while (!way_.empty() && !found_) {
      const size_t at = way_.back();
      if (Step(at)) continue;
      seen_[at] = Seen::kDone;
      way_.pop_back();
    }
    return found_;
  }

 private:
  void Visit(size_t to) {
    seen_[to] = Seen::kOnTheWay;
    way_.push_back(to);
  }
  // True if there was somewhere to go.
  bool Go(size_t from, size_t to, bool may_lead_back) {
    if (to >= code_.size() || seen_[to] == Seen::kDone) return false;
    if (seen_[to] == Seen::kOnTheWay) {
      if (!may_lead_back) found_ = from;
      return false;
    }
    Visit(to);
    return true;
  }
  bool Step(size_t at) {
    const bpf_insn& instruction = code_[at];
    const auto target = static_cast<size_t>(static_cast<int64_t>(at) + 1 + instruction.off);
    if (!IsJump(instruction) || IsCall(instruction)) return Go(at, at + 1, false);
    if (IsExit(instruction)) return false;
    if (IsGoto(instruction)) return Go(at, target, true);
    return Go(at, at + 1, true) || Go(at, target, true);
  }

  std::span<const bpf_insn> code_;
  std::vector<Seen> seen_;
  std::vector<size_t> way_;
  std::optional<size_t> found_;
};

struct Function {
  std::string name;
  std::vector<bpf_insn> code;
};

std::vector<Function> FunctionsOf(const std::string& path) {
  std::vector<Function> functions;
  elf_version(EV_CURRENT);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  Elf* elf = elf_begin(file, ELF_C_READ, nullptr);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_SYMTAB) continue;
    const Elf_Data* symbols = elf_getdata(section, nullptr);
    for (size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(const_cast<Elf_Data*>(symbols), static_cast<int>(i), &symbol) == nullptr ||
          GELF_ST_TYPE(symbol.st_info) != STT_FUNC) {
        continue;
      }
      const Elf_Data* code = elf_getdata(elf_getscn(elf, symbol.st_shndx), nullptr);
      if (code == nullptr || symbol.st_value + symbol.st_size > code->d_size) continue;
      Function function;
      function.name = elf_strptr(elf, header.sh_link, symbol.st_name);
      function.code.resize(symbol.st_size / sizeof(bpf_insn));
      std::memcpy(function.code.data(), static_cast<const char*>(code->d_buf) + symbol.st_value,
                  function.code.size() * sizeof(bpf_insn));
      functions.push_back(std::move(function));
    }
  }
  elf_end(elf);
  close(file);
  return functions;
}

bpf_insn Operation() { return {.code = BPF_ALU64 | BPF_ADD | BPF_K, .imm = 1}; }
bpf_insn Goto(int16_t off) { return {.code = BPF_JMP | BPF_JA, .off = off}; }
bpf_insn GotoIfZero(int16_t off) { return {.code = BPF_JMP | BPF_JEQ | BPF_K, .off = off}; }
bpf_insn Exit() { return {.code = BPF_JMP | BPF_EXIT}; }

TEST(BpfLayout, ALoopThatAJumpClosesIsAccepted) {
  const std::vector<bpf_insn> code = {Operation(), GotoIfZero(2), Operation(), Goto(-3), Exit()};
  EXPECT_EQ(Walk(code).BackEdge(), std::nullopt);
}

TEST(BpfLayout, ALoopWhoseLastBlockGoesOnIntoItsHeadIsNot) {
  const std::vector<bpf_insn> code = {Goto(1),       Operation(), Operation(),
                                      GotoIfZero(1), Goto(-4),    Exit()};
  EXPECT_EQ(Walk(code).BackEdge(), 1u);
}

#if defined(CULPRIT_BPF_FOLDER)
constexpr const char* kFolder = CULPRIT_BPF_FOLDER;
#else
constexpr const char* kFolder = nullptr;
#endif

TEST(BpfLayout, OlderKernelsAcceptTheLoopsOfThePrograms) {
  if (kFolder == nullptr) GTEST_SKIP() << "a build without the BPF engine";
  for (const std::string arch : {"x86", "arm64"}) {
    const std::vector<Function> functions =
        FunctionsOf(std::string(kFolder) + "/engine." + arch + ".o");
    EXPECT_GT(functions.size(), 20u);
    for (const Function& function : functions) {
      const std::optional<size_t> edge = Walk(function.code).BackEdge();
      EXPECT_EQ(edge, std::nullopt) << function.name << " (" << arch << "), instruction " << *edge;
    }
  }
}

}  // namespace
}  // namespace culprit::record
