// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto_packets.h"

#include <algorithm>

#include "export/event_walk.h"

namespace culprit::export_ {
namespace {

enum : uint64_t { kStateCleared = 1, kNeedsState = 2 };         // sequence_flags
enum : uint64_t { kSliceBegin = 1, kSliceEnd = 2 };             // TrackEvent.type
enum : uint32_t { kTrackEventType = 9, kTrackEventUuid = 11 };  // TrackEvent

// InternedData's fields.
enum InternedField : uint32_t {
  kFunctionNames = 5,
  kFrames = 6,
  kCallstacks = 7,
  kBuildIds = 16,
  kMappingPaths = 17,
  kMappings = 19,
};

void PutString(InternedField field, uint64_t iid, std::string_view text, ProtoWriter& interned) {
  ProtoWriter string;
  interned.Message(field, string.Uint(1, iid).Bytes(2, text));
}

// Perfetto wants a build id's bytes, not their hexadecimal text.
std::string BytesOfHex(std::string_view hex) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return std::string(hex);
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return hex.size() % 2 == 0 ? bytes : std::string(hex);
}

}  // namespace

Status PacketSequence::PutPacket(const ProtoWriter& packet) {
  ProtoWriter trace;
  return out_.Write(trace.Message(1, packet).bytes());
}

Status PacketSequence::Put(std::optional<uint64_t> time_ns, PacketField field,
                           const ProtoWriter& payload, const ProtoWriter& interned) {
  if (!started_) {
    started_ = true;
    ProtoWriter first;
    first.Uint(kSequenceId, id_).Uint(kSequenceFlags, kStateCleared).Uint(kFirstPacket, 1);
    if (!defaults_.empty()) first.Message(kPacketDefaults, defaults_);
    CULPRIT_TRY(PutPacket(first));
  }
  ProtoWriter packet;
  if (time_ns) packet.Uint(kTimestamp, *time_ns);
  packet.Uint(kSequenceId, id_).Uint(kSequenceFlags, kNeedsState);
  if (!interned.empty()) packet.Message(kInternedData, interned);
  return PutPacket(packet.Message(field, payload));
}

InternedStacks::InternedStacks(const trace::Dictionary& dictionary)
    : dictionary_(dictionary),
      functions_(dictionary.strings().size(), false),
      modules_(dictionary.modules().size(), false),
      frames_(dictionary.frames().size(), false),
      stacks_(dictionary.stacks().size(), false) {}

void InternedStacks::InternModule(trace::ModuleId id, ProtoWriter& interned) {
  if (modules_[id.value]) return;
  modules_[id.value] = true;
  const trace::Module& module = dictionary_.modules()[id.value];
  ProtoWriter mapping;
  mapping.Uint(1, uint64_t{id.value} + 1);
  if (const std::string_view build_id = dictionary_.Text(module.build_id); !build_id.empty()) {
    PutString(kBuildIds, uint64_t{id.value} + 1, BytesOfHex(build_id), interned);
    mapping.Uint(2, uint64_t{id.value} + 1);
  }
  std::string_view path = dictionary_.Text(module.path);
  if (path.empty()) path = dictionary_.Text(module.name);
  while (!path.empty()) {  // readers put a slash before each part
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part.empty()) continue;
    const size_t known = path_parts_.size();
    const uint64_t iid = uint64_t{path_parts_.Intern(Utf8Text(part)).value} + 1;
    if (path_parts_.size() > known) {
      PutString(kMappingPaths, iid, path_parts_.Get(StringId(iid - 1)), interned);
    }
    mapping.Uint(7, iid);
  }
  interned.Message(kMappings, mapping);
}

void InternedStacks::InternFrame(trace::FrameId id, ProtoWriter& interned) {
  if (frames_[id.value]) return;
  frames_[id.value] = true;
  const trace::Frame& row = dictionary_.frames()[id.value];
  ProtoWriter frame;
  frame.Uint(1, uint64_t{id.value} + 1);
  if (row.function.valid()) {
    const uint64_t iid = uint64_t{row.function.value} + 1;
    if (!functions_[row.function.value]) {
      PutString(kFunctionNames, iid, Utf8Text(dictionary_.Text(row.function)), interned);
      functions_[row.function.value] = true;
    }
    frame.Uint(2, iid);
  }
  if (row.module.valid()) {
    InternModule(row.module, interned);
    frame.Uint(3, uint64_t{row.module.value} + 1).Uint(4, row.offset);
  }
  interned.Message(kFrames, frame);
}

