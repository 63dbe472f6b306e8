// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbolizer.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "symbol/elf_file.h"
#include "symbol/test_binary.h"

namespace culprit::symbol::TEST_FILE {
namespace {

constexpr const char* kProgram = R"(
#include <unistd.h>
namespace app {
volatile int sink;
static inline __attribute__((always_inline)) int Innermost(int x) {
  sink = x;
  return sink * 3;
}
static inline __attribute__((always_inline)) int Middle(int x) {
  return Innermost(x + 1);
}
__attribute__((noinline)) int Outer(int x) {
  return Middle(x) + 7;
}
}
static __attribute__((noinline)) int hidden(int x) { return app::Outer(x) + (int)getpid(); }
extern "C" __attribute__((noinline)) int plain_c(int x) { return hidden(x) + 1; }
int main(int argc, char**) { return plain_c(argc); }
)";

class SymbolizerTest : public testing::Test {
 protected:
  void SetUp() override {
    binary_.Write("program.cc", kProgram);
    if (!binary_.Works("g++ -O2 -g -Wl,--build-id=sha1 -o program program.cc")) {
      GTEST_SKIP() << "no g++ here";
    }
    functions_ = binary_.Functions("program");
    if (functions_.empty()) GTEST_SKIP() << "no nm here";
  }

  ModuleKey Key(const std::string& name) const { return {.path = binary_.Path(name)}; }
  uint64_t OffsetOf(const std::string& function) const {
    return ElfFile::Open(binary_.Path("program"))
        .value()
        .OffsetOfAddress(functions_.at(function))
        .value();
  }
  std::string BuildId(const std::string& name) const {
    return ElfFile::Open(binary_.Path(name)).value().build_id();
  }
  SymbolizerOptions NoFolders() const { return {.debug_folders = {}}; }

  TestBinary binary_;
  std::map<std::string, uint64_t> functions_;
};

TEST_F(SymbolizerTest, NamesFunctionsWithTheirStarts) {
  Symbolizer symbolizer({.inlines = false});
  const uint64_t start = OffsetOf("_ZL6hiddeni");
  for (const uint64_t delta : {0, 4}) {
    const auto& found = symbolizer.Lookup(Key("program"), start + delta, false);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].function, "hidden(int)");
    EXPECT_EQ(found[0].function_start, start);
  }
  EXPECT_EQ(symbolizer.Lookup(Key("program"), OffsetOf("plain_c"), false)[0].function, "plain_c");
  EXPECT_TRUE(symbolizer.diagnostics().empty());
}

TEST_F(SymbolizerTest, AReturnAddressBelongsToTheCall) {
  Symbolizer symbolizer({.inlines = false});
  const uint64_t start = OffsetOf("_ZN3app5OuterEi");
  EXPECT_EQ(symbolizer.Lookup(Key("program"), start, false)[0].function, "app::Outer(int)");
  EXPECT_NE(symbolizer.Lookup(Key("program"), start, true)[0].function, "app::Outer(int)");
  EXPECT_EQ(symbolizer.Lookup(Key("program"), start + 1, true)[0].function, "app::Outer(int)");
}

TEST_F(SymbolizerTest, GivesInlinedCallersOutermostFirst) {
  Symbolizer symbolizer;
  const uint64_t start = OffsetOf("_ZN3app5OuterEi");
  bool seen = false;
  for (uint64_t delta = 0; delta < 64; ++delta) {
    const auto& frames = symbolizer.Lookup(Key("program"), start + delta, false);
    if (frames.size() < 3) continue;
    seen = true;
    EXPECT_EQ(frames[0].function, "app::Outer(int)");
    EXPECT_FALSE(frames[0].inlined);
    EXPECT_EQ(frames[0].function_start, start);
    EXPECT_EQ(frames[0].line, 13u);
    EXPECT_EQ(frames[1].function, "app::Middle");
    EXPECT_EQ(frames[1].line, 10u);
    EXPECT_EQ(frames[2].function, "app::Innermost");
    EXPECT_TRUE(frames[2].inlined);
    EXPECT_TRUE(frames[2].line == 6 || frames[2].line == 7 || frames[2].line == 5);
    EXPECT_TRUE(frames[2].file.ends_with("program.cc"));
  }
  EXPECT_TRUE(seen);
}

