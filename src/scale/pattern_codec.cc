// SPDX-License-Identifier: Apache-2.0
#include "scale/pattern_codec.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"

namespace culprit::scale {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint64_t kMostCost = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMostSymbol = std::numeric_limits<mine::Symbol>::max();
// What a sequence takes over from the one before, so that a few damaged bytes cannot
// stand for more symbols than there is memory.
constexpr uint64_t kMostSame = 255;

std::optional<mine::Symbol> ReadSymbol(ByteReader& in) {
  const uint64_t symbol = in.Varint();
  if (in.failed() || symbol > kMostSymbol) return std::nullopt;
  return static_cast<mine::Symbol>(symbol);
}

size_t CommonPrefix(std::span<const mine::Symbol> a, std::span<const mine::Symbol> b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return static_cast<size_t>(end - a.begin());
}

// Reads one sequence behind `database`; false if it is none.
bool ReadSequence(ByteReader& in, mine::WeightedSequences& database, uint64_t& left) {
  const uint64_t end = database.symbols.size();
  const uint64_t before = database.ends.size() < 2 ? 0 : database.ends[database.ends.size() - 2];
  const uint64_t begin = database.ends.empty() ? end : before;
  const uint64_t same = in.Varint();
  const uint64_t more = in.Varint();
  if (in.failed() || same > std::min(end - begin, kMostSame) || more > in.remaining()) return false;
  for (uint64_t i = 0; i < same; ++i) database.symbols.push_back(database.symbols[begin + i]);
  for (uint64_t i = 0; i < more; ++i) {
    const auto symbol = ReadSymbol(in);
    if (!symbol) return false;
    database.symbols.push_back(*symbol);
  }
  const uint64_t cost = in.Varint();
  if (in.failed() || cost > left) return false;
  left -= cost;
  database.ends.push_back(database.symbols.size());
  database.costs.push_back(static_cast<int64_t>(cost));
  return true;
}

std::optional<mine::Pattern> ReadPattern(ByteReader& in) {
  mine::Pattern pattern;
  const uint64_t length = in.Varint();
  if (in.failed() || length == 0 || length > in.remaining()) return std::nullopt;
  for (uint64_t i = 0; i < length; ++i) {
    const auto symbol = ReadSymbol(in);
    if (!symbol) return std::nullopt;
    pattern.symbols.push_back(*symbol);
  }
  const uint64_t cost = in.Varint();
  if (in.failed() || cost > kMostCost) return std::nullopt;
  pattern.cost = static_cast<int64_t>(cost);
  return pattern;
}

}  // namespace

std::string EncodeDatabase(const mine::WeightedSequences& database) {
  ByteWriter out;
  out.U8(kVersion);
  out.Varint(database.size());
  std::span<const mine::Symbol> before;
  for (size_t i = 0; i < database.size(); ++i) {
    const std::span<const mine::Symbol> sequence = database.at(i);
    const size_t same = std::min<size_t>(CommonPrefix(sequence, before), kMostSame);
    out.Varint(same);
    out.Varint(sequence.size() - same);
    for (const mine::Symbol symbol : sequence.subspan(same)) out.Varint(symbol);
    out.Varint(static_cast<uint64_t>(database.costs[i]));
    before = sequence;
  }
  return out.Take();
}

std::optional<mine::WeightedSequences> DecodeDatabase(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.U8() != kVersion) return std::nullopt;
  const uint64_t count = in.Varint();
  if (in.failed() || count > in.remaining()) return std::nullopt;
  mine::WeightedSequences database;
  uint64_t left = kMostCost;
  for (uint64_t i = 0; i < count; ++i) {
    if (!ReadSequence(in, database, left)) return std::nullopt;
  }
  if (in.failed() || in.remaining() != 0) return std::nullopt;
  return database;
}

std::string EncodeSubtree(const mine::Subtree& subtree) {
  ByteWriter out;
  out.U8(kVersion);
  out.U8(subtree.too_many ? 1 : 0);
  out.Varint(subtree.patterns.size());
  for (const mine::Pattern& pattern : subtree.patterns) {
    out.Varint(pattern.symbols.size());
    for (const mine::Symbol symbol : pattern.symbols) out.Varint(symbol);
    out.Varint(static_cast<uint64_t>(pattern.cost));
  }
  return out.Take();
}

std::optional<mine::Subtree> DecodeSubtree(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.U8() != kVersion) return std::nullopt;
  mine::Subtree subtree;
  const uint8_t too_many = in.U8();
  const uint64_t count = in.Varint();
  if (in.failed() || too_many > 1 || count > in.remaining()) return std::nullopt;
  subtree.too_many = too_many == 1;
  for (uint64_t i = 0; i < count; ++i) {
    std::optional<mine::Pattern> pattern = ReadPattern(in);
    if (!pattern) return std::nullopt;
    subtree.patterns.push_back(std::move(*pattern));
  }
  if (in.failed() || in.remaining() != 0) return std::nullopt;
  return subtree;
}

}  // namespace culprit::scale
