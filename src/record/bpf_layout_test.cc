// SPDX-License-Identifier: Apache-2.0
//
// The kernel programs as the compiler has laid them out, against two rules of older kernels
// (Debian 12 has 6.1) of which newer ones, on which they are written, say nothing:
//
// - Before 6.8 a loop must be closed by a jump. Where its last block stands before its head and
//   just goes on into it the program is refused ("back-edge"), though it is right.
// - Before 6.13 all functions that have been called and not returned have 512 bytes of stack
//   together, each in steps of 32.
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace culprit::record::TEST_FILE {
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

// By its section and where it begins there, in bytes.
using Place = std::pair<size_t, uint64_t>;

struct Function {
  std::string name;
  bool is_program = false;  // else it is called by some
  std::vector<bpf_insn> code;
  std::vector<Place> calls;
};
using Functions = std::map<Place, Function>;

// An object as clang writes it.
class Object {
 public:
  explicit Object(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    elf_version(EV_CURRENT);
    elf_ = elf_begin(file_, ELF_C_READ, nullptr);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() {
    elf_end(elf_);
    close(file_);
  }

  Functions Read() {
    ForEachSection(SHT_SYMTAB, [this](Elf_Scn* section, const GElf_Shdr& header) {
      ReadFunctions(section, header);
    });
    ForEachSection(SHT_REL, [this](Elf_Scn* section, const GElf_Shdr& header) {
      ReadTargets(section, header);
    });
    for (auto& [place, function] : functions_) AddCalls(place, function);
    return std::move(functions_);
  }

 private:
  template <typename Use>
  void ForEachSection(uint32_t type, Use use) {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr && header.sh_type == type) use(section, header);
    }
  }
  std::string SectionName(size_t index) {
    GElf_Shdr header;
    size_t names = 0;
    elf_getshdrstrndx(elf_, &names);
    gelf_getshdr(elf_getscn(elf_, index), &header);
    return elf_strptr(elf_, names, header.sh_name);
  }
  void ReadFunctions(Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* data = elf_getdata(section, nullptr);
    for (size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol;
      gelf_getsym(data, static_cast<int>(i), &symbol);
      symbols_.push_back(symbol);
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const Elf_Data* code = elf_getdata(elf_getscn(elf_, symbol.st_shndx), nullptr);
      if (code == nullptr || symbol.st_value + symbol.st_size > code->d_size) continue;
      Function& function = functions_[{symbol.st_shndx, symbol.st_value}];
      function.name = elf_strptr(elf_, header.sh_link, symbol.st_name);
      function.is_program = SectionName(symbol.st_shndx) != ".text";
      function.code.resize(symbol.st_size / sizeof(bpf_insn));
      std::memcpy(function.code.data(), static_cast<const char*>(code->d_buf) + symbol.st_value,
                  function.code.size() * sizeof(bpf_insn));
    }
  }
  // Of calls into another section.
  void ReadTargets(Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* data = elf_getdata(section, nullptr);
    for (size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Rel relocation;
      gelf_getrel(data, static_cast<int>(i), &relocation);
      targets_[{header.sh_info, relocation.r_offset}] = symbols_[GELF_R_SYM(relocation.r_info)];
    }
  }
  void AddCalls(Place place, Function& function) {
    for (size_t i = 0; i < function.code.size(); ++i) {
      const bpf_insn& instruction = function.code[i];
      if (!IsCall(instruction) || instruction.src_reg != BPF_PSEUDO_CALL) continue;
      const uint64_t at = place.second + i * sizeof(bpf_insn);
      const auto relative = static_cast<uint64_t>((int64_t{instruction.imm} + 1) * 8);
      const auto target = targets_.find({place.first, at});
      if (target == targets_.end()) {
        function.calls.push_back({place.first, at + relative});
      } else if (GELF_ST_TYPE(target->second.st_info) == STT_SECTION) {
        function.calls.push_back({target->second.st_shndx, relative});
      } else {
        function.calls.push_back({target->second.st_shndx, target->second.st_value});
      }
    }
  }

  int file_;
  Elf* elf_ = nullptr;
  std::vector<GElf_Sym> symbols_;
  std::map<Place, GElf_Sym> targets_;
  Functions functions_;
};

bool IsCopyOfFramePointer(const bpf_insn& instruction) {
  return instruction.code == (BPF_ALU64 | BPF_MOV | BPF_X) && instruction.src_reg == BPF_REG_10;
}

// What a function uses of the stack: how far below the frame pointer it reads, writes and points.
int StackBytes(const std::vector<bpf_insn>& code) {
  int bytes = 1;
  uint32_t copies = 0;  // registers that may be the frame pointer
  for (const bpf_insn& instruction : code) {
    const int kind = BPF_CLASS(instruction.code);
    const bool stores = kind == BPF_ST || kind == BPF_STX;
    if ((stores && instruction.dst_reg == BPF_REG_10) ||
        (kind == BPF_LDX && instruction.src_reg == BPF_REG_10)) {
      bytes = std::max(bytes, -instruction.off);
    }
    if (IsCopyOfFramePointer(instruction)) {
      copies |= 1u << instruction.dst_reg;
    } else if (instruction.code == (BPF_ALU64 | BPF_ADD | BPF_K) &&
               (copies >> instruction.dst_reg & 1) != 0) {
      bytes = std::max(bytes, -instruction.imm);
      copies &= ~(1u << instruction.dst_reg);
    }
  }
  return (bytes + 31) / 32 * 32;
}

// Of a function and all that it calls, and who they are.
std::pair<int, std::string> DeepestCalls(const Functions& functions, const Function& function) {
  std::pair<int, std::string> deepest;
  for (const Place& call : function.calls) {
    const auto called = functions.find(call);
    if (called == functions.end()) continue;  // the kernel's own
    deepest = std::max(deepest, DeepestCalls(functions, called->second));
  }
  const int own = StackBytes(function.code);
  return {own + deepest.first, function.name + " " + std::to_string(own) + ", " + deepest.second};
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

class Programs : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (kFolder == nullptr) GTEST_SKIP() << "a build without the BPF engine";
    functions_ = Object(std::string(kFolder) + "/engine." + GetParam() + ".o").Read();
    ASSERT_GT(functions_.size(), 20u);
  }
  Functions functions_;
};

TEST_P(Programs, HaveLoopsThatOlderKernelsAccept) {
  for (const auto& [place, function] : functions_) {
    const std::optional<size_t> edge = Walk(function.code).BackEdge();
    EXPECT_FALSE(edge.has_value()) << function.name << ", instruction " << edge.value_or(0);
  }
}

TEST_P(Programs, HaveRoomOnTheStackOfOlderKernels) {
  int most = 0;
  for (const auto& [place, function] : functions_) {
    if (!function.is_program) continue;
    const auto [bytes, who] = DeepestCalls(functions_, function);
    EXPECT_LE(bytes, 512) << who;
    most = std::max(most, bytes);
  }
  // They are known to call each other.
  EXPECT_GT(most, 300);
}

INSTANTIATE_TEST_SUITE_P(BpfLayout, Programs, testing::Values("x86", "arm64"));

}  // namespace
}  // namespace culprit::record::TEST_FILE