TEST_F(SymbolizerTest, ReadsLittleDebugInfoAndOldDwarf) {
  for (const char* flags : {"-g1", "-gdwarf-4", "-gdwarf-5 -gz", "-gsplit-dwarf -g"}) {
    ASSERT_TRUE(binary_.Works(std::string("g++ -O2 ") + flags + " -o program program.cc"));
    functions_ = binary_.Functions("program");
    Symbolizer symbolizer;
    size_t deepest = 0;
    for (uint64_t delta = 0; delta < 40; ++delta) {
      const auto& frames =
          symbolizer.Lookup(Key("program"), OffsetOf("_ZN3app5OuterEi") + delta, false);
      if (frames.size() == 3) {
        EXPECT_TRUE(frames.back().inlined) << flags;
        EXPECT_NE(frames.back().function.find("nner"), std::string::npos) << flags;
        EXPECT_NE(frames.back().line, 0u) << flags;
      }
      deepest = std::max(deepest, frames.size());
    }
    EXPECT_EQ(deepest, 3u) << flags;
  }
}

TEST_F(SymbolizerTest, AStrippedFunctionIsKnownByItsStart) {
  ASSERT_TRUE(binary_.Works("strip -o stripped program"));
  Symbolizer symbolizer(NoFolders());
  const uint64_t start = OffsetOf("_ZL6hiddeni");
  const auto& found = symbolizer.Lookup(Key("stripped"), start + 4, false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].function, "");
  EXPECT_EQ(found[0].function_start, start);
}

TEST_F(SymbolizerTest, FindsTheDebugFileByLinkAndChecksum) {
  ASSERT_TRUE(
      binary_.Works("objcopy --only-keep-debug program stripped.debug && "
                    "strip -o stripped program && "
                    "objcopy --add-gnu-debuglink=stripped.debug stripped"));
  Symbolizer symbolizer(NoFolders());
  const uint64_t start = OffsetOf("_ZN3app5OuterEi");
  size_t deepest = 0;
  for (uint64_t delta = 0; delta < 40; delta += 4) {
    const auto& frames = symbolizer.Lookup(Key("stripped"), start + delta, false);
    if (delta == 0) {
      EXPECT_EQ(frames[0].function, "app::Outer(int)");
    }
    deepest = std::max(deepest, frames.size());
  }
  EXPECT_EQ(deepest, 3u);
  // Another file of that name is not the one meant.
  binary_.Run("mkdir -p .debug && mv stripped.debug .debug/");
  EXPECT_EQ(Symbolizer(NoFolders()).Lookup(Key("stripped"), start, false)[0].function,
            "app::Outer(int)");
  binary_.Run("printf x >> .debug/stripped.debug");
  EXPECT_EQ(Symbolizer(NoFolders()).Lookup(Key("stripped"), start, false)[0].function, "");
}

TEST_F(SymbolizerTest, FindsTheDebugFileByBuildId) {
  const std::string id = BuildId("program");
  ASSERT_EQ(id.size(), 40u);
  const std::string folder = "debug/.build-id/" + id.substr(0, 2);
  ASSERT_TRUE(binary_.Works("mkdir -p " + folder + " && objcopy --only-keep-debug program " +
                            folder + "/" + id.substr(2) + ".debug && strip -o stripped program"));
  Symbolizer symbolizer({.debug_folders = {binary_.Path("debug")}});
  EXPECT_EQ(symbolizer.Lookup(Key("stripped"), OffsetOf("_ZL6hiddeni"), false)[0].function,
            "hidden(int)");
}

TEST_F(SymbolizerTest, TakesModulesFromPerfsCache) {
  const std::string id = BuildId("program");
  const std::string folder = "cache/.build-id/" + id.substr(0, 2) + "/" + id.substr(2);
  const uint64_t start = OffsetOf("_ZL6hiddeni");
  ASSERT_TRUE(binary_.Works("mkdir -p " + folder + " && mv program " + folder + "/elf"));
  Symbolizer symbolizer({.build_id_cache = binary_.Path("cache")});
  const ModuleKey key = {.path = "/no/such/program", .build_id = id};
  EXPECT_EQ(symbolizer.Lookup(key, start, false)[0].function, "hidden(int)");
  EXPECT_TRUE(symbolizer.diagnostics().empty());
}

