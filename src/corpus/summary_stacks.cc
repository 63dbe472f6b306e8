// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_stacks.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "base/check.h"
#include "corpus/part_codec.h"

namespace culprit::corpus {
namespace {

constexpr size_t kMostTableStacks = 1 << 20;
constexpr size_t kFewStacks = 64;  // make no table
constexpr char kSpelled = 0;
constexpr char kByTable = 1;

bool WantsNew(const std::vector<uint32_t>& places) {
  const auto unknown = static_cast<size_t>(std::count(places.begin(), places.end(), kNoCall));
  return unknown >= kFewStacks && unknown * kNewTableShare >= places.size();
}

// For each stack of the table whose caller is there, whether it is there itself.
std::string BitsOf(const CallForest& table, const std::vector<uint32_t>& places) {
  std::vector<bool> there(table.size());
  for (const uint32_t place : places) {
    if (place != kNoCall) there[place] = true;
  }
  std::string bits;
  size_t asked = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table.parents[i] != kNoCall && !there[table.parents[i]]) continue;
    if (asked % 8 == 0) bits += '\0';
    if (there[i]) bits.back() = static_cast<char>(bits.back() | 1 << (asked % 8));
    ++asked;
  }
  return bits;
}

// The stacks that the bits say are there, appended to `forest` by the table's symbols.
bool TakeBits(const CallForest& table, std::string_view bits, CallForest& forest) {
  std::vector<uint32_t> places(table.size(), kNoCall);
  size_t asked = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const uint32_t parent = table.parents[i];
    if (parent != kNoCall && places[parent] == kNoCall) continue;
    if (asked / 8 >= bits.size()) return false;
    const bool there = (bits[asked / 8] >> (asked % 8) & 1) != 0;
    ++asked;
    if (!there) continue;
    places[i] = static_cast<uint32_t>(forest.size());
    forest.parents.push_back(parent == kNoCall ? kNoCall : places[parent]);
    forest.symbols.push_back(table.symbols[i]);
  }
  return bits.size() == (asked + 7) / 8;
}

std::vector<uint32_t> AsTheyStand(size_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// What a table does not have of the stacks of a payload, for both columns.
struct SpelledStacks {
  std::vector<std::string_view> own_names;
  ByteWriter parents;
  ByteWriter names;
  size_t count = 0;
};

template <class SymbolOf>
SpelledStacks SpelledOf(const CallForest& forest, const std::vector<uint32_t>& places,
                        SymbolOf symbol_of) {
  SpelledStacks spelled;
  const auto known =
      places.size() - static_cast<size_t>(std::count(places.begin(), places.end(), kNoCall));
  std::vector<uint64_t> codes(forest.names.size(), UINT64_MAX);  // of names
  std::vector<int64_t> numbers(forest.size());  // 1 + place among those of the table and these
  int64_t known_before = 0;
  int64_t last = 0;
  for (size_t s = 0; s < forest.size(); ++s) {
    if (places[s] != kNoCall) {
      numbers[s] = ++known_before;
      continue;
    }
    const uint32_t parent = forest.parents[s];
    spelled.parents.SignedVarint((parent == kNoCall ? 0 : numbers[parent]) - last);
    last = numbers[s] = static_cast<int64_t>(known + ++spelled.count);
    uint64_t& code = codes[forest.symbols[s]];
    if (code == UINT64_MAX) {
      const std::string_view name = forest.names[forest.symbols[s]];
      const uint32_t symbol = symbol_of(name);
      code = symbol == kNoCall ? 2 * spelled.own_names.size() + 1 : 2 * uint64_t{symbol};
      if (symbol == kNoCall) spelled.own_names.push_back(name);
    }
    spelled.names.Varint(code);
  }
  return spelled;
}

// Appends them; `own_names` stand behind the table's among the names.
bool TakeSpelled(size_t table_names, ByteReader& in, CallForest& forest) {
  const size_t known = forest.size();
  const size_t count = ReadCount(in, 2);
  const size_t own_names = forest.names.size() - table_names;
  if (known + count >= kNoCall) return false;
  int64_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<int64_t>(known + i + 1);
    const int64_t step = in.SignedVarint();
    if (step > number || step < -number) return false;
    const int64_t parent = last + step;
    if (parent < 0 || parent >= number) return false;
    forest.parents.push_back(parent == 0 ? kNoCall : static_cast<uint32_t>(parent - 1));
    last = number;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint64_t code = in.Varint();
    const bool own = (code & 1) != 0;
    if (code >> 1 >= (own ? own_names : table_names)) return false;
    forest.symbols.push_back(static_cast<uint32_t>((code >> 1) + (own ? table_names : 0)));
  }
  return !in.failed();
}

}  // namespace

