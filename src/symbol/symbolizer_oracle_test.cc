// SPDX-License-Identifier: Apache-2.0
// The libraries of this machine, held against readelf, addr2line and libdwfl.
#include <elfutils/libdwfl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "symbol/elf_file.h"
#include "symbol/elf_symbols.h"
#include "symbol/frame_ranges.h"
#include "symbol/symbolizer.h"
#include "symbol/test_binary.h"

namespace culprit::symbol::TEST_FILE {
namespace {

std::string LibraryPath(const TestBinary& shell, const std::string& name) {
  std::string path = shell.Run("realpath $(gcc -print-file-name=" + name + ")");
  while (path.ends_with('\n')) path.pop_back();
  return path;
}

struct Text {
  uint64_t address;
  uint64_t size;
};

Text TextOf(const ElfFile& file) {
  const Section* section = file.FindSection(".text");
  return section == nullptr ? Text{} : Text{section->header.sh_addr, section->header.sh_size};
}

// libdwfl, for the name of the symbol that holds an address.
class Dwfl {
 public:
  explicit Dwfl(const std::string& path) {
    static char* debug_path = nullptr;
    static const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                             dwfl_offline_section_address, &debug_path};
    session_ = dwfl_begin(&callbacks);
    dwfl_report_begin(session_);
    module_ = dwfl_report_elf(session_, path.c_str(), path.c_str(), -1, 0, false);
    dwfl_report_end(session_, nullptr, nullptr);
    if (module_ != nullptr) dwfl_module_getelf(module_, &bias_);
  }
  ~Dwfl() { dwfl_end(session_); }
  // The start of the symbol around an address, 0 if there is none with a size.
  uint64_t StartAt(uint64_t address) {
    GElf_Off offset = 0;
    GElf_Sym symbol = {};
    const char* name =
        dwfl_module_addrinfo(module_, bias_ + address, &offset, &symbol, nullptr, nullptr, nullptr);
    if (name == nullptr || offset >= std::max<uint64_t>(symbol.st_size, 1)) return 0;
    return address - offset;
  }

 private:
  ::Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  GElf_Addr bias_ = 0;
};

TEST(SymbolizerOracle, FunctionsAreThoseOfLibdwfl) {
  const TestBinary shell;
  for (const char* library : {"libc.so.6", "libstdc++.so.6"}) {
    const std::string path = LibraryPath(shell, library);
    auto file = ElfFile::Open(path);
    if (!file.ok()) GTEST_SKIP() << "no " << library << " here";
    Dwfl dwfl(path);
    Symbolizer symbolizer({.inlines = false});
    const Text text = TextOf(file.value());
    std::mt19937_64 random(1);
    size_t known = 0;
    size_t different = 0;
    for (int i = 0; i < 2000; ++i) {
      const uint64_t address = text.address + random() % text.size / 4 * 4;
      const uint64_t expected = dwfl.StartAt(address);
      if (expected == 0) continue;
      ++known;
      const auto offset = file.value().OffsetOfAddress(address);
      const Symbol& found = symbolizer.Lookup({.path = path}, *offset, false)[0];
      const auto start = file.value().AddressOfOffset(found.function_start);
      if (found.function.empty() || start != expected) {
        if (++different < 5) {
          ADD_FAILURE() << library << " " << std::hex << address << ": " << found.function << " at "
                        << *start << ", libdwfl says " << expected;
        }
      }
    }
    EXPECT_GT(known, 500u) << library;
    EXPECT_EQ(different, 0u) << library << " of " << known;
  }
}

// addr2line -fi prints two lines a frame, the innermost first.
std::vector<std::vector<std::string>> AddressToLine(const TestBinary& shell,
                                                    const std::string& path,
                                                    const std::vector<uint64_t>& addresses) {
  std::ostringstream list;
  for (const uint64_t address : addresses) list << "0x" << std::hex << address << "\n";
  shell.Write("addresses", list.str());
  std::istringstream lines(shell.Run("addr2line -a -f -i -e " + path + " < addresses"));
  std::vector<std::vector<std::string>> answers;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      answers.emplace_back();
      continue;
    }
    answers.back().push_back(Demangle(line));
    std::getline(lines, line);
    answers.back().push_back(line.substr(0, line.find(" (disc")));
  }
  return answers;
}

