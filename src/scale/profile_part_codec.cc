// SPDX-License-Identifier: Apache-2.0
#include "scale/profile_part_codec.h"

#include <bit>

#include "base/bytes.h"
#include "corpus/part_codec.h"

namespace culprit::scale {
namespace {

using corpus::ReadCount;
using episode::FunctionName;
using episode::PartFunction;
using episode::ProfilePart;
using episode::Symbol;

constexpr uint64_t kPartVersion = 2;

void WriteSet(const std::set<std::string>& strings, ByteWriter& out) {
  corpus::WriteStrings({strings.begin(), strings.end()}, out);
}

void WriteCounts(const std::map<Symbol, uint64_t>& counts, ByteWriter& out) {
  out.Varint(counts.size());
  for (const auto& [symbol, count] : counts) {
    out.Varint(symbol);
    out.Varint(count);
  }
}

void WriteFunction(const FunctionName& name, const PartFunction& function, ByteWriter& out) {
  out.String(name.module);
  out.String(name.build_id);
  out.String(name.function);
  WriteCounts(function.innermost, out);
  WriteCounts(function.inclusive, out);
  out.Varint(function.sequences.size());
  for (const episode::WeightedSequence& sequence : function.sequences) {
    out.Varint(sequence.weight);
    out.Varint(sequence.symbols.size());
    for (const Symbol symbol : sequence.symbols) out.Varint(symbol);
  }
}

class PartReader {
 public:
  explicit PartReader(std::string_view bytes) : in_(bytes) {}

  std::optional<ProfilePart> Read() {
    if (in_.Varint() != kPartVersion) return std::nullopt;
    if (!Symbols() || !Functions() || !Totals() || !Roles()) return std::nullopt;
    for (const std::string& name : corpus::ReadStrings(in_)) part_.processes.insert(name);
    for (const std::string& name : corpus::ReadStrings(in_)) part_.archs.insert(name);
    for (uint64_t* number :
         {&part_.traces, &part_.syscalls, &part_.owned, &part_.with_stack, &part_.function_calls}) {
      *number = in_.Varint();
    }
    part_.has_durations = in_.U8() != 0;
    part_.named = in_.U8() != 0;
    part_.diagnostics = corpus::ReadDiagnostics(in_);
    if (in_.failed() || in_.remaining() != 0) return std::nullopt;
    return std::move(part_);
  }

 private:
  bool Symbols() {
    const std::vector<std::string> names = corpus::ReadStrings(in_);
    if (in_.failed() || names.size() > episode::kMaxSymbols) return false;
    for (size_t i = 0; i < names.size(); ++i) {
      // A name that was there already would have its old number.
      if (part_.symbols.Intern(names[i]) != i) return false;
    }
    return true;
  }

  bool ReadSymbol(Symbol& symbol) {
    const uint64_t number = in_.Varint();
    if (in_.failed() || number >= part_.symbols.size()) return false;
    symbol = static_cast<Symbol>(number);
    return true;
  }

  bool Counts(std::map<Symbol, uint64_t>& counts) {
    const size_t rows = ReadCount(in_, 2);
    for (size_t i = 0; i < rows; ++i) {
      Symbol symbol = 0;
      if (!ReadSymbol(symbol)) return false;
      counts[symbol] = in_.Varint();
    }
    return !in_.failed() && counts.size() == rows;
  }

  bool Sequences(std::vector<episode::WeightedSequence>& sequences) {
    sequences.resize(ReadCount(in_, 2));
    for (episode::WeightedSequence& sequence : sequences) {
      sequence.weight = in_.Varint();
      sequence.symbols.resize(ReadCount(in_));
      for (Symbol& symbol : sequence.symbols) {
        if (!ReadSymbol(symbol)) return false;
      }
    }
    return !in_.failed();
  }

  bool Functions() {
    const size_t count = ReadCount(in_, 6);
    for (size_t i = 0; i < count; ++i) {
      FunctionName name;
      name.module = in_.String();
      name.build_id = in_.String();
      name.function = in_.String();
      PartFunction& function = part_.functions[name];
      if (!Counts(function.innermost) || !Counts(function.inclusive)) return false;
      if (!Sequences(function.sequences)) return false;
    }
    return !in_.failed() && part_.functions.size() == count;
  }

