// SPDX-License-Identifier: Apache-2.0
#include "episode/profile_file.h"

#include "base/bytes.h"
#include "trace/file_layout.h"

namespace culprit::episode {
namespace {

constexpr std::string_view kMagic{"CPROF\x1a\n\0", 8};
constexpr uint16_t kMajor = 1;
constexpr uint16_t kMinor = 1;
constexpr size_t kLengthOffset = 16;
constexpr size_t kHashOffset = 24;
constexpr size_t kHeadBytes = 32;
// So that sums of counts of a hostile file cannot overflow.
constexpr uint64_t kMaxCount = uint64_t{1} << 48;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

void PutCounts(const std::vector<SymbolCount>& counts, ByteWriter& out) {
  out.Varint(counts.size());
  for (const SymbolCount& row : counts) {
    out.Varint(row.symbol);
    out.Varint(row.count);
  }
}

void PutFunction(const ProfiledFunction& function, ByteWriter& out) {
  out.String(function.name.module);
  out.String(function.name.build_id);
  out.String(function.name.function);
  PutCounts(function.innermost, out);
  PutCounts(function.inclusive, out);
  out.Varint(function.episodes_found);
  out.U8(function.bound);
  out.U8(function.capped ? 1 : 0);
  out.Varint(function.episodes.size());
  for (const EpisodeCount& row : function.episodes) {
    out.U8(row.episode.length);
    for (const Symbol symbol : row.episode.span()) out.Varint(symbol);
    out.Varint(row.count);
  }
}

std::string EncodePayload(const Profile& profile) {
  ByteWriter out;
  out.String(profile.arch);
  out.Varint(profile.processes.size());
  for (const std::string& process : profile.processes) out.String(process);
  out.Varint(profile.traces);
  out.Varint(profile.syscalls);
  out.Varint(profile.owned);
  out.U8(profile.has_durations ? 1 : 0);
  out.Varint(profile.symbols.size());
  for (size_t i = 0; i < profile.symbols.size(); ++i) {
    out.String(profile.symbols.Name(static_cast<Symbol>(i)));
  }
  out.Varint(profile.totals.size());
  for (const SymbolTotal& total : profile.totals) {
    out.Varint(total.symbol);
    out.Varint(total.count);
    out.Varint(total.first_half);
    out.Varint(static_cast<uint64_t>(total.dur_ns));
  }
  out.Varint(profile.functions.size());
  for (const ProfiledFunction& function : profile.functions) PutFunction(function, out);
  out.Varint(profile.roles.size());
  for (const RoleCalls& role : profile.roles) {
    out.String(role.name);
    PutCounts(role.calls, out);
  }
  return out.Take();
}

// Reads what PutFunction and EncodePayload write; failed() after any value
// that cannot be.
class PayloadReader {
 public:
  PayloadReader(std::string_view payload, uint16_t minor) : in_(payload), minor_(minor) {}

  Profile Read() {
    Profile profile;
    profile.arch = in_.String();
    const size_t processes = Length(1);
    for (size_t i = 0; i < processes; ++i) profile.processes.emplace_back(in_.String());
    for (size_t i = 1; i < processes; ++i) {
      Require(profile.processes[i - 1] < profile.processes[i]);
    }
    profile.traces = Count();
    profile.syscalls = Count();
    profile.owned = Count();
    profile.has_durations = Flag();
    const size_t symbols = Length(1);
    Require(symbols <= kMaxSymbols);
    for (size_t i = 0; i < symbols && !failed(); ++i) {
      Require(profile.symbols.Intern(in_.String()) == i);
    }
    symbols_ = profile.symbols.size();
    ReadTotals(profile);
    const size_t functions = Length(8);
    for (size_t i = 0; i < functions && !failed(); ++i) {
      profile.functions.push_back(ReadFunction());
      Require(i == 0 || profile.functions[i - 1].name < profile.functions[i].name);
    }
    if (minor_ >= 1) ReadRoles(profile);
    Require(in_.remaining() == 0);
    return profile;
  }

  bool failed() const { return failed_ || in_.failed(); }
  size_t position() const { return in_.position(); }

 private:
  void Require(bool holds) { failed_ = failed_ || !holds; }
  // A number of things that take at least `bytes` each: more than the rest can
  // hold is refused before memory is taken.
  size_t Length(size_t bytes) {
    const uint64_t count = in_.Varint();
    if (count <= in_.remaining() / bytes) return count;
    failed_ = true;
    return 0;
  }
  uint64_t Count() {
    const uint64_t count = in_.Varint();
    Require(count <= kMaxCount);
    return failed_ ? 0 : count;
  }
  Symbol ReadSymbol() {
    const uint64_t symbol = in_.Varint();
    Require(symbol < symbols_);
    return failed_ ? Symbol{0} : static_cast<Symbol>(symbol);
  }
  bool Flag() {
    const uint8_t flag = in_.U8();
    Require(flag <= 1);
    return flag == 1;
  }