TEST_F(SymbolizerTest, ReadsCompressedSymbolTables) {
  if (!binary_.Works("strip --keep-symbol=_ZL6hiddeni -o mini program && xz mini && "
                     "strip -o stripped program && "
                     "objcopy --add-section .gnu_debugdata=mini.xz stripped")) {
    GTEST_SKIP() << "no xz or objcopy here";
  }
  Symbolizer symbolizer(NoFolders());
  EXPECT_EQ(symbolizer.Lookup(Key("stripped"), OffsetOf("_ZL6hiddeni"), false)[0].function,
            "hidden(int)");
}

TEST_F(SymbolizerTest, DoesNotUseAFileWithAnotherBuildId) {
  Symbolizer symbolizer;
  ModuleKey key = Key("program");
  key.build_id = std::string(40, 'a');
  EXPECT_EQ(symbolizer.Lookup(key, OffsetOf("plain_c"), false)[0].function, "");
  EXPECT_EQ(symbolizer.Lookup(key, OffsetOf("plain_c") + 4, false)[0].function, "");
  const auto rows = symbolizer.diagnostics().rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.begin()->first, "module whose local file has another build-id");
  EXPECT_EQ(rows.begin()->second.count, 1u);
}

TEST_F(SymbolizerTest, CountsMissingModulesOnce) {
  Symbolizer symbolizer;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(symbolizer.Lookup({.path = "/no/such/file"}, 0x1000, false).size(), 1u);
    EXPECT_EQ(symbolizer.Lookup({.path = "//anon"}, 0x1000, false)[0].function, "");
    EXPECT_EQ(symbolizer.Lookup({.path = "[heap]"}, 0x1000, false)[0].function, "");
    EXPECT_EQ(symbolizer.Lookup({.path = binary_.Path("program.cc")}, 0, false)[0].function, "");
    EXPECT_EQ(symbolizer.Lookup({.path = binary_.folder()}, 0, false)[0].function, "");
  }
  EXPECT_EQ(symbolizer.diagnostics().total(), 3u);
}

TEST_F(SymbolizerTest, NamesStubs) {
  const std::string listing = binary_.Run("objdump -d -j .plt program");
  const size_t at = listing.find("<getpid@plt>:");
  if (at == std::string::npos) GTEST_SKIP() << "no objdump here, or no stubs";
  const uint64_t address = std::stoull(listing.substr(listing.rfind('\n', at) + 1), nullptr, 16);
  Symbolizer symbolizer({.inlines = false});
  EXPECT_EQ(symbolizer.Lookup(Key("program"), address + 4, false)[0].function, "getpid@plt");
}

TEST_F(SymbolizerTest, ReadsKernelModulesByName) {
  const std::string release = binary_.Run("uname -r | tr -d '\\n'");
  binary_.Write("mod.c", "static int x; int mod_work(int a) { x += a; return x; }\n");
  if (release.empty() ||
      !binary_.Works("gcc -O1 -c mod.c && ld -r --build-id=sha1 -o my-mod.ko mod.o && "
                     "mkdir -p lib/modules/" +
                     release +
                     "/kernel && xz -k my-mod.ko && "
                     "mv my-mod.ko.xz lib/modules/" +
                     release +
                     "/kernel/ && "
                     "echo kernel/my-mod.ko.xz: > lib/modules/" +
                     release + "/modules.dep")) {
    GTEST_SKIP() << "no gcc, ld or xz here";
  }
  Symbolizer symbolizer({.sysroot = binary_.folder()});
  const ModuleKey key = {.path = "[my_mod]", .build_id = BuildId("my-mod.ko")};
  EXPECT_EQ(symbolizer.Lookup(key, 4, false)[0].function, "mod_work");
  EXPECT_EQ(symbolizer.Lookup({.path = "[my_mod]"}, 4, false)[0].function, "");
}