TEST(SymbolizerOracle, InlinedCallersAreThoseOfAddr2line) {
  const TestBinary shell;
  const std::string path = LibraryPath(shell, "libc.so.6");
  auto file = ElfFile::Open(path);
  if (!file.ok()) GTEST_SKIP() << "no libc here";
  const std::string& id = file.value().build_id();
  const std::string debug =
      "/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
  if (!ElfFile::Open(debug).ok()) GTEST_SKIP() << "no debug file of libc here";
  std::mt19937_64 random(2);
  const Text text = TextOf(file.value());
  std::vector<uint64_t> addresses;
  for (int i = 0; i < 1500; ++i) addresses.push_back(text.address + random() % text.size / 4 * 4);
  const auto answers = AddressToLine(shell, debug, addresses);
  if (answers.size() != addresses.size()) GTEST_SKIP() << "no addr2line here";
  Symbolizer symbolizer;
  size_t compared = 0;
  size_t inlined = 0;
  size_t names_differ = 0;
  size_t lines_differ = 0;
  size_t depths_differ = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto& frames = symbolizer.Lookup(
        {.path = path}, file.value().OffsetOfAddress(addresses[i]).value(), false);
    if (answers[i].empty() || answers[i][0] == "??" || frames.back().line == 0) continue;
    ++compared;
    inlined += frames.size() > 1 ? 1 : 0;
    if (frames.size() * 2 != answers[i].size()) ++depths_differ;
    if (frames.size() > 1 && frames.back().function != answers[i][0]) ++names_differ;
    const std::string line = ":" + std::to_string(frames.back().line);
    if (!answers[i][1].ends_with(line)) ++lines_differ;
  }
  RecordProperty("compared", static_cast<int>(compared));
  RecordProperty("inlined", static_cast<int>(inlined));
  EXPECT_GT(compared, 500u);
  EXPECT_GT(inlined, 50u);
  EXPECT_LE(depths_differ * 100, compared);
  EXPECT_LE(names_differ * 100, compared);
  EXPECT_LE(lines_differ * 100, compared);
}

TEST(SymbolizerOracle, FrameStartsAreThoseOfReadelf) {
  const TestBinary shell;
  for (const char* library : {"libc.so.6", "libstdc++.so.6"}) {
    const std::string path = LibraryPath(shell, library);
    auto file = ElfFile::Open(path);
    if (!file.ok()) GTEST_SKIP() << "no " << library << " here";
    std::istringstream lines(shell.Run("readelf -wfN " + path + "; true"));
    std::vector<CodeRange> expected;
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(" pc=");
      const size_t dots = line.find("..", at);
      if (at == std::string::npos || dots == std::string::npos) continue;
      expected.push_back({std::stoull(line.substr(at + 4), nullptr, 16),
                          std::stoull(line.substr(dots + 2), nullptr, 16)});
    }
    if (expected.empty()) GTEST_SKIP() << "no readelf here";
    const Section* section = file.value().FindSection(".eh_frame");
    ASSERT_NE(section, nullptr);
    uint64_t bad = 0;
    const auto ranges = ReadFrameRanges(
        {.bytes = file.value().SectionBytes(*section), .address = section->header.sh_addr}, bad);
    EXPECT_EQ(bad, 0u);
    EXPECT_EQ(ranges, expected) << library;
  }
}

// The image is where the kernel says; nm reads a copy of it.
TEST(SymbolizerOracle, VdsoOfThisProcess) {
  std::ifstream maps("/proc/self/maps");
  std::string image;
  for (std::string line; std::getline(maps, line);) {
    uint64_t start = 0;
    uint64_t end = 0;
    if (!line.ends_with("[vdso]")) continue;
    ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx", &start, &end), 2);
    image.assign(reinterpret_cast<const char*>(start), end - start);  // NOLINT
  }
  auto file = ElfFile::FromBytes(image, "[vdso]");
  if (!file.ok() || file.value().build_id().empty()) GTEST_SKIP() << "no vdso here";
  const TestBinary shell;
  shell.Write("vdso", image);
  const auto functions = shell.Functions("-D vdso");
  if (functions.empty()) GTEST_SKIP() << "no nm here";
  Symbolizer symbolizer;
  const ModuleKey key = {.path = "[vdso]", .build_id = file.value().build_id()};
  for (const auto& [name, address] : functions) {
    const uint64_t offset = file.value().OffsetOfAddress(address).value();
    EXPECT_EQ(symbolizer.Lookup(key, offset, false)[0].function_start, offset) << name;
    EXPECT_NE(symbolizer.Lookup(key, offset, false)[0].function, "") << name;
    EXPECT_EQ(symbolizer.Lookup({.path = "[vdso]"}, offset, false)[0].function, "");
  }
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