  void ReadTotals(Profile& profile) {
    const size_t totals = Length(4);
    for (size_t i = 0; i < totals && !failed(); ++i) {
      SymbolTotal total = {.symbol = ReadSymbol()};
      total.count = Count();
      total.first_half = Count();
      const uint64_t dur_ns = in_.Varint();
      Require(total.first_half <= total.count && dur_ns <= INT64_MAX / kMaxSymbols);
      Require(i == 0 || profile.totals[i - 1].symbol < total.symbol);
      total.dur_ns = static_cast<int64_t>(dur_ns);
      profile.totals.push_back(total);
    }
  }

  void ReadRoles(Profile& profile) {
    const size_t roles = Length(2);
    Require(roles <= kMaxRoles);
    for (size_t i = 0; i < roles && !failed(); ++i) {
      RoleCalls role;
      role.name = in_.String();
      role.calls = ReadCounts();
      Require(i == 0 || profile.roles[i - 1].name < role.name);
      profile.roles.push_back(std::move(role));
    }
  }

  std::vector<SymbolCount> ReadCounts() {
    std::vector<SymbolCount> counts;
    const size_t rows = Length(2);
    for (size_t i = 0; i < rows && !failed(); ++i) {
      const Symbol symbol = ReadSymbol();
      counts.push_back({symbol, Count()});
      Require(i == 0 || counts[i - 1].symbol < symbol);
    }
    return counts;
  }

  ProfiledFunction ReadFunction() {
    ProfiledFunction function;
    function.name.module = in_.String();
    function.name.build_id = in_.String();
    function.name.function = in_.String();
    function.innermost = ReadCounts();
    function.inclusive = ReadCounts();
    function.episodes_found = Count();
    function.bound = in_.U8();
    function.capped = Flag();
    const size_t episodes = Length(3);
    Require(function.bound <= kMaxEpisode && episodes <= kMaxEpisodesKept);
    for (size_t i = 0; i < episodes && !failed(); ++i) {
      EpisodeCount row;
      row.episode.length = in_.U8();
      Require(row.episode.length >= 1 && row.episode.length <= kMaxEpisode);
      if (failed()) break;
      for (size_t at = 0; at < row.episode.length; ++at) row.episode.symbols[at] = ReadSymbol();
      row.count = Count();
      Require(row.count > 0);
      function.episodes.push_back(row);
    }
    return function;
  }

  ByteReader in_;
  uint16_t minor_;
  size_t symbols_ = 0;
  bool failed_ = false;
};

uint64_t U64At(std::string_view bytes, size_t offset) {
  return ByteReader(bytes.substr(offset)).U64();
}

}  // namespace

std::string EncodeProfile(const Profile& profile) {
  const std::string payload = EncodePayload(profile);
  ByteWriter out;
  out.Bytes(kMagic);
  out.U16(kMajor);
  out.U16(kMinor);
  out.U32(0);
  out.U64(payload.size());
  out.U64(trace::PayloadHash(payload));
  out.Bytes(payload);
  return out.Take();
}

Result<Profile> DecodeProfile(std::string_view bytes, const std::string& name) {
  const auto fail = [&](std::string message, size_t offset, std::string hint) {
    return Error{
        .message = std::move(message), .file = name, .offset = offset, .hint = std::move(hint)};
  };
  const std::string again = "make it again with culprit profile TRACE -o FILE";
  if (!bytes.starts_with(kMagic)) {
    return fail("is not a profile", 0, "profiles are written by culprit profile TRACE -o FILE");
  }
  if (bytes.size() < kHeadBytes) return fail("is a profile cut short", bytes.size(), again);
  ByteReader head(bytes.substr(kMagic.size()));
  const uint16_t major = head.U16();
  const uint16_t minor = head.U16();
  if (major != kMajor) {
    return fail("is a profile of version " + std::to_string(major) + ", this program reads " +
                    std::to_string(kMajor),
                kMagic.size(), "use a newer culprit, or make the profile again");
  }
  const std::string_view payload = bytes.substr(kHeadBytes);
  if (U64At(bytes, kLengthOffset) != payload.size()) {
    return fail("is a profile cut short, or has something after its end", kLengthOffset, again);
  }
  if (U64At(bytes, kHashOffset) != trace::PayloadHash(payload)) {
    return fail("is a damaged profile: its checksum is wrong", kHashOffset, again);
  }
  PayloadReader reader(payload, minor);
  Profile profile = reader.Read();
  if (reader.failed()) {
    return fail("is not a valid profile: its contents do not fit together",
                kHeadBytes + reader.position(), again);
  }
  return profile;
}

Result<Profile> ReadProfile(const std::string& path) {
  CULPRIT_ASSIGN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxFileBytes) {
    return Error{.message = "is too large for a profile", .file = path};
  }
  std::string bytes;
  CULPRIT_TRY(file.ReadAt(0, file.size(), bytes));
  return DecodeProfile(bytes, path);
}

Status WriteProfile(const Profile& profile, const std::string& path, Overwrite overwrite) {
  return WriteWholeFile(path, EncodeProfile(profile), overwrite);
}

std::string WithRightHash(std::string bytes) {
  if (bytes.size() < kHeadBytes) return bytes;
  const std::string_view payload = std::string_view(bytes).substr(kHeadBytes);
  ByteWriter head;
  head.U64(payload.size());
  head.U64(trace::PayloadHash(payload));
  return bytes.replace(kLengthOffset, head.size(), head.bytes());
}

}  // namespace culprit::episode
