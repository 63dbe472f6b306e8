// SPDX-License-Identifier: Apache-2.0
//
// A CTF stream file, read event by event. CtfDecoder holds what all files of a
// trace share: the schema and its programs, made when an event class is first
// met. CtfStreamFile walks the packets of one file; CtfPacketLedger sees every
// packet in order of time and accounts for what the tracer lost, also across
// files that continue each other (rotation).
//
// Damage ends the packet or, where the next packet cannot be found, the file;
// it is counted with its byte offset. Memory is one packet per open file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "import/ctf_compiler.h"
#include "import/ctf_program.h"
#include "import/ctf_schema.h"
#include "import/source.h"

namespace culprit::import_ {

class CtfDecoder {
 public:
  // Which fields of an event's payload are wanted.
  using Wants = std::function<std::span<const CtfWant>(const CtfEventClass&)>;

  struct EventProgram {
    uint32_t event = 0;  // index in the schema
    bool ready = false;
    CtfProgram program = {};
    std::vector<uint16_t> kept = {};  // values that it may set
  };
  struct Stream {
    Stream(const CtfSchema& schema, const CtfStreamClass& stream) : compiler(schema, stream) {}

    CtfCompiler compiler;
    CtfProgram packet_header;
    CtfProgram packet_context;
    CtfProgram event_header;
    std::unordered_map<uint64_t, uint32_t> sparse;  // event id to events
    std::vector<uint32_t> dense;                    // the same for small ids
    std::vector<EventProgram> events;
    uint64_t id = 0;
    uint64_t frequency = 1'000'000'000;
    int64_t offset_ns = 0;  // to the time of the trace's first clock
  };

  CtfDecoder(const CtfSchema& schema, std::span<const CtfWant> of_context, Wants of_payload);

  const CtfSchema& schema() const { return schema_; }
  Stream& first() { return streams_.front(); }
  // Null if there is none with this id.
  Stream* StreamOf(const CtfValue& id);
  EventProgram* EventOf(Stream& stream, const CtfValue& id);
  // Nanoseconds of the first clock's zero since 1970.
  int64_t wall_offset_ns() const { return wall_offset_ns_; }

 private:
  void AddEvents(Stream& stream);

  const CtfSchema& schema_;
  std::span<const CtfWant> of_context_;
  Wants of_payload_;
  std::vector<Stream> streams_;
  int64_t wall_offset_ns_ = 0;
};

class CtfPacketLedger {
 public:
  void Packet(uint64_t stream_class, const CtfMachine& machine, uint64_t offset,
              Diagnostics& diagnostics);
  const std::map<uint64_t, uint64_t>& lost_by_cpu() const { return lost_by_cpu_; }

 private:
  struct Last {
    uint64_t sequence = 0;
    uint64_t discarded = 0;
    bool has_sequence = false;
  };
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, Last> last_;
  std::map<uint64_t, uint64_t> lost_by_cpu_;
};

class CtfStreamFile {
 public:
  // All of them outlive the object.
  CtfStreamFile(CtfDecoder& decoder, const SourceFile& file, CtfPacketLedger& ledger,
                Diagnostics& diagnostics);

  // The next event becomes the current one; false at the end of the file.
  bool Next();

  // Of the current event; before the first Next(), a time that no event of a
  // sound file comes before.
  int64_t time_ns() const { return time_ns_; }
  uint32_t event_class() const { return event_->event; }
  uint16_t cpu() const { return cpu_; }
  uint64_t offset() const { return offset_ + event_start_ / 8; }
  std::span<const CtfValue, kCtfWants> fields() const {
    return std::span<const CtfValue, kCtfWants>(machine_.values.data() + kCtfRoles, kCtfWants);
  }
  const std::string& path() const { return file_.path; }

 private:
  bool OpenPacket(bool only_look);
  bool DecodeHead(uint64_t there);
  bool LoadPacket();
  bool ReadEvent();
  void Stop(std::string_view why);
  void EndPacket();
  int64_t ToNs(uint64_t cycles) const;

  CtfDecoder& decoder_;
  const SourceFile& file_;
  CtfPacketLedger& ledger_;
  Diagnostics& diagnostics_;
  std::string buffer_;
  CtfMachine machine_;
  CtfDecoder::Stream* stream_ = nullptr;
  CtfDecoder::EventProgram* event_ = nullptr;
  uint64_t offset_ = 0;        // of the packet in the file
  uint64_t packet_bytes_ = 0;  // 0: no packet is open
  uint64_t event_start_ = 0;
  int64_t time_ns_ = INT64_MIN;
  uint16_t cpu_ = UINT16_MAX;
  bool cut_ = false;  // the file ends inside this packet
};

}  // namespace culprit::import_
