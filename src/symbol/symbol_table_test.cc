// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

namespace culprit::symbol::TEST_FILE {
namespace {

std::string NameAt(const SymbolTable& table, uint64_t address) {
  const uint32_t row = table.Find(address);
  if (row == SymbolTable::kNone) return "-";
  const std::string name(table.Name(row));
  return name.empty() ? "+" + std::to_string(table.Start(row)) : name;
}

TEST(SymbolTable, ChoosesOneNameWhateverTheOrder) {
  struct Alias {
    uint64_t size;
    const char* name;
    bool global;
  };
  std::vector<Alias> aliases = {{8, "local", false},
                                {8, "__write", true},
                                {8, "write@@GLIBC_2.17", true},
                                {8, "writes", true},
                                {0, "label", true}};
  for (int i = 0; i < 120; ++i) {
    SymbolTable table;
    for (const Alias& a : aliases) table.Add(16, a.size, 100, a.name, a.global);
    table.Build();
    EXPECT_EQ(NameAt(table, 20), "write");
    std::next_permutation(aliases.begin(), aliases.end(),
                          [](const Alias& a, const Alias& b) { return a.name < b.name; });
  }
}

TEST(SymbolTable, InnerFunctionsHideOuterOnes) {
  SymbolTable table;
  table.Add(0, 100, 100, "outer", true);
  table.Add(10, 10, 100, "inner", false);
  table.Build();
  EXPECT_EQ(NameAt(table, 9), "outer");
  EXPECT_EQ(NameAt(table, 10), "inner");
  EXPECT_EQ(NameAt(table, 20), "outer");
  EXPECT_EQ(NameAt(table, 100), "-");
}

TEST(SymbolTable, EmptyTableFindsNothing) {
  SymbolTable table;
  table.Build();
  EXPECT_EQ(table.Find(0), SymbolTable::kNone);
  EXPECT_EQ(table.Find(UINT64_MAX), SymbolTable::kNone);
}

TEST(SymbolTable, SizesThatWrapAroundAreIgnored) {
  SymbolTable table;
  table.Add(UINT64_MAX - 4, 100, UINT64_MAX, "last", true);
  table.Add(8, UINT64_MAX, 16, "wild", true);
  table.Build();
  EXPECT_EQ(NameAt(table, 9), "wild");
  EXPECT_EQ(NameAt(table, 17), "-");
  EXPECT_EQ(NameAt(table, UINT64_MAX - 1), "last");
}

struct Input {
  uint64_t start;
  uint64_t size;
  std::string name;
};

// The rules of the header, one address at a time.
class Naive {
 public:
  Naive(std::vector<Input> symbols, std::vector<CodeRange> ranges, uint64_t limit)
      : symbols_(std::move(symbols)), ranges_(std::move(ranges)), limit_(limit) {
    for (Input& symbol : symbols_) {
      for (const CodeRange& range : ranges_) {
        if (symbol.size == 0 && range.start == symbol.start) symbol.size = range.end - range.start;
      }
    }
  }

  std::string At(uint64_t address) const {
    if (const auto known = SizedOrRange(address)) return *known;
    // A label reaches down to here if nothing lies between.
    for (uint64_t at = address;; --at) {
      if (SizedOrRange(at) || address >= limit_) return "-";
      for (const Input& symbol : symbols_) {
        if (symbol.start == at && symbol.size == 0) return symbol.name;
      }
      if (at == 0) return "-";
    }
  }

 private:
  std::optional<std::string> SizedOrRange(uint64_t address) const {
    const Input* best = nullptr;
    for (const Input& symbol : symbols_) {
      if (address < symbol.start || address >= symbol.start + symbol.size) continue;
      if (best == nullptr || symbol.start > best->start) best = &symbol;
    }
    if (best != nullptr) return best->name;
    for (const CodeRange& range : ranges_) {
      if (address >= range.start && address < range.end) return "+" + std::to_string(range.start);
    }
    return std::nullopt;
  }

  std::vector<Input> symbols_;
  std::vector<CodeRange> ranges_;
  uint64_t limit_;
};

TEST(SymbolTable, AgreesWithTheRulesOnSmallTables) {
  std::mt19937 random(1);
  constexpr uint64_t kSpace = 40;
  constexpr uint64_t kLimit = 36;
  for (int round = 0; round < 5000; ++round) {
    std::vector<Input> symbols;
    std::vector<CodeRange> ranges;
    SymbolTable table;
    std::vector<uint64_t> starts(kSpace);
    for (uint64_t i = 0; i < kSpace; ++i) starts[i] = i;
    std::shuffle(starts.begin(), starts.end(), random);
    for (size_t i = 0, n = random() % 8; i < n; ++i) {
      const uint64_t size = random() % 3 == 0 ? 0 : random() % 12;
      symbols.push_back({starts[i], size, "f" + std::to_string(i)});
      table.Add(starts[i], size, kLimit, symbols.back().name, true);
    }
    for (uint64_t at = random() % 6; at < kSpace; at += random() % 12) {
      const uint64_t size = 1 + random() % 8;
      ranges.push_back({at, at + size});
      table.AddRange(ranges.back());
      at += size;
    }
    table.Build();
    const Naive naive(symbols, ranges, kLimit);
    for (uint64_t address = 0; address < kSpace + 20; ++address) {
      ASSERT_EQ(NameAt(table, address), naive.At(address))
          << "round " << round << " at " << address;
    }
  }
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
