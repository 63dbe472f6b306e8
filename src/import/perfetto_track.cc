// SPDX-License-Identifier: Apache-2.0
// The programs' side of a Perfetto trace: tracks and their events. A slice on a
// thread's track is a slice of that thread; one on any other track is an
// operation, an instance, of the thread or process the track is under.
#include <algorithm>

#include "import/perfetto_parser.h"
#include "import/perfetto_proto.h"

namespace culprit::import_ {
namespace {

using Kind = PerfettoFact::Kind;

constexpr size_t kMaxTracks = 1'000'000;
constexpr size_t kMaxOpen = 256;       // slices on one track
constexpr size_t kMaxAsync = 100'000;  // tracks and ids with open slices
constexpr int kMaxParents = 16;
constexpr int64_t kMaxMicros = (int64_t{1} << 61) / 1000;

constexpr uint64_t kSliceBegin = 1;
constexpr uint64_t kSliceEnd = 2;
// Tracks that our own export works out of the others.
constexpr std::string_view kCriticalPathTrack = "critical path";

// TrackEvent, with the parts of LegacyEvent that matter.
struct EventFields {
  uint64_t type = 0;
  bool has_track = false;
  uint64_t track = 0;
  uint64_t name_iid = 0;
  std::string_view name;
  bool legacy = false;
  char phase = 0;
  int64_t duration_us = 0;
  uint64_t id = 0;
  std::string_view scope;
  int64_t tid_override = -1;
  bool has_delta = false;
  bool has_absolute = false;
  int64_t micros = 0;
};

void ReadLegacy(std::string_view message, EventFields& event) {
  event.legacy = true;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1 && event.name_iid == 0) event.name_iid = field.value;
    if (field.number == 2) event.phase = static_cast<char>(field.value);
    if (field.number == 3) event.duration_us = field.Signed();
    if (field.number == 6 || field.number == 10 || field.number == 11) event.id = field.value;
    if (field.number == 7) event.scope = field.bytes;
    if (field.number == 19) event.tid_override = field.Signed32();
  }
}

EventFields ReadEvent(std::string_view message) {
  EventFields event;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 9) event.type = field.value;
    if (field.number == 10) event.name_iid = field.value;
    if (field.number == 23) event.name = field.bytes;
    if (field.number == 11) {
      event.track = field.value;
      event.has_track = true;
    }
    if (field.number == 6 && field.wire == ProtoField::Wire::kBytes) {
      ReadLegacy(field.bytes, event);
    }
    if (field.number == 1 || field.number == 16) {
      event.has_delta = field.number == 1;
      event.has_absolute = field.number == 16;
      event.micros = std::clamp(field.Signed(), -kMaxMicros, kMaxMicros);
    }
  }
  return event;
}

}  // namespace

// ThreadDescriptor: pid 1, tid 2, thread_name 5, reference_timestamp_us 6.
void PerfettoParser::ThreadDescriptor(std::string_view message, int64_t time_ns, Track& track,
                                      PerfettoSequence* sequence) {
  int64_t reference_us = 0;
  std::string_view name;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) track.pid = field.Signed32();
    if (field.number == 2) track.tid = field.Signed32();
    if (field.number == 5) name = field.bytes;
    if (field.number == 6) reference_us = std::clamp(field.Signed(), -kMaxMicros, kMaxMicros);
  }
  if (sequence != nullptr) {
    sequence->pid = track.pid;
    sequence->tid = track.tid;
    sequence->reference_us = reference_us;
  }
  facts_.AddName(time_ns, static_cast<int32_t>(track.tid), track.pid, name);
}

// ProcessDescriptor: pid 1, cmdline 2, process_name 6.
void PerfettoParser::ProcessDescriptor(std::string_view message, int64_t time_ns, Track& track) {
  std::string_view name;
  std::string_view command;
  ProtoReader reader(message);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) track.pid = field.Signed32();
    if (field.number == 2 && command.empty()) command = field.bytes;
    if (field.number == 6) name = field.bytes;
  }
  if (name.empty()) name = command;
  if (track.pid <= 0 || name.empty()) return;
  facts_.Add({.time_ns = time_ns,
              .a = track.pid,
              .b = facts_.Text(command).value,
              .text = facts_.Text(name.substr(name.rfind('/') + 1)),
              .kind = Kind::kProcess});
}

// TrackDescriptor: uuid 1, name 2, process 3, thread 4, parent_uuid 5.
void PerfettoParser::TrackDescriptor(const Packet& packet, int64_t time_ns) {
  uint64_t uuid = 0;
  Track track;
  ProtoReader reader(packet.data);
  ProtoField field;
  while (reader.Next(field)) {
    if (field.number == 1) uuid = field.value;
    if (field.number == 5) track.parent = field.value;
    if (field.number == 2) track.derived = field.bytes.starts_with(kCriticalPathTrack);
    if (field.number == 3) ProcessDescriptor(field.bytes, time_ns, track);
    if (field.number == 4) ThreadDescriptor(field.bytes, time_ns, track, nullptr);
  }
  if (tracks_.size() < kMaxTracks || tracks_.contains(uuid)) tracks_[uuid] = track;
}

