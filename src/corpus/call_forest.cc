// SPDX-License-Identifier: Apache-2.0
#include "corpus/call_forest.h"

#include <xxhash.h>

#include <algorithm>
#include <numeric>

#include "corpus/part_codec.h"

namespace culprit::corpus {
namespace {

struct HashedSymbol {
  uint64_t hash = 0;
  uint32_t symbol = 0;
};

// The names themselves share their beginnings, so that comparing them is dear; they
// decide where hashes are equal.
bool ComesBefore(const CallForest& forest, const HashedSymbol& a, const HashedSymbol& b) {
  return a.hash != b.hash ? a.hash < b.hash : forest.names[a.symbol] < forest.names[b.symbol];
}

// By symbol: its place among all. Hashes are spread evenly, so each is first put near
// its place, where few others are.
std::vector<uint32_t> RanksOf(const CallForest& forest) {
  const auto count = static_cast<uint32_t>(forest.names.size());
  const auto near = [&](uint64_t hash) {
    return static_cast<uint32_t>((hash >> 32) * count >> 32);
  };
  std::vector<uint32_t> next(count + 1);
  for (const uint64_t hash : forest.hashes) ++next[near(hash) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<HashedSymbol> items(count);
  for (uint32_t i = 0; i < count; ++i) {
    items[next[near(forest.hashes[i])]++] = {forest.hashes[i], i};
  }
  const auto less = [&](const HashedSymbol& a, const HashedSymbol& b) {
    return ComesBefore(forest, a, b);
  };
  for (uint32_t place = 0, begin = 0; place < count; begin = next[place++]) {
    if (next[place] - begin < 2) continue;
    std::sort(items.begin() + begin, items.begin() + next[place], less);
  }
  std::vector<uint32_t> ranks(count);
  for (uint32_t i = 0; i < count; ++i) ranks[items[i].symbol] = i;
  return ranks;
}

// Stacks by the rank of their frame.
std::vector<uint32_t> ByRank(const CallForest& forest) {
  const std::vector<uint32_t> ranks = RanksOf(forest);
  std::vector<uint32_t> next(ranks.size() + 1);
  for (const uint32_t symbol : forest.symbols) ++next[ranks[symbol] + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<uint32_t> sorted(forest.size());
  for (uint32_t s = 0; s < forest.size(); ++s) sorted[next[ranks[forest.symbols[s]]]++] = s;
  return sorted;
}

}  // namespace

std::vector<uint32_t> CanonicalOrder(const CallForest& forest) {
  const auto count = static_cast<uint32_t>(forest.size());
  // By stack, and behind the last for those without a caller.
  std::vector<uint32_t> first_callee(count + 1, kNoCall);
  std::vector<uint32_t> next_callee(count, kNoCall);
  const std::vector<uint32_t> sorted = ByRank(forest);
  for (auto it = sorted.rbegin(); it != sorted.rend(); ++it) {
    const uint32_t parent = forest.parents[*it];
    uint32_t& first = first_callee[parent == kNoCall ? count : parent];
    next_callee[*it] = first;
    first = *it;
  }
  std::vector<uint32_t> order;
  order.reserve(count);
  std::vector<uint32_t> open;
  for (uint32_t at = first_callee[count]; at != kNoCall || !open.empty();) {
    if (at == kNoCall) {
      at = open.back();
      open.pop_back();
    }
    order.push_back(at);
    if (next_callee[at] != kNoCall) open.push_back(next_callee[at]);
    at = first_callee[at];
  }
  return order;
}

uint64_t HashOfName(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

bool IsCanonical(const CallForest& forest, size_t frames) {
  const auto item_of = [&](uint32_t s) {
    return HashedSymbol{forest.hashes[forest.symbols[s]], forest.symbols[s]};
  };
  uint32_t used = 0;
  std::vector<uint32_t> path;  // from the outermost caller to the last one
  for (uint32_t s = 0; s < forest.size(); ++s) {
    if (forest.symbols[s] > used) return false;
    if (forest.symbols[s] == used) ++used;
    // The one before it that has the same caller, if it is not the first.
    uint32_t before = kNoCall;
    while (!path.empty() && path.back() != forest.parents[s]) {
      before = path.back();
      path.pop_back();
    }
    if (path.empty() && forest.parents[s] != kNoCall) return false;
    if (before != kNoCall && !ComesBefore(forest, item_of(before), item_of(s))) return false;
    path.push_back(s);
  }
  return used == frames;
}

void WriteForest(const CallForest& forest, std::span<const uint32_t> order,
                 std::span<const std::string_view> other_names, ByteWriter& out) {
  std::vector<uint32_t> places(forest.size());
  std::vector<uint32_t> numbers(forest.names.size(), kNoCall);  // by symbol, in order of first use
  std::vector<uint32_t> used;
  for (uint32_t i = 0; i < order.size(); ++i) {
    places[order[i]] = i;
    uint32_t& number = numbers[forest.symbols[order[i]]];
    if (number != kNoCall) continue;
    number = static_cast<uint32_t>(used.size());
    used.push_back(forest.symbols[order[i]]);
  }
  out.Varint(used.size() + other_names.size());
  for (const uint32_t symbol : used) out.String(forest.names[symbol]);
  for (const std::string_view name : other_names) out.String(name);
  out.Varint(used.size());
  out.Varint(order.size());
  const auto parent_of = [&](size_t i) {
    const uint32_t parent = forest.parents[order[i]];
    return parent == kNoCall ? kNoCall : places[parent];
  };
  WriteParents(order.size(), parent_of, out);
  for (const uint32_t s : order) out.Varint(numbers[forest.symbols[s]]);
}

bool ReadForest(ByteReader& in, CallForest& forest, size_t& frames) {
  forest.names = ReadViews(in);
  forest.hashes.reserve(forest.names.size());
  for (const std::string_view name : forest.names) forest.hashes.push_back(HashOfName(name));
  frames = in.Varint();
  if (in.failed() || frames > forest.names.size()) return false;
  forest.parents.resize(ReadCount(in, 2));
  if (forest.size() >= kNoCall) return false;
  const auto take = [&](size_t s, uint32_t parent) { forest.parents[s] = parent; };
  if (!ReadParents(forest.size(), take, in)) return false;
  forest.symbols.resize(forest.size());
  for (uint32_t& symbol : forest.symbols) {
    const uint64_t number = in.Varint();
    if (number >= frames) return false;
    symbol = static_cast<uint32_t>(number);
  }
  return !in.failed();
}

}  // namespace culprit::corpus
