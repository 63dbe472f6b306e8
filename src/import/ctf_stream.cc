// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_stream.h"

#include <algorithm>

namespace culprit::import_ {
namespace {

constexpr uint32_t kMagic = 0xC1FC1FC1;
constexpr uint64_t kDenseIds = 1 << 16;
constexpr uint32_t kNoEvent = UINT32_MAX;
constexpr uint64_t kMaxPacketBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxFrequency = 10'000'000'000;  // so that products fit
constexpr uint64_t kMaxTimeNs = uint64_t{1} << 62;
// A packet's header and context are tried on the first few bytes, then on more.
constexpr uint64_t kHeadBytes[] = {4096, 1 << 16, 1 << 20};

int64_t CyclesToNs(uint64_t cycles, uint64_t frequency) {
  if (frequency == 1'000'000'000) return static_cast<int64_t>(std::min(cycles, kMaxTimeNs));
  const uint64_t seconds = cycles / frequency;
  if (seconds > kMaxTimeNs / 1'000'000'000) return static_cast<int64_t>(kMaxTimeNs);
  return static_cast<int64_t>(seconds * 1'000'000'000 +
                              cycles % frequency * 1'000'000'000 / frequency);
}

uint64_t SoundFrequency(uint64_t frequency) {
  return frequency == 0 || frequency > kMaxFrequency ? 1'000'000'000 : frequency;
}

// Bounded, so that sums of a few of these cannot overflow.
int64_t OffsetNs(const CtfClock& clock) {
  const int64_t limit = int64_t{1} << 61;
  const int64_t seconds = std::clamp(clock.offset_s, -limit / 1'000'000'000, limit / 1'000'000'000);
  const bool negative = clock.offset_cycles < 0;
  const auto bits = static_cast<uint64_t>(clock.offset_cycles);
  const int64_t part =
      std::min(CyclesToNs(negative ? 0 - bits : bits, SoundFrequency(clock.frequency)), limit);
  return seconds * 1'000'000'000 + (negative ? -part : part);
}

std::vector<uint16_t> KeptValues(const CtfProgram& program) {
  std::vector<uint16_t> kept;
  for (const CtfOp& op : program.ops) {
    if (op.value != CtfOp::kNone) kept.push_back(op.value);
  }
  return kept;
}

}  // namespace

CtfDecoder::CtfDecoder(const CtfSchema& schema, std::span<const CtfWant> of_context,
                       Wants of_payload)
    : schema_(schema), of_context_(of_context), of_payload_(std::move(of_payload)) {
  if (!schema.clocks.empty()) wall_offset_ns_ = OffsetNs(schema.clocks.front());
  streams_.reserve(schema.streams.size());
  for (const CtfStreamClass& stream_class : schema.streams) {
    Stream& stream = streams_.emplace_back(schema, stream_class);
    stream.id = stream_class.id;
    stream.packet_header = stream.compiler.PacketHeader();
    stream.packet_context = stream.compiler.PacketContext();
    stream.event_header = stream.compiler.EventHeader();
    for (const CtfClock& clock : schema.clocks) {
      if (stream_class.clock.empty() || clock.name == stream_class.clock) {
        stream.frequency = SoundFrequency(clock.frequency);
        stream.offset_ns = OffsetNs(clock) - wall_offset_ns_;
        break;
      }
    }
    AddEvents(stream);
  }
}

void CtfDecoder::AddEvents(Stream& stream) {
  for (size_t i = 0; i < schema_.events.size(); ++i) {
    const CtfEventClass& event = schema_.events[i];
    if (event.stream_id != stream.id) continue;
    const auto index = static_cast<uint32_t>(stream.events.size());
    stream.events.push_back({.event = static_cast<uint32_t>(i)});
    if (event.id >= kDenseIds) {
      stream.sparse.emplace(event.id, index);
      continue;
    }
    if (event.id >= stream.dense.size()) stream.dense.resize(event.id + 1, kNoEvent);
    if (stream.dense[event.id] == kNoEvent) stream.dense[event.id] = index;
  }
}

CtfDecoder::Stream* CtfDecoder::StreamOf(const CtfValue& id) {
  if (!id.seen && streams_.size() == 1) return &streams_.front();
  for (Stream& stream : streams_) {
    if (stream.id == (id.seen ? id.number : 0)) return &stream;
  }
  return nullptr;
}

CtfDecoder::EventProgram* CtfDecoder::EventOf(Stream& stream, const CtfValue& id) {
  uint32_t index = kNoEvent;
  if (!id.seen) {
    if (stream.events.size() == 1) index = 0;
  } else if (id.number < stream.dense.size()) {
    index = stream.dense[id.number];
  } else if (const auto it = stream.sparse.find(id.number); it != stream.sparse.end()) {
    index = it->second;
  }
  if (index == kNoEvent) return nullptr;
  EventProgram& event = stream.events[index];
  if (!event.ready) {
    const CtfEventClass& event_class = schema_.events[event.event];
    event.program = stream.compiler.Event(event_class, of_context_, of_payload_(event_class));
    event.kept = KeptValues(event.program);
    event.ready = true;
  }
  return &event;
}

void CtfPacketLedger::Packet(uint64_t stream_class, const CtfMachine& machine, uint64_t offset,
                             Diagnostics& diagnostics) {
  const CtfValue& sequence = machine.role(CtfRole::kSequence);
  const CtfValue& discarded = machine.role(CtfRole::kDiscarded);
  const CtfValue& cpu = machine.role(CtfRole::kCpu);
  const CtfValue& instance = machine.role(CtfRole::kStreamId);
  const auto [it, is_first] = last_.try_emplace(
      {stream_class, instance.seen ? instance.number : UINT64_MAX, cpu.seen ? cpu.number : 0});
  Last& last = it->second;
  if (sequence.seen) {
    const uint64_t missing = sequence.number - last.sequence - 1;
    if (last.has_sequence && sequence.number > last.sequence && missing != 0) {
      diagnostics.Count("packet missing from its stream", missing, offset);
    }
    last.sequence = sequence.number;
    last.has_sequence = true;
  }
  if (!discarded.seen) return;
  // The counter of a stream's very first packet is about that packet; that of a
  // later one, seen first, is about times before the trace.
  const bool from_zero = is_first && sequence.seen && sequence.number == 0;
  const uint64_t before = is_first ? (from_zero ? 0 : discarded.number) : last.discarded;
  if (discarded.number > before) {
    diagnostics.Count("event lost by the tracer", discarded.number - before, offset);
    lost_by_cpu_[cpu.seen ? cpu.number : 0] += discarded.number - before;
  }
  last.discarded = discarded.number;
}

CtfStreamFile::CtfStreamFile(CtfDecoder& decoder, const SourceFile& file, CtfPacketLedger& ledger,
                             Diagnostics& diagnostics)
    : decoder_(decoder), file_(file), ledger_(ledger), diagnostics_(diagnostics) {
  const bool sound = OpenPacket(true);
  if (sound && machine_.role(CtfRole::kBegin).seen) time_ns_ = ToNs(machine_.clock);
}

int64_t CtfStreamFile::ToNs(uint64_t cycles) const {
  return CyclesToNs(cycles, stream_->frequency) + stream_->offset_ns;
}

void CtfStreamFile::Stop(std::string_view why) {
  diagnostics_.Count(why, 1, offset_);
  offset_ = file_.bytes->size();
  packet_bytes_ = 0;
}

void CtfStreamFile::EndPacket() {
  offset_ += packet_bytes_;
  packet_bytes_ = 0;
}

// False if `there` bytes were not enough, or if the file was given up.
bool CtfStreamFile::DecodeHead(uint64_t there) {
  if (!file_.bytes->ReadAt(offset_, there, buffer_).ok()) {
    Stop("stream that could not be read");
    return false;
  }
  const uint64_t clock = machine_.clock;
  machine_.data = reinterpret_cast<const uint8_t*>(buffer_.data());
  machine_.position = 0;
  machine_.end = 8 * uint64_t{buffer_.size()};
  for (size_t i = 0; i < kCtfRoles; ++i) machine_.values[i].seen = false;
  CtfDecoder::Stream& first = decoder_.first();
  machine_.registers.resize(std::max(machine_.registers.size(), first.compiler.registers()));
  CtfOutcome outcome = machine_.Run(first.packet_header);
  if (outcome == CtfOutcome::kDone) {
    const CtfValue& magic = machine_.role(CtfRole::kMagic);
    if (magic.seen && magic.number != kMagic) {
      Stop("packet without the magic number of a stream, rest of its file not read");
      return false;
    }
    stream_ = decoder_.StreamOf(machine_.role(CtfRole::kStreamClassId));
    if (stream_ == nullptr) {
      Stop("packet of an unknown stream class, rest of its file not read");
      return false;
    }
    machine_.registers.resize(std::max(machine_.registers.size(), stream_->compiler.registers()));
    outcome = machine_.Run(stream_->packet_context);
  }
  if (outcome == CtfOutcome::kNoOption) {
    Stop("packet context that cannot be decoded, rest of its file not read");
    return false;
  }
  const CtfValue& begin = machine_.role(CtfRole::kBegin);
  machine_.clock = begin.seen ? begin.number : clock;
  return outcome == CtfOutcome::kDone;
}

bool CtfStreamFile::OpenPacket(bool only_look) {
  const uint64_t left = file_.bytes->size() - std::min(offset_, file_.bytes->size());
  if (left == 0) return false;
  bool decoded = false;
  for (size_t i = 0; i < std::size(kHeadBytes) && !decoded; ++i) {
    decoded = DecodeHead(std::min(left, kHeadBytes[i]));
    if (offset_ >= file_.bytes->size()) return false;
    if (left <= kHeadBytes[i]) break;
  }
  if (!decoded) {
    if (!only_look) Stop("packet cut short in its header");
    return false;
  }
  if (only_look) {
    buffer_ = {};
    return true;
  }
  return LoadPacket();
}

bool CtfStreamFile::LoadPacket() {
  const uint64_t left = file_.bytes->size() - offset_;
  const CtfValue& packet_size = machine_.role(CtfRole::kPacketSize);
  const CtfValue& content_size = machine_.role(CtfRole::kContentSize);
  const bool sized = packet_size.seen && packet_size.number != 0;
  packet_bytes_ = sized ? packet_size.number / 8 : left;
  if (packet_bytes_ == 0 || packet_bytes_ * 8 < machine_.position) {
    Stop("packet smaller than its own header, rest of its file not read");
    return false;
  }
  cut_ = packet_bytes_ > left;
  if (cut_) diagnostics_.Count("packet cut short by the end of its file", 1, offset_);
  uint64_t load = std::min(packet_bytes_, left);
  if (load > kMaxPacketBytes) {
    diagnostics_.Count("packet beyond 1 GiB, its rest not read", 1, offset_);
    load = kMaxPacketBytes;
  }
  packet_bytes_ = std::min(packet_bytes_, left);
  if (buffer_.size() < load && !file_.bytes->ReadAt(offset_, load, buffer_).ok()) {
    Stop("stream that could not be read");
    return false;
  }
  machine_.data = reinterpret_cast<const uint8_t*>(buffer_.data());
  machine_.end = 8 * std::min<uint64_t>(load, buffer_.size());
  if (content_size.seen && content_size.number < machine_.end) {
    machine_.end = std::max(content_size.number, machine_.position);
  } else if (content_size.seen && content_size.number > machine_.end && !cut_) {
    diagnostics_.Count("packet whose content is larger than itself", 1, offset_);
  }
  const CtfValue& cpu = machine_.role(CtfRole::kCpu);
  cpu_ = cpu.seen && cpu.number < UINT16_MAX ? static_cast<uint16_t>(cpu.number) : UINT16_MAX;
  ledger_.Packet(stream_->id, machine_, offset_, diagnostics_);
  return true;
}

// One event, or the end of the packet.
bool CtfStreamFile::ReadEvent() {
  event_start_ = machine_.position;
  if (event_ != nullptr) {
    for (const uint16_t value : event_->kept) machine_.values[value].seen = false;
  }
  CtfOutcome outcome = machine_.Run(stream_->event_header);
  std::string_view problem = "event with a header that cannot be decoded, rest of its packet lost";
  if (outcome == CtfOutcome::kDone) {
    event_ = decoder_.EventOf(*stream_, machine_.role(CtfRole::kEventId));
    if (event_ == nullptr) {
      diagnostics_.Count("event of an unknown class, rest of its packet lost", 1, offset());
      return false;
    }
    if (machine_.registers.size() < stream_->compiler.registers()) {
      machine_.registers.resize(stream_->compiler.registers());
    }
    outcome = machine_.Run(event_->program);
    problem = "event whose fields cannot be decoded, rest of its packet lost";
  }
  if (outcome == CtfOutcome::kDone && machine_.position > event_start_) {
    time_ns_ = ToNs(machine_.clock);
    return true;
  }
  // Less than a byte at the end is padding.
  const bool padding = outcome == CtfOutcome::kPastEnd && machine_.end - event_start_ < 8;
  if (outcome == CtfOutcome::kPastEnd) problem = "event cut short by the end of its packet";
  if (!padding) diagnostics_.Count(problem, 1, offset());
  return false;
}

bool CtfStreamFile::Next() {
  for (;;) {
    if (packet_bytes_ == 0 && !OpenPacket(false)) {
      buffer_ = {};
      return false;
    }
    if (machine_.position < machine_.end && ReadEvent()) return true;
    EndPacket();
  }
}

}  // namespace culprit::import_
