// SPDX-License-Identifier: Apache-2.0
//
// The pieces a Perfetto trace is made of. PacketSequence writes packets that
// share interned data; FtraceBundles collects kernel events by CPU;
// SliceTracks lays slices on tracks so that on each they nest. Field numbers
// are those of Perfetto's protos and stand beside their use. All write into
// one ChunkedSink; order between packets does not matter to readers, except
// that interned data comes before its use and ends before begins of the same
// time on a track. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"
#include "export/chunked_sink.h"
#include "export/proto_writer.h"
#include "trace/dictionary.h"

namespace culprit::export_ {

// TracePacket's fields.
enum PacketField : uint32_t {
  kFtraceEvents = 1,
  kProcessTree = 2,
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kPacketDefaults = 59,
  kTrackDescriptor = 60,
  kPerfSample = 66,
  kFirstPacket = 87,
};

class PacketSequence {
 public:
  // `defaults` is a TracePacketDefaults, or empty.
  PacketSequence(uint32_t id, ChunkedSink& out, ProtoWriter defaults = {})
      : id_(id), out_(out), defaults_(std::move(defaults)) {}

  Status Put(std::optional<uint64_t> time_ns, PacketField field, const ProtoWriter& payload,
             const ProtoWriter& interned = {});

 private:
  Status PutPacket(const ProtoWriter& packet);

  uint32_t id_;
  ChunkedSink& out_;
  ProtoWriter defaults_;
  bool started_ = false;
};

// Which stacks a sequence has interned already. The interning id of a thing is
// its id in the dictionary plus one.
class InternedStacks {
 public:
  explicit InternedStacks(const trace::Dictionary& dictionary);
  // The callstack's interning id; what is new goes into `interned`.
  uint64_t Intern(trace::StackId stack, ProtoWriter& interned);

 private:
  void InternFrame(trace::FrameId id, ProtoWriter& interned);
  void InternModule(trace::ModuleId id, ProtoWriter& interned);

  const trace::Dictionary& dictionary_;
  StringTable path_parts_;
  std::vector<bool> functions_;
  std::vector<bool> modules_;
  std::vector<bool> frames_;
  std::vector<bool> stacks_;
};

class FtraceBundles {
 public:
  // Where times are equal readers keep the order of the file: events that must
  // come after others are held back until Flush().
  enum class Write { kAtOnce, kAtFlush };
  FtraceBundles(PacketSequence& sequence, Write write) : sequence_(sequence), write_(write) {}
  // `payload` becomes the FtraceEvent's field `field`.
  Status Add(uint16_t cpu, uint64_t time_ns, int32_t tid, uint32_t field,
             const ProtoWriter& payload, uint32_t common_flags = 0);
  Status Flush();

 private:
  static constexpr size_t kBundleBytes = 64 * 1024;

  PacketSequence& sequence_;
  const Write write_;
  std::map<uint16_t, ProtoWriter> bundles_;
  std::vector<ProtoWriter> held_;  // full ones
};

class SliceTracks {
 public:
  static constexpr size_t kMaxTracks = 64;

  // Tracks are made on demand: the first is `first_uuid` if that is not zero
  // (its descriptor is the caller's), others are called `name`, under `parent`.
  SliceTracks(PacketSequence& sequence, uint64_t& next_uuid, std::string name, uint64_t parent,
              uint64_t first_uuid = 0);

  // Slices come by rising begin, the longer first. `event` holds the begin's
  // fields besides type and track. False: it overlaps too many others.
  Result<bool> Add(uint64_t begin_ns, uint64_t end_ns, const ProtoWriter& event);
  // Ends what is open.
  Status Finish();

 private:
  struct Track {
    uint64_t uuid = 0;
    std::vector<uint64_t> open_ends;  // outermost first, so never rising
  };
  Status EndUntil(Track& track, uint64_t time_ns);
  Result<Track*> TrackFor(uint64_t begin_ns, uint64_t end_ns);

  PacketSequence& sequence_;
  uint64_t& next_uuid_;
  std::string name_;
  uint64_t parent_;
  std::vector<Track> tracks_;
};

}  // namespace culprit::export_
