// SPDX-License-Identifier: Apache-2.0
// User stacks of `perf record --call-graph dwarf`: an x86-64 one laid out by
// hand, and recordings made here of a program whose calls are known, held
// against that knowledge and against `perf script`.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/perf_data_builder.h"
#include "import/stored_bytes.h"
#include "symbol/elf_file.h"
#include "symbol/test_binary.h"

namespace culprit::import_::TEST_FILE {
namespace {

using symbol::TestBinary;
using trace::EventKind;

constexpr std::string_view kNoModule =
    "user stack cut at a module that is not on this machine (see --sysroot)";
constexpr std::string_view kStackEnds =
    "user stack longer than its recorded part (perf record --call-graph dwarf,BYTES)";
constexpr std::string_view kNotRead = "user stack not unwound: no binaries are to be read";

// Lengths of the instructions are fixed, so return addresses are known.
constexpr char kAssembly[] = R"(
  .text
  .globl inner, middle, outer
  .type inner, @function
inner:
  .cfi_startproc
  nop
  ret
  .cfi_endproc
  .size inner, .-inner
  .type middle, @function
middle:
  .cfi_startproc
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  subq $32, %rsp
  .cfi_adjust_cfa_offset 32
  call inner
  addq $32, %rsp
  .cfi_adjust_cfa_offset -32
  popq %rbx
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size middle, .-middle
  .type outer, @function
outer:
  .cfi_startproc
  .cfi_undefined %rip
  subq $8, %rsp
  call middle
  ud2
  .cfi_endproc
  .size outer, .-outer
)";
constexpr uint64_t kMiddleReturn = 10;  // push 1, sub 4, call 5
constexpr uint64_t kOuterReturn = 9;    // sub 4, call 5
constexpr uint64_t kBase = 0x7f1234000000;
constexpr uint64_t kStackPointer = 0x7ffc00001000;
constexpr uint64_t kX86Mask = 0xff0fff;

class X86UserStackTest : public testing::Test {
 protected:
  void SetUp() override {
    binary_.Write("x.s", kAssembly);
    if (!binary_.Works("clang-14 -target x86_64-linux-gnu -nostdlib -shared -fuse-ld=lld "
                       "-Wl,--eh-frame-hdr x.s -o x.so")) {
      GTEST_SKIP() << "no compiler for x86-64";
    }
    auto file = symbol::ElfFile::Open(binary_.Path("x.so"));
    ASSERT_TRUE(file.ok());
    for (const auto& [name, address] : binary_.Functions("x.so")) {
      const auto offset = file.value().OffsetOfAddress(address);
      if (offset) places_[name] = kBase + *offset;
    }
    ASSERT_EQ(places_.count("inner"), 1u);
  }

  static void Word(std::string& bytes, uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  }
  // inner's first instruction, called by middle, called by outer.
  std::string Stack() const {
    std::string stack;
    Word(stack, places_.at("middle") + kMiddleReturn);
    for (uint64_t i = 0; i < 4; ++i) Word(stack, 0xdead0000 + i);
    Word(stack, 0x1111);
    Word(stack, places_.at("outer") + kOuterReturn);
    Word(stack, 0);
    return stack;
  }
  ImportedTrace Import(const std::string& stack, const ImportOptions& options,
                       std::string_view arch = "x86_64",
                       PerfDataBuilder::Layout layout = PerfDataBuilder::Layout::kFile) const {
    std::vector<uint64_t> registers(20, 7);
    registers[7] = kStackPointer;
    registers[8] = places_.at("inner");
    PerfDataBuilder builder;
    builder.UseArch(arch);
    builder.UseUserState({.mask = kX86Mask, .registers = registers, .stack = stack});
    const PerfDataBuilder::Who who = {.time = 1'000'000, .cpu = 0, .pid = 50, .tid = 50};
    builder.Mmap2(who, 2, kBase, 1 << 20, 0, binary_.Path("x.so"));
    builder.Clock({.time = 5'000'000, .cpu = 0, .pid = 50, .tid = 50}, {});
    return ImportTrace(PerfDataImporter(), MemorySource("x", builder.Bytes(layout)), options);
  }
  static std::string StackOf(const ImportedTrace& imported) {
    for (const trace::Event& event : imported.trace.events) {
      if (event.kind == EventKind::kRunning && event.stack.valid()) {
        return imported.Stack(event.stack);
      }
    }
    return {};
  }