std::string StacksFolder(const std::string& summaries_folder) {
  return summaries_folder + "/stacks";
}

SummaryStacks::SummaryStacks(const std::string& summaries_folder, SummaryNames& names)
    : names_(names), tables_(StacksFolder(summaries_folder), "stacks") {}

std::unique_ptr<const SummaryStacks::Content> SummaryStacks::Content::Read(std::string raw) {
  auto content = std::make_unique<Content>();
  content->raw_ = std::move(raw);
  ByteReader in(content->raw_);
  size_t frames = 0;
  if (!ReadForest(in, content->forest_, frames) || in.remaining() != 0) return nullptr;
  return content;
}

void SummaryStacks::Content::MakeIndex() const {
  for (const std::string_view name : forest_.names) symbols_.Intern(name);
  const auto count = static_cast<uint32_t>(forest_.size());
  first_callee_.assign(count + 1, kNoCall);
  next_callee_.assign(count, kNoCall);
  for (uint32_t s = count; s-- > 0;) {
    const uint32_t parent = forest_.parents[s];
    uint32_t& first = first_callee_[parent == kNoCall ? count : parent];
    next_callee_[s] = first;
    first = s;
  }
}

uint32_t SummaryStacks::Content::SymbolOf(std::string_view name) const {
  std::call_once(indexed_, [&] { MakeIndex(); });
  return symbols_.Find(name).value;
}

// Both are in canonical order, so that what a caller calls is met in the same order here
// and there.
std::vector<uint32_t> SummaryStacks::Content::PlacesOf(const CallForest& other) const {
  std::vector<uint32_t> symbols;
  symbols.reserve(other.names.size());
  for (const std::string_view name : other.names) symbols.push_back(SymbolOf(name));
  std::vector<uint32_t> places(other.size(), kNoCall);
  // By stack of the other: which callee of its place comes next.
  std::vector<uint32_t> next(other.size(), kNoCall);
  uint32_t next_root = first_callee_.back();
  for (size_t s = 0; s < other.size(); ++s) {
    const uint32_t parent = other.parents[s];
    uint32_t& callee = parent == kNoCall ? next_root : next[parent];
    const uint64_t hash = other.hashes[other.symbols[s]];
    while (callee != kNoCall && forest_.hashes[forest_.symbols[callee]] < hash) {
      callee = next_callee_[callee];
    }
    // Where names share a hash one is not found, and spelled.
    if (callee == kNoCall || forest_.symbols[callee] != symbols[other.symbols[s]]) continue;
    places[s] = callee;
    next[s] = first_callee_[callee];
    callee = next_callee_[callee];
  }
  return places;
}

