// SPDX-License-Identifier: Apache-2.0
// Addresses to functions: the symbol table of a library, beside libdwfl.
//
//   symbol_bench LIBRARY
//
// Random addresses of the library's code. First without
// inlined callers, where libdwfl's dwfl_module_addrinfo does the same work;
// then with them, each address once and once again.
#include <elfutils/libdwfl.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"

namespace {

using culprit::symbol::ElfFile;
using culprit::symbol::Symbolizer;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Print(const char* what, size_t lookups, double seconds, size_t named) {
  std::printf("%-40s %12.0f lookups/s %6.1f %% named\n", what,
              static_cast<double>(lookups) / seconds,
              100.0 * static_cast<double>(named) / static_cast<double>(lookups));
}

std::vector<uint64_t> RandomAddresses(const ElfFile& file, size_t count) {
  const culprit::symbol::Section* text = file.FindSection(".text");
  CULPRIT_CHECK(text != nullptr);
  std::mt19937_64 random(1);
  std::vector<uint64_t> addresses(count);
  for (uint64_t& address : addresses) {
    address = text->header.sh_addr + random() % text->header.sh_size / 4 * 4;
  }
  return addresses;
}

void Ours(const std::string& path, const std::vector<uint64_t>& offsets, bool inlines,
          const char* what, int rounds) {
  Symbolizer symbolizer({.inlines = inlines});
  double start = Seconds();
  culprit::symbol::Module& module = symbolizer.Find({.path = path});
  (void)Symbolizer::Lookup(module, offsets.front(), false);
  std::printf("%-40s %12.1f ms\n", "reading the tables", (Seconds() - start) * 1e3);
  for (int round = 0; round < rounds; ++round) {
    size_t named = 0;
    start = Seconds();
    for (const uint64_t offset : offsets) {
      named += Symbolizer::Lookup(module, offset, false).front().function.empty() ? 0 : 1;
    }
    Print(what, offsets.size(), Seconds() - start, named);
  }
  size_t named = 0;
  start = Seconds();
  const culprit::symbol::ModuleKey key = {.path = path};
  for (const uint64_t offset : offsets) {
    named += symbolizer.Lookup(key, offset, false).front().function.empty() ? 0 : 1;
  }
  Print("  again, the module by its key", offsets.size(), Seconds() - start, named);
}

void Peer(const std::string& path, const std::vector<uint64_t>& addresses) {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks kCallbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo,
                                            dwfl_offline_section_address, &debug_path};
  Dwfl* session = dwfl_begin(&kCallbacks);
  dwfl_report_begin(session);
  Dwfl_Module* module = dwfl_report_elf(session, path.c_str(), path.c_str(), -1, 0, false);
  dwfl_report_end(session, nullptr, nullptr);
  GElf_Addr bias = 0;
  CULPRIT_CHECK(module != nullptr && dwfl_module_getelf(module, &bias) != nullptr);
  (void)dwfl_module_addrname(module, bias + addresses.front());
  const double start = Seconds();
  size_t named = 0;
  for (const uint64_t address : addresses) {
    GElf_Off offset = 0;
    GElf_Sym symbol = {};
    named += dwfl_module_addrinfo(module, bias + address, &offset, &symbol, nullptr, nullptr,
                                  nullptr) == nullptr
                 ? 0
                 : 1;
  }
  Print("libdwfl, dwfl_module_addrinfo", addresses.size(), Seconds() - start, named);
  dwfl_end(session);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: symbol_bench LIBRARY\n");
    return 2;
  }
  const std::string path = argv[1];
  auto file = ElfFile::Open(path);
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", file.error().ToString().c_str());
    return 2;
  }
  const std::vector<uint64_t> addresses = RandomAddresses(file.value(), 1'000'000);
  std::vector<uint64_t> offsets;
  for (const uint64_t address : addresses) {
    offsets.push_back(file.value().OffsetOfAddress(address).value_or(0));
  }
  Ours(path, offsets, false, "symbol table", 2);
  Peer(path, {addresses.begin(), addresses.begin() + 2'000});
  Ours(path, {offsets.begin(), offsets.begin() + 20'000}, true, "inlined callers and lines", 2);
  return 0;
}