  TestBinary binary_;
  std::map<std::string, uint64_t> places_;
};

TEST_F(X86UserStackTest, IsUnwoundOnAnyMachine) {
  const ImportedTrace imported = Import(Stack(), {});
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(StackOf(imported), "x.so!outer;x.so!middle;x.so!inner");
  // It was recorded elsewhere, and does not say which file that was.
  ASSERT_EQ(imported.diagnostics.rows().size(), 1u);
  EXPECT_EQ(imported.diagnostics.rows().begin()->first,
            "module named by a file of this machine, with no build-id to compare");
}

TEST_F(X86UserStackTest, RegistersTellTheMachineWhereTheFileDoesNot) {
  for (const auto layout : {PerfDataBuilder::Layout::kPipe, PerfDataBuilder::Layout::kDied}) {
    const ImportedTrace imported = Import(Stack(), {}, "", layout);
    EXPECT_EQ(StackOf(imported), "x.so!outer;x.so!middle;x.so!inner");
  }
}

TEST_F(X86UserStackTest, AStackCutByItsCopyIsMarkedAtEveryLength) {
  const std::string whole = Stack();
  const size_t outer_return = 6 * 8;
  for (size_t size = 8; size < whole.size(); size += 8) {
    const ImportedTrace imported = Import(whole.substr(0, size), {});
    ASSERT_TRUE(imported.status.ok());
    const bool reaches = size >= outer_return + 8;
    EXPECT_EQ(StackOf(imported),
              reaches ? "x.so!outer;x.so!middle;x.so!inner" : "[truncated];x.so!middle;x.so!inner")
        << size;
    EXPECT_EQ(imported.Counted(kStackEnds), reaches ? 0u : 1u) << size;
  }
}

TEST_F(X86UserStackTest, AModuleThatIsNotHereCutsTheStackAndIsCounted) {
  const ImportedTrace absent = Import(Stack(), {.sysroot = "/nowhere"});
  EXPECT_EQ(absent.Counted(kNoModule), 1u);
  EXPECT_TRUE(StackOf(absent).starts_with("[truncated];x.so!")) << StackOf(absent);
  const ImportedTrace unread = Import(Stack(), {.symbols = false});
  EXPECT_EQ(unread.Counted(kNotRead), 1u);
}

TEST_F(X86UserStackTest, ARegisterSetOfAnotherMachineIsCountedAndTheLeafKept) {
  const ImportedTrace imported = Import(Stack(), {}, "riscv64");
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Counted("user stack of a machine that is neither x86-64 nor arm64"), 1u);
}

// Without frame pointers, with a frame of variable size, recursion and a call
// back from the C library.
constexpr char kProgram[] = R"(
#include <alloca.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static volatile uint64_t sink;
__attribute__((noinline)) uint64_t level_leaf(uint64_t x) {
  for (int i = 0; i < 100000; i++) x = x * 6364136223846793005ull + sink;
  sink = x;
  return x;
}
__attribute__((noinline)) uint64_t level_c(uint64_t x) {
  char room[500];
  memset(room, (int)x, sizeof room);
  return level_leaf(x) + room[x % 500];
}
__attribute__((noinline)) uint64_t level_b(uint64_t x) { return level_c(x + 1) + 3; }
__attribute__((noinline)) uint64_t level_a(uint64_t x, int n) {
  char* room = alloca(x % 64 + 16);
  memset(room, 1, 16);
  uint64_t r = n ? level_a(x + 1, n - 1) : level_b(x * 2);
  return r + room[0];
}
static int compare(const void* a, const void* b) {
  return (int)level_b(*(const int*)a) - *(const int*)b;
}
int main(void) {
  for (int i = 0; i < 400; i++) {
    int numbers[3] = {3, 1, 2};
    sink += level_a(i, 3);
    qsort(numbers, 3, sizeof numbers[0], compare);
  }
  return 0;
}
)";

class RecordedUserStackTest : public testing::Test {
 protected:
  void SetUp() override {
    binary_.Write("known.c", kProgram);
    if (!binary_.Works("cc -O2 -fomit-frame-pointer known.c -o known")) {
      GTEST_SKIP() << "no C compiler";
    }
  }
  bool Record(const std::string& options) const {
    return binary_.Works("perf record -q -B -F 2000 -e cpu-clock -o known.data " + options +
                         " ./known");
  }
  ImportedTrace Import() const {
    auto bytes = ReadWholeFile(binary_.Path("known.data"));
    return ImportTrace(PerfDataImporter(),
                       MemorySource("known.data", bytes.ok() ? bytes.value() : std::string()));
  }
  // Functions of running events by time, leaf first, without inlined ones.
  static std::map<int64_t, std::vector<std::string>> Stacks(const ImportedTrace& imported) {
    std::map<int64_t, std::vector<std::string>> stacks;
    const trace::Dictionary& dictionary = imported.trace.dictionary;
    for (const trace::Event& event : imported.trace.events) {
      if (event.kind != EventKind::kRunning || !event.stack.valid()) continue;
      std::vector<std::string>& names = stacks[event.time_ns];
      for (trace::StackId id = event.stack; id.valid(); id = dictionary.stacks()[id.value].parent) {
        const trace::Frame& frame = dictionary.frames()[dictionary.stacks()[id.value].frame.value];
        if ((frame.flags & trace::kInlined) != 0) continue;
        names.emplace_back(frame.function.valid() ? dictionary.Text(frame.function) : "");
      }
    }
    return stacks;
  }
  TestBinary binary_;
};

