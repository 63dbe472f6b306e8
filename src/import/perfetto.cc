// SPDX-License-Identifier: Apache-2.0
//
// The importer of Perfetto traces. A file is a sequence of packets, each a
// field 1 with its length. Packets come in any order of time, so facts are
// collected and sorted: memory is 56 bytes a fact beside names and stacks.
#include <algorithm>
#include <optional>

#include "import/importers.h"
#include "import/perfetto_parser.h"
#include "import/perfetto_proto.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

constexpr size_t kMaxPacket = size_t{256} << 20;
constexpr unsigned char kPacketTag = 0x0a;

// Whether the fields of a packet are such as TracePacket has. Head bytes may
// cut it, so a failure at the very end does not count.
bool LooksLikePacket(std::string_view bytes, bool& telling) {
  ProtoReader reader(bytes);
  ProtoField field;
  size_t fields = 0;
  while (reader.Next(field)) {
    ++fields;
    const bool scalar = field.number == 3 || field.number == 8 || field.number == 10 ||
                        field.number == 13 || field.number == 41 || field.number == 42 ||
                        field.number == 58 || field.number == 79 || field.number == 87;
    const bool small = field.number <= 12 || (field.number >= 33 && field.number <= 60);
    const bool is_varint = field.wire == ProtoField::Wire::kVarint;
    if (scalar != is_varint && (scalar || small)) return false;
    if (field.number > 2000) return false;
    telling = telling || field.number == 10 || field.number == 8 || field.number == 36 ||
              field.number == 33 || field.number == 50;
  }
  return !reader.failed() || fields != 0;
}

Match SniffPerfetto(const Source& source, std::string_view head) {
  if (source.is_folder() || head.empty()) return Match::kNo;
  bool telling = false;
  size_t whole = 0;
  for (std::string_view left = head; !left.empty() && whole < 16; ++whole) {
    if (static_cast<unsigned char>(left.front()) != kPacketTag) return Match::kNo;
    left.remove_prefix(1);
    uint64_t length = 0;
    if (!ProtoReader::TakeVarint(left, length)) break;
    const auto count = static_cast<size_t>(std::min<uint64_t>(length, left.size()));
    if (count != 0 && !LooksLikePacket(left.substr(0, count), telling)) return Match::kNo;
    left.remove_prefix(count);
  }
  return telling ? Match::kLikely : Match::kNo;
}

// Bytes that are no packet end the reading: without lengths there is no way
// to find the next one.
Status ReadPackets(const Bytes& bytes, PerfettoParser& parser, Diagnostics& diagnostics) {
  BytesReader input(bytes);
  while (!input.AtEnd()) {
    const uint64_t offset = input.offset();
    CULPRIT_ASSIGN(const std::string_view peeked, input.Peek(11));
    std::string_view head = peeked;
    uint64_t tag = 0;
    uint64_t length = 0;
    bool good = ProtoReader::TakeVarint(head, tag) && ProtoReader::TakeVarint(head, length);
    good = good && tag == kPacketTag && length <= kMaxPacket;
    if (!good || length > bytes.size() - offset - (peeked.size() - head.size())) {
      diagnostics.Count("bytes that are no packet, rest of the file skipped", 1, offset);
      return {};
    }
    input.Skip(peeked.size() - head.size());
    CULPRIT_ASSIGN(const std::string_view packet, input.Peek(static_cast<size_t>(length)));
    if (packet.size() < length) return {};
    parser.AddPacket(packet, offset);
    input.Skip(length);
  }
  return {};
}

std::string ClockName(uint32_t clock) {
  switch (clock) {
    case kMonotonicClock:
      return "monotonic";
    case kMonotonicRawClock:
      return "monotonic_raw";
    case kBootClock:
      return "boot";
    default:
      return "clock " + std::to_string(clock);
  }
}

Status ReadPerfetto(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                    Diagnostics& diagnostics) {
  std::optional<symbol::Symbolizer> symbolizer;
  if (options.symbols) {
    symbolizer.emplace(symbol::SymbolizerOptions{.sysroot = options.sysroot, .inlines = false});
  }
  PerfettoParser parser(writer, diagnostics, symbolizer ? &*symbolizer : nullptr,
                        options.default_period_ns);
  writer.metadata().source = "perfetto";
  CULPRIT_TRY(ReadPackets(source.bytes(), parser, diagnostics));
  if (parser.facts().empty()) {
    return Error{.message = "Perfetto trace without anything that is used here",
                 .file = source.name(),
                 .hint = "record the data sources linux.ftrace (sched), track_event or linux.perf"};
  }
  assemble::Assembler assembler(writer);
  trace::Metadata& metadata = writer.metadata();
  metadata.clock = ClockName(parser.clocks().trace_clock());
  metadata.sample_period_ns = parser.sample_period_ns();
  if (parser.packets_unused() != 0) {
    metadata.properties["packets.unused"] = std::to_string(parser.packets_unused());
  }
  CULPRIT_TRY(parser.facts().Feed(assembler, diagnostics));
  CULPRIT_TRY(assembler.Finish());
  diagnostics.Merge(assembler.diagnostics());
  const int64_t wall = parser.clocks().wall_offset_ns();
  if (wall != 0) metadata.wall_start_ns = metadata.begin_ns + wall;
  return {};
}

}  // namespace

Importer PerfettoImporter() {
  return {.name = "perfetto",
          .summary = "Perfetto protobuf traces: ftrace, track events, profiler samples",
          .sniff = SniffPerfetto,
          .read = ReadPerfetto};
}

}  // namespace culprit::import_