  bool Totals() {
    const size_t count = ReadCount(in_, 4);
    for (size_t i = 0; i < count; ++i) {
      Symbol symbol = 0;
      if (!ReadSymbol(symbol)) return false;
      episode::SymbolTotal& total = part_.totals[symbol];
      total.symbol = symbol;
      total.count = in_.Varint();
      total.first_half = in_.Varint();
      total.dur_ns = in_.SignedVarint();
    }
    return !in_.failed() && part_.totals.size() == count;
  }

  bool Roles() {
    const size_t count = ReadCount(in_, 2);
    for (size_t i = 0; i < count; ++i) {
      const std::string name(in_.String());
      if (!Counts(part_.roles[name])) return false;
    }
    return !in_.failed() && part_.roles.size() == count;
  }

  ByteReader in_;
  ProfilePart part_;
};

}  // namespace

std::string EncodeProfilePart(const ProfilePart& part) {
  ByteWriter out;
  out.Varint(kPartVersion);
  out.Varint(part.symbols.size());
  for (size_t i = 0; i < part.symbols.size(); ++i) {
    out.String(part.symbols.Name(static_cast<Symbol>(i)));
  }
  out.Varint(part.functions.size());
  for (const auto& [name, function] : part.functions) WriteFunction(name, function, out);
  out.Varint(part.totals.size());
  for (const auto& [symbol, total] : part.totals) {
    out.Varint(symbol);
    out.Varint(total.count);
    out.Varint(total.first_half);
    out.SignedVarint(total.dur_ns);
  }
  out.Varint(part.roles.size());
  for (const auto& [name, counts] : part.roles) {
    out.String(name);
    WriteCounts(counts, out);
  }
  WriteSet(part.processes, out);
  WriteSet(part.archs, out);
  for (const uint64_t number :
       {part.traces, part.syscalls, part.owned, part.with_stack, part.function_calls}) {
    out.Varint(number);
  }
  out.U8(part.has_durations ? 1 : 0);
  out.U8(part.named ? 1 : 0);
  corpus::WriteDiagnostics(part.diagnostics, out);
  return out.Take();
}

std::optional<ProfilePart> DecodeProfilePart(std::string_view bytes) {
  return PartReader(bytes).Read();
}

std::string EncodeProfileOptions(const episode::ProfileOptions& options) {
  // Every member by name: one that is added cannot be forgotten here.
  [[maybe_unused]] const auto& [processes, owners, episodes, jobs] = options;
  const auto& [modules, functions, unnamed] = owners;
  const auto& [support, share, max_length, max_candidates] = episodes;
  ByteWriter out;
  out.Varint(kPartVersion);
  corpus::WriteStrings(processes, out);
  corpus::WriteStrings(modules, out);
  corpus::WriteStrings(functions, out);
  out.U8(unnamed ? 1 : 0);
  out.Varint(support);
  out.U64(std::bit_cast<uint64_t>(share));
  out.Varint(max_length);
  out.Varint(max_candidates);
  return out.Take();
}

std::optional<episode::ProfileOptions> DecodeProfileOptions(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Varint() != kPartVersion) return std::nullopt;
  episode::ProfileOptions options;
  options.processes = corpus::ReadStrings(in);
  options.owners.modules = corpus::ReadStrings(in);
  options.owners.functions = corpus::ReadStrings(in);
  options.owners.unnamed = in.U8() != 0;
  options.episodes.support = in.Varint();
  options.episodes.share = std::bit_cast<double>(in.U64());
  const uint64_t max_length = in.Varint();
  options.episodes.max_length = static_cast<size_t>(max_length);
  options.episodes.max_candidates = in.Varint();
  const bool sound = max_length <= episode::kMaxEpisode && options.episodes.share >= 0 &&
                     options.episodes.share <= 1;
  if (in.failed() || in.remaining() != 0 || !sound) return std::nullopt;
  return options;
}

}  // namespace culprit::scale