// None where another thread has made one meanwhile that will do.
std::optional<std::string> SummaryStacks::Grown(const Content* table, const CallForest& forest) {
  std::vector<uint32_t> places(forest.size(), kNoCall);
  CallForest all;
  if (table != nullptr) {
    places = table->PlacesOf(forest);
    all = table->forest();
  }
  if (!WantsNew(places)) return std::nullopt;
  const auto first_symbol = static_cast<uint32_t>(all.names.size());
  all.names.insert(all.names.end(), forest.names.begin(), forest.names.end());
  all.hashes.insert(all.hashes.end(), forest.hashes.begin(), forest.hashes.end());
  for (size_t s = 0; s < forest.size(); ++s) {
    if (places[s] != kNoCall) continue;
    places[s] = static_cast<uint32_t>(all.size());
    all.parents.push_back(forest.parents[s] == kNoCall ? kNoCall : places[forest.parents[s]]);
    const uint32_t symbol =
        table == nullptr ? kNoCall : table->SymbolOf(forest.names[forest.symbols[s]]);
    all.symbols.push_back(symbol == kNoCall ? first_symbol + forest.symbols[s] : symbol);
  }
  if (all.size() > kMostTableStacks) {
    return table == nullptr ? std::nullopt : Grown(nullptr, forest);
  }
  ByteWriter out;
  WriteForest(all, CanonicalOrder(all), {}, out);
  return out.Take();
}

std::string SummaryStacks::Pack(std::string_view payload) {
  ByteReader in(payload);
  CallForest forest;
  size_t frames = 0;
  CULPRIT_CHECK(ReadForest(in, forest, frames));
  if (!IsCanonical(forest, frames)) return kSpelled + names_.Pack(payload);
  auto table = tables_.Current();
  std::vector<uint32_t> places(forest.size(), kNoCall);
  if (table) places = table->content->PlacesOf(forest);
  if (WantsNew(places)) {
    table = tables_.Grow([&](const Content* current) { return Grown(current, forest); });
    if (table) places = table->content->PlacesOf(forest);
  }
  if (!table) return kSpelled + names_.Pack(payload);
  const SpelledStacks spelled = SpelledOf(
      forest, places, [&](std::string_view name) { return table->content->SymbolOf(name); });
  ByteWriter body;
  body.Varint(spelled.own_names.size() + forest.names.size() - frames);
  for (const std::string_view name : spelled.own_names) body.String(name);
  for (size_t i = frames; i < forest.names.size(); ++i) body.String(forest.names[i]);
  body.Varint(spelled.own_names.size());
  body.String(BitsOf(table->content->forest(), places));
  body.Varint(spelled.count);
  body.Bytes(spelled.parents.bytes());
  body.Bytes(spelled.names.bytes());
  body.Bytes(payload.substr(in.position()));
  ByteWriter out;
  out.String(table->digest);
  // Names that the table lacks are few; a table of names would grow with every summary.
  return kByTable + out.Take() + body.Take();
}

std::optional<std::string> SummaryStacks::Unpack(std::string_view packed) {
  if (packed.empty()) return std::nullopt;
  if (packed.front() == kSpelled) return names_.Unpack(packed.substr(1));
  if (packed.front() != kByTable) return std::nullopt;
  ByteReader head(packed.substr(1));
  const auto table = tables_.Find(std::string(head.String()));
  if (!table || head.failed()) return std::nullopt;
  const std::string_view body = packed.substr(1 + head.position());
  const CallForest& shared = table->content->forest();
  ByteReader in(body);
  const std::vector<std::string_view> names = ReadViews(in);
  const uint64_t own_names = in.Varint();
  if (in.failed() || own_names > names.size()) return std::nullopt;
  CallForest forest;
  forest.names = shared.names;
  forest.hashes = shared.hashes;
  for (const std::string_view name : std::span(names).first(own_names)) {
    forest.names.push_back(name);
    forest.hashes.push_back(HashOfName(name));
  }
  if (!TakeBits(shared, in.String(), forest)) return std::nullopt;
  const size_t known = forest.size();
  if (!TakeSpelled(shared.names.size(), in, forest)) return std::nullopt;
  ByteWriter out;
  WriteForest(forest, forest.size() == known ? AsTheyStand(known) : CanonicalOrder(forest),
              std::span(names).subspan(own_names), out);
  out.Bytes(body.substr(in.position()));
  return out.Take();
}

}  // namespace culprit::corpus
