// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_names.h"

#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"
#include "corpus/part_codec.h"
#include "corpus/quick_write.h"
#include "corpus/sealed_bytes.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNamesKind = "names";
constexpr size_t kMostTableBytes = 4 << 20;
constexpr size_t kMostLoaded = 8;
// Short codes can stand for long names: more than this is not believed.
constexpr size_t kMostUnpacked = size_t{1} << 30;
// A new table pays when it spares this share of a summary's names, and some.
constexpr size_t kNewTableShare = 8;
constexpr size_t kFewNames = 16;

bool WantsNew(size_t names, size_t unknown) {
  return unknown >= kFewNames && unknown * kNewTableShare >= names;
}

size_t CountUnknown(const std::vector<StringId>& numbers) {
  return static_cast<size_t>(std::count(numbers.begin(), numbers.end(), StringId()));
}

}  // namespace

struct SummaryNames::Table {
  std::string digest;
  StringTable names;
  size_t bytes = 0;
};

std::string NamesFolder(const std::string& summaries_folder) { return summaries_folder + "/names"; }

SummaryNames::SummaryNames(const std::string& summaries_folder)
    : folder_(NamesFolder(summaries_folder)) {}
SummaryNames::~SummaryNames() = default;

uint64_t SummaryNames::bytes_written() const {
  const std::lock_guard lock(mutex_);
  return bytes_written_;
}

SummaryNames::TablePointer SummaryNames::Load(const std::string& digest) const {
  // The digest comes from a file: it must not lead out of the folder.
  if (digest.empty() || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return nullptr;
  }
  const Result<std::string> sealed = ReadWholeFile(folder_ + "/" + digest);
  if (!sealed.ok()) return nullptr;
  const std::optional<std::string> raw = Unseal(kNamesKind, digest, sealed.value());
  if (!raw || ShortDigest(*raw) != digest) return nullptr;
  ByteReader in(*raw);
  auto table = std::make_shared<Table>();
  table->digest = digest;
  table->bytes = raw->size();
  for (const std::string_view name : ReadViews(in)) table->names.Intern(name);
  return in.failed() || in.remaining() != 0 ? nullptr : table;
}

void SummaryNames::Remember(const TablePointer& table) {
  std::erase(loaded_, table);
  loaded_.push_front(table);
  if (loaded_.size() > kMostLoaded) loaded_.pop_back();
}

SummaryNames::TablePointer SummaryNames::Find(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(loaded_.begin(), loaded_.end(), [&](const TablePointer& table) {
    return table->digest == digest;
  });
  const TablePointer table = known != loaded_.end() ? *known : Load(digest);
  if (table) Remember(table);
  return table;
}

// The one that grew longest, of those that earlier runs made.
SummaryNames::TablePointer SummaryNames::Largest() const {
  std::vector<std::pair<uint64_t, std::string>> files;
  std::error_code code;
  for (fs::directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
    std::error_code no_size;
    const uint64_t bytes = it->file_size(no_size);
    if (!no_size) files.emplace_back(bytes, it->path().filename().string());
  }
  std::sort(files.rbegin(), files.rend());
  if (files.size() > kMostLoaded) files.resize(kMostLoaded);
  for (const auto& [bytes, name] : files) {
    if (TablePointer table = Load(name)) return table;
  }
  return nullptr;
}

SummaryNames::TablePointer SummaryNames::Make(const Table* grown_from,
                                              const std::vector<std::string_view>& names) {
  auto table = std::make_shared<Table>();
  if (grown_from != nullptr) {
    for (size_t i = 0; i < grown_from->names.size(); ++i) {
      table->names.Intern(grown_from->names.Get(StringId(i)));
    }
  }
  for (const std::string_view name : names) table->names.Intern(name);
  ByteWriter out;
  out.Varint(table->names.size());
  for (size_t i = 0; i < table->names.size(); ++i) out.String(table->names.Get(StringId(i)));
  const std::string raw = out.Take();
  if (raw.size() > kMostTableBytes) return nullptr;
  table->bytes = raw.size();
  table->digest = ShortDigest(raw);
  const std::string sealed = Seal(kNamesKind, table->digest, raw);
  std::error_code code;
  fs::create_directories(folder_, code);
  if (code || !WriteQuickly(folder_ + "/" + table->digest, sealed).ok()) return nullptr;
  bytes_written_ += sealed.size();
  return table;
}

SummaryNames::TablePointer SummaryNames::Current() {
  const std::lock_guard lock(mutex_);
  if (!looked_) current_ = Largest();
  looked_ = true;
  return current_;
}

// Another thread may have made the table meanwhile.
SummaryNames::TablePointer SummaryNames::Grow(const std::vector<std::string_view>& names) {
  const std::lock_guard lock(mutex_);
  if (!WantsNew(names.size(), CountUnknown(NumbersOf(current_.get(), names)))) return current_;
  TablePointer made = current_ ? Make(current_.get(), names) : nullptr;
  if (!made) made = Make(nullptr, names);
  if (!made) return current_;
  current_ = made;
  Remember(made);
  return made;
}

std::vector<StringId> SummaryNames::NumbersOf(const Table* table,
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
  TablePointer table = Current();
  std::vector<StringId> numbers = NumbersOf(table.get(), names);
  if (WantsNew(names.size(), CountUnknown(numbers))) {
    table = Grow(names);
    numbers = NumbersOf(table.get(), names);
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
  const TablePointer table = digest.empty() ? nullptr : Find(digest);
  if (!digest.empty() && !table) return std::nullopt;
  const auto known = static_cast<int64_t>(table ? table->names.size() : 0);
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
    out.String(number < 0 ? in.String() : table->names.Get(StringId(static_cast<size_t>(number))));
    if (out.size() > kMostUnpacked) return std::nullopt;
  }
  if (in.failed()) return std::nullopt;
  out.Bytes(packed.substr(in.position()));
  return out.Take();
}

}  // namespace culprit::corpus
