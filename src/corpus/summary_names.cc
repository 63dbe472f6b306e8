// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_names.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "corpus/part_codec.h"

namespace culprit::corpus {
namespace {

constexpr size_t kMostTableBytes = 4 << 20;
// Short codes can stand for long names: more than this is not believed.
constexpr size_t kMostUnpacked = size_t{1} << 30;
constexpr size_t kFewNames = 16;  // make no table

bool WantsNew(const std::vector<StringId>& numbers) {
  const auto unknown = static_cast<size_t>(std::count(numbers.begin(), numbers.end(), StringId()));
  return unknown >= kFewNames && unknown * kNewTableShare >= numbers.size();
}

}  // namespace

std::string NamesFolder(const std::string& summaries_folder) { return summaries_folder + "/names"; }

SummaryNames::SummaryNames(const std::string& summaries_folder)
    : tables_(NamesFolder(summaries_folder), "names") {}

// NOLINTNEXTLINE(performance-unnecessary-value-param): other contents keep their bytes
std::unique_ptr<const SummaryNames::Content> SummaryNames::Content::Read(std::string raw) {
  ByteReader in(raw);
  auto content = std::make_unique<Content>();
  for (const std::string_view name : ReadViews(in)) content->names.Intern(name);
  if (in.failed() || in.remaining() != 0) return nullptr;
  return content;
}

// None where another thread has made one meanwhile that will do.
std::optional<std::string> SummaryNames::Grown(const Content* table,
                                               const std::vector<std::string_view>& names) {
  if (!WantsNew(NumbersOf(table, names))) return std::nullopt;
  StringTable all;
  for (size_t i = 0; table != nullptr && i < table->names.size(); ++i) {
    all.Intern(table->names.Get(StringId(i)));
  }
  for (const std::string_view name : names) all.Intern(name);
  ByteWriter out;
  out.Varint(all.size());
  for (size_t i = 0; i < all.size(); ++i) out.String(all.Get(StringId(i)));
  if (out.size() <= kMostTableBytes) return out.Take();
  return table == nullptr ? std::nullopt : Grown(nullptr, names);
}

std::vector<StringId> SummaryNames::NumbersOf(const Content* table,
                                              const std::vector<std::string_view>& names) {
  std::vector<StringId> numbers(names.size());
  for (size_t i = 0; i < names.size() && table != nullptr; ++i) {
    numbers[i] = table->names.Find(names[i]);
  }
  return numbers;
}

std::string SummaryNames::Pack(std::string_view payload) {
  ByteReader in(payload);
  const std::vector<std::string_view> names = ReadViews(in);
  CULPRIT_CHECK(!in.failed());
  auto table = tables_.Current();
  std::vector<StringId> numbers = NumbersOf(table ? table->content.get() : nullptr, names);
  if (WantsNew(numbers)) {
    table = tables_.Grow([&](const Content* current) { return Grown(current, names); });
    numbers = NumbersOf(table ? table->content.get() : nullptr, names);
  }
  ByteWriter out;
  out.String(table ? table->digest : std::string());
  out.Varint(names.size());
  int64_t last = 0;
  for (const StringId number : numbers) {
    out.Varint(number.valid() ? 1 + ZigZag(int64_t{number.value} - last) : 0);
    if (number.valid()) last = number.value;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (!numbers[i].valid()) out.String(names[i]);
  }
  out.Bytes(payload.substr(in.position()));
  return out.Take();
}

std::optional<std::string> SummaryNames::Unpack(std::string_view packed) {
  ByteReader in(packed);
  const std::string digest(in.String());
  const auto table = digest.empty() ? nullptr : tables_.Find(digest);
  if (!digest.empty() && !table) return std::nullopt;
  const auto known = static_cast<int64_t>(table ? table->content->names.size() : 0);
  std::vector<int64_t> numbers(ReadCount(in), -1);
  int64_t last = 0;
  for (int64_t& number : numbers) {
    const uint64_t code = in.Varint();
    if (code == 0) continue;
    const int64_t step = UnZigZag(code - 1);
    if (step > known || step < -known) return std::nullopt;
    number = last += step;
    if (number < 0 || number >= known) return std::nullopt;
  }
  ByteWriter out;
  out.Varint(numbers.size());
  for (const int64_t number : numbers) {
    out.String(number < 0 ? in.String()
                          : table->content->names.Get(StringId(static_cast<size_t>(number))));
    if (out.size() > kMostUnpacked) return std::nullopt;
  }
  if (in.failed()) return std::nullopt;
  out.Bytes(packed.substr(in.position()));
  return out.Take();
}

}  // namespace culprit::corpus
