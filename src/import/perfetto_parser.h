// SPDX-License-Identifier: Apache-2.0
//
// PerfettoParser: the packets of a Perfetto trace to facts. Field numbers are
// those of Perfetto's published trace protos; they stand as named constants
// where they are used. Reads ftrace bundles (also compact ones), the process
// tree, track events, profiler samples and clocks; other packets are counted
// by kind in packets_unused(). One thread at a time; memory is that of
// PerfettoFacts and of the sequences' interned data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "import/perfetto_clock.h"
#include "import/perfetto_facts.h"
#include "import/perfetto_sequence.h"
#include "symbol/symbolizer.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

class PerfettoParser {
 public:
  // All outlive this object; `symbolizer` may be nullptr.
  PerfettoParser(trace::TraceWriter& writer, Diagnostics& diagnostics,
                 symbol::Symbolizer* symbolizer, int64_t default_period_ns)
      : writer_(writer),
        diagnostics_(diagnostics),
        symbolizer_(symbolizer),
        default_period_ns_(default_period_ns) {}

  // The bytes of one TracePacket, which stood at `offset` of the input.
  void AddPacket(std::string_view packet, uint64_t offset) { ReadPacket(packet, offset, 0); }

  PerfettoFacts& facts() { return facts_; }
  const PerfettoClocks& clocks() const { return clocks_; }
  uint64_t packets() const { return packets_; }
  uint64_t packets_unused() const { return unused_; }
  int64_t sample_period_ns() const { return sample_period_ns_; }

 private:
  struct Packet {
    uint32_t sequence = 0;
    uint32_t flags = 0;
    uint32_t clock = 0;
    uint64_t time = 0;
    bool has_time = false;
    bool dropped = false;
    std::string_view interned;
    std::string_view defaults;
    uint32_t kind = 0;  // field number of the data
    std::string_view data;
    uint64_t offset = 0;
  };
  struct Track {
    uint64_t parent = 0;
    int64_t pid = -1;
    int64_t tid = -1;      // of a thread's own track
    bool derived = false;  // worked out from the rest by who wrote it
  };
  struct OpenSlice {
    int64_t time_ns = 0;
    StringId name;
  };

  void ReadPacket(std::string_view bytes, uint64_t offset, int depth);
  void ReadCompressed(const Packet& packet, bool zstd, int depth);
  bool UpdateSequence(const Packet& packet);
  PerfettoSequence* SequenceOf(uint32_t id);
  // Of the packet; the time of the last one before it where it has none.
  bool PacketTime(const Packet& packet, int64_t& time_ns);
  void Handle(const Packet& packet);

  // perfetto_ftrace.cc
  void FtraceBundle(const Packet& packet);
  void FtraceEvent(std::string_view message, uint16_t cpu, int64_t shift_ns, bool raw_clock,
                   uint64_t offset);
  void FtracePayload(uint32_t kind, std::string_view message, PerfettoFact fact);
  void CompactSched(std::string_view message, uint16_t cpu, int64_t shift_ns, uint64_t offset);
  void ProcessTree(const Packet& packet, int64_t time_ns);
  void SystemInfo(std::string_view message);
  void PerfSample(const Packet& packet, int64_t time_ns);

  // perfetto_track.cc
  void TrackDescriptor(const Packet& packet, int64_t time_ns);
  void ThreadDescriptor(std::string_view message, int64_t time_ns, Track& track,
                        PerfettoSequence* sequence);
  void ProcessDescriptor(std::string_view message, int64_t time_ns, Track& track);
  void TrackEvent(const Packet& packet, int64_t time_ns);
  void AsyncBegin(const std::string& key, int64_t time_ns, StringId name);
  void AsyncEnd(const std::string& key, int64_t time_ns, int64_t tid, uint64_t offset);
  // The thread of a track, or the main thread of the process it is under.
  int64_t ThreadOfTrack(uint64_t uuid, bool& own) const;

  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  symbol::Symbolizer* symbolizer_;
  int64_t default_period_ns_;
  PerfettoFacts facts_;
  PerfettoClocks clocks_;
  std::unordered_map<uint32_t, std::unique_ptr<PerfettoSequence>> sequences_;
  std::unordered_map<uint64_t, Track> tracks_;
  std::unordered_map<std::string, std::vector<OpenSlice>> async_;
  std::unordered_map<int64_t, int64_t> process_of_;
  int64_t last_time_ns_ = 0;
  int64_t sample_period_ns_ = 0;
  uint64_t packets_ = 0;
  uint64_t unused_ = 0;
};

}  // namespace culprit::import_