int64_t PerfettoParser::ThreadOfTrack(uint64_t uuid, bool& own) const {
  own = false;
  for (int i = 0; i < kMaxParents; ++i) {
    const auto it = tracks_.find(uuid);
    if (it == tracks_.end()) return -1;
    if (it->second.tid >= 0) {
      own = i == 0;
      return it->second.tid;
    }
    if (it->second.pid >= 0) return it->second.pid;
    uuid = it->second.parent;
  }
  return -1;
}

void PerfettoParser::AsyncBegin(const std::string& key, int64_t time_ns, StringId name) {
  if (async_.size() >= kMaxAsync && !async_.contains(key)) return;
  std::vector<OpenSlice>& open = async_[key];
  if (open.size() < kMaxOpen) open.push_back({.time_ns = time_ns, .name = name});
}

void PerfettoParser::AsyncEnd(const std::string& key, int64_t time_ns, int64_t tid,
                              uint64_t offset) {
  const auto it = async_.find(key);
  if (it == async_.end()) {
    diagnostics_.Count("end of an asynchronous slice without its begin", 1, offset);
    return;
  }
  const OpenSlice slice = it->second.back();
  it->second.pop_back();
  if (it->second.empty()) async_.erase(it);
  if (tid < 0) {
    diagnostics_.Count("slice of a track without a thread", 1, offset);
    return;
  }
  facts_.Add({.time_ns = slice.time_ns,
              .a = std::max(time_ns, slice.time_ns),
              .tid = static_cast<int32_t>(tid),
              .text = slice.name,
              .offset = offset,
              .kind = Kind::kInstance});
}

void PerfettoParser::TrackEvent(const Packet& packet, int64_t time_ns) {
  PerfettoSequence& sequence = *SequenceOf(packet.sequence);
  const EventFields event = ReadEvent(packet.data);
  if (!packet.has_time && (event.has_delta || event.has_absolute)) {
    if (event.has_delta) {
      sequence.reference_us =
          std::clamp(sequence.reference_us + event.micros, -kMaxMicros, kMaxMicros);
    }
    const int64_t micros = event.has_delta ? sequence.reference_us : event.micros;
    const uint64_t plain = static_cast<uint64_t>(std::max<int64_t>(0, micros)) * 1000;
    time_ns = clocks_.ToTraceTime(kMonotonicClock, 0, plain).value_or(static_cast<int64_t>(plain));
  }
  const uint64_t uuid = event.has_track ? event.track : sequence.track;
  const auto known_track = tracks_.find(uuid);
  if (known_track != tracks_.end() && known_track->second.derived) return;
  bool own = false;
  int64_t tid = ThreadOfTrack(uuid, own);
  if (uuid == 0 && sequence.tid >= 0) {
    tid = sequence.tid;
    own = true;
  }
  if (event.tid_override >= 0) {
    tid = event.tid_override;
    own = true;
  }
  const std::string_view name =
      event.name.empty() ? sequence.EventName(event.name_iid) : event.name;
  const bool begin = event.type == kSliceBegin || event.phase == 'B';
  const bool end = event.type == kSliceEnd || event.phase == 'E';
  PerfettoFact fact{.time_ns = time_ns,
                    .tid = static_cast<int32_t>(tid),
                    .offset = packet.offset,
                    .kind = begin ? Kind::kSliceBegin : Kind::kSliceEnd};
  if (begin) fact.text = facts_.Text(name.empty() ? std::string_view("[unnamed]") : name);
  if ((begin || end) && own) return facts_.Add(fact);
  std::string key = "track " + std::to_string(uuid);
  if (begin) return AsyncBegin(key, time_ns, fact.text);
  if (end) return AsyncEnd(key, time_ns, tid, packet.offset);
  if (event.phase == 'X' && tid >= 0) {
    fact.text = facts_.Text(name);
    fact.kind = Kind::kSliceBegin;
    facts_.Add(fact);
    fact.time_ns += std::clamp<int64_t>(event.duration_us, 0, kMaxMicros / 8) * 1000;
    fact.kind = Kind::kSliceEnd;
    return facts_.Add(fact);
  }
  // Legacy asynchronous events pair by id, scope and, for the older kind, name.
  const bool async_begin = event.phase == 'b' || event.phase == 'S';
  const bool async_end = event.phase == 'e' || event.phase == 'F';
  key = "id " + std::to_string(event.id) + " " + std::string(event.scope) + " " + std::string(name);
  if (async_begin) return AsyncBegin(key, time_ns, facts_.Text(name));
  if (async_end) return AsyncEnd(key, time_ns, tid, packet.offset);
  ++unused_;
}

}  // namespace culprit::import_