bool EndsInKnownChain(const std::vector<std::string>& names) {
  static const std::vector<std::string> kByRecursion = {
      "level_leaf", "level_c", "level_b", "level_a", "level_a", "level_a", "level_a", "main"};
  static const std::vector<std::string> kByLibrary = {"level_leaf", "level_c", "level_b",
                                                      "compare"};
  const auto begins = [&](const std::vector<std::string>& chain) {
    return names.size() > chain.size() && std::equal(chain.begin(), chain.end(), names.begin());
  };
  if (begins(kByRecursion)) return true;
  return begins(kByLibrary) && std::find(names.begin(), names.end(), "main") != names.end();
}

TEST_F(RecordedUserStackTest, WithoutFramePointersTheKnownCallsAreFound) {
  size_t in_leaf = 0;
  size_t known = 0;
  // On a busy machine a recording may come out without samples: then once more.
  for (int attempt = 0; attempt < 3 && in_leaf <= 50; ++attempt) {
    if (!Record("--call-graph dwarf,8192")) GTEST_SKIP() << "perf cannot record here";
    const ImportedTrace imported = Import();
    ASSERT_TRUE(imported.status.ok());
    EXPECT_EQ(imported.Problem(), "");
    in_leaf = 0;
    known = 0;
    for (const auto& [time, names] : Stacks(imported)) {
      if (names.empty() || names.front() != "level_leaf") continue;
      ++in_leaf;
      known += EndsInKnownChain(names) ? 1 : 0;
    }
  }
  EXPECT_GT(in_leaf, 50u);
  EXPECT_EQ(known, in_leaf);
}

// Blocks of lines "tid time:" and "address function".
std::map<int64_t, std::vector<std::string>> StacksByPerfScript(const std::string& text) {
  std::map<int64_t, std::vector<std::string>> stacks;
  std::vector<std::string>* current = nullptr;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    if (first.empty()) {
      current = nullptr;
    } else if (current == nullptr) {
      const size_t dot = second.find('.');
      if (dot == std::string::npos) continue;
      current = &stacks[std::stoll(second.substr(0, dot)) * 1'000'000'000 +
                        std::stoll(second.substr(dot + 1))];
    } else {
      current->push_back(second == "[unknown]" ? "" : second);
    }
  }
  return stacks;
}

// Of two that unwind, one may go on where the other gives up; the program's own
// frames must be the same.
TEST_F(RecordedUserStackTest, FramesAreThoseOfPerfScript) {
  if (!Record("--call-graph dwarf,8192")) GTEST_SKIP() << "perf cannot record here";
  const auto theirs = StacksByPerfScript(
      binary_.Run("perf script --no-inline --ns -i known.data -F tid,time,ip,sym"));
  if (theirs.size() < 50) GTEST_SKIP() << "perf cannot unwind here";
  const auto ours = Stacks(Import());
  const auto own = [](const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& name : names) {
      if (name.starts_with("level_") || name == "compare" || name == "main") out.push_back(name);
    }
    return out;
  };
  size_t same = 0;
  for (const auto& [time, names] : theirs) {
    const auto mine = ours.find(time);
    same +=
        mine != ours.end() && own(mine->second) == own(names) && mine->second.size() >= names.size()
            ? 1
            : 0;
  }
  EXPECT_GE(same * 100, theirs.size() * 97) << same << " of " << theirs.size();
}

// A leaf function of arm64 has no frame record; its caller is in a register.
TEST_F(RecordedUserStackTest, AChainOfFramePointersHasTheLeafsCaller) {
#if !defined(__aarch64__)
  GTEST_SKIP() << "only arm64 keeps return addresses in a register";
#endif
  if (!binary_.Works("cc -O2 -fno-omit-frame-pointer -momit-leaf-frame-pointer known.c -o known")) {
    GTEST_SKIP() << "no C compiler";
  }
  size_t in_leaf = 0;
  size_t with_caller = 0;
  // As above: on a busy machine once more.
  for (int attempt = 0; attempt < 3 && in_leaf <= 50; ++attempt) {
    if (!Record("--call-graph fp")) GTEST_SKIP() << "perf cannot record here";
    if (binary_.Run("perf evlist -v -i known.data").find("sample_regs_user: 0x40000000") ==
        std::string::npos) {
      GTEST_SKIP() << "this perf does not record the link register";
    }
    in_leaf = 0;
    with_caller = 0;
    for (const auto& [time, names] : Stacks(Import())) {
      if (names.size() < 2 || names[0] != "level_leaf") continue;
      ++in_leaf;
      with_caller += names[1] == "level_c" ? 1 : 0;
    }
  }
  EXPECT_GT(in_leaf, 50u);
  EXPECT_EQ(with_caller, in_leaf);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