TEST_F(SymbolizerTest, SurvivesDamagedFiles) {
  const std::string whole = binary_.Run("cat program");
  const uint64_t start = OffsetOf("_ZL6hiddeni");
  for (size_t i = 0; i < 120; ++i) {
    std::string damaged = whole.substr(0, whole.size() * (i + 1) / 120);
    for (size_t at = i; i % 2 == 1 && at < damaged.size(); at += 97) damaged[at] ^= 0x41;
    binary_.Write("damaged", damaged);
    Symbolizer symbolizer(NoFolders());
    for (uint64_t delta = 0; delta < 64; delta += 8) {
      EXPECT_GE(symbolizer.Lookup(Key("damaged"), start + delta, false).size(), 1u);
    }
  }
}

TEST_F(SymbolizerTest, AnswersSeveralThreads) {
  Symbolizer symbolizer;
  const uint64_t start = OffsetOf("_ZN3app5OuterEi");
  std::vector<std::thread> threads;
  std::vector<const std::vector<Symbol>*> first(4);
  for (size_t t = 0; t < first.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t delta = 0; delta < 64; ++delta) {
        const auto& found = symbolizer.Lookup(Key("program"), start + delta, false);
        if (delta == 8) first[t] = &found;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto* found : first) EXPECT_EQ(found, first[0]);
}

// Both classes and both byte orders, with stubs where their shape is known.
TEST(ForeignMachines, SymbolsFramesAndStubs) {
  struct Machine {
    const char* target;
    bool stubs;
  };
  const TestBinary binary;
  binary.Write("lib.c",
               "int outside(int); int other(int);\n"
               "static __attribute__((noinline)) int local(int x) { return outside(x) + 1; }\n"
               "int exported(int x) { return local(x) + other(x) * 2; }\n");
  size_t built = 0;
  for (const Machine& machine :
       {Machine{"x86_64-linux-gnu", true}, Machine{"i386-linux-gnu", true},
        Machine{"aarch64-linux-gnu", true}, Machine{"riscv64-linux-gnu", true},
        Machine{"mips-linux-gnu", false}, Machine{"powerpc-linux-gnu", false}}) {
    if (!binary.Works(std::string("clang -O1 -fPIC -shared -nostdlib -fuse-ld=lld -Wl,--build-id "
                                  "-fno-optimize-sibling-calls -funwind-tables --target=") +
                      machine.target + " -o lib.so lib.c && llvm-strip -o stripped.so lib.so")) {
      continue;
    }
    ++built;
    const auto functions = binary.Functions("lib.so");
    const auto file = ElfFile::Open(binary.Path("lib.so"));
    ASSERT_TRUE(file.ok());
    Symbolizer symbolizer({.debug_folders = {}});
    const uint64_t local = file.value().OffsetOfAddress(functions.at("local")).value();
    const uint64_t exported = file.value().OffsetOfAddress(functions.at("exported")).value();
    const ModuleKey whole = {.path = binary.Path("lib.so")};
    const ModuleKey stripped = {.path = binary.Path("stripped.so")};
    EXPECT_EQ(symbolizer.Lookup(whole, local + 4, false)[0].function, "local") << machine.target;
    EXPECT_EQ(symbolizer.Lookup(stripped, exported + 4, false)[0].function, "exported");
    EXPECT_EQ(symbolizer.Lookup(stripped, local + 4, false)[0].function, "") << machine.target;
    EXPECT_EQ(symbolizer.Lookup(stripped, local + 4, false)[0].function_start, local)
        << machine.target;
    const Section* plt = file.value().FindSection(".plt");
    if (!machine.stubs || plt == nullptr) continue;
    const uint64_t end =
        file.value().OffsetOfAddress(plt->header.sh_addr + plt->header.sh_size - 1).value();
    const std::string last = symbolizer.Lookup(stripped, end, false)[0].function;
    EXPECT_TRUE(last == "outside@plt" || last == "other@plt") << machine.target << " " << last;
  }
  if (built == 0) GTEST_SKIP() << "no clang and lld here";
}

TEST(SameBuildId, IgnoresPerfsPadding) {
  EXPECT_TRUE(SameBuildId("abcd", "abcd"));
  EXPECT_TRUE(SameBuildId("abcd0000", "abcd"));
  EXPECT_FALSE(SameBuildId("abcd", "abce"));
  EXPECT_FALSE(SameBuildId("abcd", "abcd01"));
  EXPECT_FALSE(SameBuildId("", "0000"));
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
