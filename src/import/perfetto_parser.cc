// SPDX-License-Identifier: Apache-2.0
#include "import/perfetto_parser.h"

#include <algorithm>

#include "import/block_codec.h"
#include "import/perfetto_proto.h"

namespace culprit::import_ {
namespace {

// TracePacket
constexpr uint32_t kFtraceEvents = 1;
constexpr uint32_t kProcessTree = 2;
constexpr uint32_t kClockSnapshot = 6;
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequenceId = 10;
constexpr uint32_t kTrackEvent = 11;
constexpr uint32_t kInternedData = 12;
constexpr uint32_t kSequenceFlags = 13;
constexpr uint32_t kStateCleared = 41;
constexpr uint32_t kPreviousDropped = 42;
constexpr uint32_t kProcessDescriptor = 43;
constexpr uint32_t kThreadDescriptor = 44;
constexpr uint32_t kSystemInfo = 45;
constexpr uint32_t kCompressed = 50;
constexpr uint32_t kClockId = 58;
constexpr uint32_t kDefaults = 59;
constexpr uint32_t kTrackDescriptor = 60;
constexpr uint32_t kPerfSample = 66;
constexpr uint32_t kZstdCompressed = 133;

constexpr uint32_t kFlagCleared = 1;
constexpr uint32_t kFlagNeedsState = 2;

constexpr size_t kMaxSequences = 100'000;
constexpr size_t kMaxUnpacked = size_t{64} << 20;

bool IsData(uint32_t number) {
  switch (number) {
    case kFtraceEvents:
    case kProcessTree:
    case kClockSnapshot:
    case kTrackEvent:
    case kProcessDescriptor:
    case kThreadDescriptor:
    case kSystemInfo:
    case kCompressed:
    case kTrackDescriptor:
    case kPerfSample:
    case kZstdCompressed:
      return true;
    default:
      return false;
  }
}

}  // namespace

PerfettoSequence* PerfettoParser::SequenceOf(uint32_t id) {
  const auto it = sequences_.find(id);
  if (it != sequences_.end()) return it->second.get();
  if (sequences_.size() >= kMaxSequences) return nullptr;
  return (sequences_[id] = std::make_unique<PerfettoSequence>()).get();
}

void PerfettoParser::ReadPacket(std::string_view bytes, uint64_t offset, int depth) {
  Packet packet{.offset = offset};
  ProtoReader reader(bytes);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == kSequenceId) packet.sequence = static_cast<uint32_t>(field.value);
    if (field.number == kSequenceFlags) packet.flags |= static_cast<uint32_t>(field.value);
    if (field.number == kStateCleared && field.value != 0) packet.flags |= kFlagCleared;
    if (field.number == kPreviousDropped) packet.dropped = field.value != 0;
    if (field.number == kClockId) packet.clock = static_cast<uint32_t>(field.value);
    if (field.number == kInternedData) packet.interned = field.bytes;
    if (field.number == kDefaults) packet.defaults = field.bytes;
    if (field.number == kTimestamp) {
      packet.time = field.value;
      packet.has_time = true;
    }
    if (IsData(field.number) && field.wire == ProtoField::Wire::kBytes) {
      packet.kind = field.number;
      packet.data = field.bytes;
    }
  }
  ++packets_;
  if (reader.failed()) diagnostics_.Count("packet with bytes that cannot be read", 1, offset);
  if (packet.kind == kCompressed || packet.kind == kZstdCompressed) {
    ReadCompressed(packet, packet.kind == kZstdCompressed, depth);
  } else if (UpdateSequence(packet)) {
    Handle(packet);
  }
}

void PerfettoParser::ReadCompressed(const Packet& packet, bool zstd, int depth) {
  if (depth > 0) {
    diagnostics_.Count("compressed packets inside compressed ones", 1, packet.offset);
    return;
  }
  const size_t limit = std::min(kMaxUnpacked, std::max<size_t>(1 << 20, packet.data.size() * 1024));
  const Result<std::string> plain =
      Decompress(zstd ? BlockCodec::kZstd : BlockCodec::kZlib, packet.data, limit);
  if (!plain.ok()) {
    diagnostics_.Count("compressed packets that are damaged", 1, packet.offset);
    return;
  }
  ProtoReader reader(plain.value());
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1 && field.wire == ProtoField::Wire::kBytes) {
      ReadPacket(field.bytes, packet.offset, depth + 1);
    }
  }
  if (reader.failed()) diagnostics_.Count("compressed packets that are damaged", 1, packet.offset);
}

// False: the packet needs state that was lost.
bool PerfettoParser::UpdateSequence(const Packet& packet) {
  const bool is_new = !sequences_.contains(packet.sequence);
  PerfettoSequence* sequence = SequenceOf(packet.sequence);
  if (sequence == nullptr) {
    diagnostics_.Count("packet of one sequence too many", 1, packet.offset);
    return false;
  }
  // The first packet of a sequence has the mark too, without a loss.
  if (packet.dropped && !is_new) {
    diagnostics_.Count("packets lost before this one", 1, packet.offset);
    sequence->Invalidate();
  }
  if ((packet.flags & kFlagCleared) != 0) sequence->Clear();
  if ((packet.flags & kFlagNeedsState) != 0 && !sequence->valid()) {
    diagnostics_.Count("packet that refers to lost ones, skipped", 1, packet.offset);
    return false;
  }
  if (!packet.interned.empty()) sequence->AddInterned(packet.interned);
  if (!packet.defaults.empty()) sequence->SetDefaults(packet.defaults);
  return true;
}

bool PerfettoParser::PacketTime(const Packet& packet, int64_t& time_ns) {
  if (!packet.has_time) {
    time_ns = last_time_ns_;
    return false;
  }
  uint32_t clock = packet.clock;
  if (clock == 0) clock = SequenceOf(packet.sequence)->clock;
  if (clock == 0) clock = clocks_.trace_clock();
  const std::optional<int64_t> converted = clocks_.ToTraceTime(clock, packet.sequence, packet.time);
  if (!converted.has_value()) {
    diagnostics_.Count("packet whose clock no snapshot explains", 1, packet.offset);
    time_ns = last_time_ns_;
    return false;
  }
  last_time_ns_ = time_ns = *converted;
  return true;
}

void PerfettoParser::Handle(const Packet& packet) {
  if (packet.kind == kClockSnapshot) return clocks_.AddSnapshot(packet.sequence, packet.data);
  int64_t time_ns = 0;
  const bool timed = PacketTime(packet, time_ns);
  switch (packet.kind) {
    case kFtraceEvents:
      return FtraceBundle(packet);
    case kProcessTree:
      return ProcessTree(packet, time_ns);
    case kSystemInfo:
      return SystemInfo(packet.data);
    case kPerfSample:
      if (timed) PerfSample(packet, time_ns);
      return;
    case kTrackDescriptor:
      return TrackDescriptor(packet, time_ns);
    case kThreadDescriptor: {
      Track track;
      return ThreadDescriptor(packet.data, time_ns, track, SequenceOf(packet.sequence));
    }
    case kProcessDescriptor: {
      Track track;
      return ProcessDescriptor(packet.data, time_ns, track);
    }
    case kTrackEvent:
      return TrackEvent(packet, time_ns);
    default:
      ++unused_;
      return;
  }
}

}  // namespace culprit::import_