uint64_t InternedStacks::Intern(trace::StackId stack, ProtoWriter& interned) {
  const uint64_t iid = uint64_t{stack.value} + 1;
  if (stacks_[stack.value]) return iid;
  stacks_[stack.value] = true;
  ProtoWriter callstack;
  callstack.Uint(1, iid);
  for (trace::FrameId frame : dictionary_.StackFrames(stack)) {
    InternFrame(frame, interned);
    callstack.Uint(2, uint64_t{frame.value} + 1);
  }
  interned.Message(kCallstacks, callstack);
  return iid;
}

Status FtraceBundles::Add(uint16_t cpu, uint64_t time_ns, int32_t tid, uint32_t field,
                          const ProtoWriter& payload, uint32_t common_flags) {
  ProtoWriter event;
  event.Uint(1, time_ns).Int(2, tid);
  if (common_flags != 0) event.Uint(5, common_flags);
  ProtoWriter& bundle = bundles_[cpu];
  if (bundle.empty()) bundle.Uint(1, cpu);
  bundle.Message(2, event.Message(field, payload));
  if (bundle.bytes().size() < kBundleBytes) return {};
  if (write_ == Write::kAtFlush) {
    held_.push_back(std::move(bundle));
  } else {
    CULPRIT_TRY(sequence_.Put({}, kFtraceEvents, bundle));
  }
  bundle = ProtoWriter();
  return {};
}

Status FtraceBundles::Flush() {
  for (const ProtoWriter& bundle : held_) CULPRIT_TRY(sequence_.Put({}, kFtraceEvents, bundle));
  held_.clear();
  for (const auto& [cpu, bundle] : bundles_) {
    if (!bundle.empty()) CULPRIT_TRY(sequence_.Put({}, kFtraceEvents, bundle));
  }
  bundles_.clear();
  return {};
}

SliceTracks::SliceTracks(PacketSequence& sequence, uint64_t& next_uuid, std::string name,
                         uint64_t parent, uint64_t first_uuid)
    : sequence_(sequence), next_uuid_(next_uuid), name_(std::move(name)), parent_(parent) {
  if (first_uuid != 0) tracks_.push_back({.uuid = first_uuid});
}

Status SliceTracks::EndUntil(Track& track, uint64_t time_ns) {
  while (!track.open_ends.empty() && track.open_ends.back() <= time_ns) {
    ProtoWriter event;
    event.Uint(kTrackEventType, kSliceEnd).Uint(kTrackEventUuid, track.uuid);
    CULPRIT_TRY(sequence_.Put(track.open_ends.back(), kTrackEvent, event));
    track.open_ends.pop_back();
  }
  return {};
}

Result<SliceTracks::Track*> SliceTracks::TrackFor(uint64_t begin_ns, uint64_t end_ns) {
  for (Track& track : tracks_) {
    CULPRIT_TRY(EndUntil(track, begin_ns));
    if (track.open_ends.empty() || track.open_ends.back() >= end_ns) return &track;
  }
  if (tracks_.size() == kMaxTracks) return nullptr;
  tracks_.push_back({.uuid = next_uuid_++});
  ProtoWriter descriptor;
  descriptor.Uint(1, tracks_.back().uuid).Bytes(2, name_);
  if (parent_ != 0) descriptor.Uint(5, parent_);
  CULPRIT_TRY(sequence_.Put({}, kTrackDescriptor, descriptor));
  return &tracks_.back();
}

Result<bool> SliceTracks::Add(uint64_t begin_ns, uint64_t end_ns, const ProtoWriter& event) {
  CULPRIT_ASSIGN(Track * track, TrackFor(begin_ns, end_ns));
  if (track == nullptr) return false;
  ProtoWriter begin = event;
  begin.Uint(kTrackEventType, kSliceBegin).Uint(kTrackEventUuid, track->uuid);
  CULPRIT_TRY(sequence_.Put(begin_ns, kTrackEvent, begin));
  track->open_ends.push_back(end_ns);
  return true;
}

Status SliceTracks::Finish() {
  for (Track& track : tracks_) CULPRIT_TRY(EndUntil(track, UINT64_MAX));
  return {};
}

}  // namespace culprit::export_
