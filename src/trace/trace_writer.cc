// SPDX-License-Identifier: Apache-2.0
#include "trace/trace_writer.h"

#include <algorithm>

#include "base/bytes.h"
#include "trace/column_codec.h"
#include "trace/dictionary_codec.h"
#include "trace/event_codec.h"
#include "trace/file_layout.h"

namespace culprit::trace {
namespace {

// Pieces stay well below what a reader accepts, and small enough that damage
// to one costs little.
constexpr size_t kPieceBytes = 8 << 20;
constexpr size_t kInstancesPerSection = 1 << 18;

struct SectionPlace {
  std::string_view tag;
  uint64_t offset = 0;
  uint64_t length = 0;
};

}  // namespace

struct TraceWriter::State {
  State(Sink sink_in, WriterOptions options_in)
      : sink(std::move(sink_in)),
        options(options_in),
        blocks_encoder(options_in.zstd_level),
        columns(options_in.zstd_level) {
    options.block_events = std::clamp<size_t>(options.block_events, 1, kMaxBlockEvents);
  }

  Status Put(std::string_view bytes);
  Status PutSection(std::string_view tag, std::string_view payload);
  Status PutCompressed(std::string_view tag, std::string_view raw);
  Status PutMetadata();
  Status PutDictionary();
  Status PutInstances();
  Status PutBlock();
  Status PutIndex();

  Sink sink;
  WriterOptions options;
  Dictionary dictionary;
  Metadata metadata;
  std::vector<Instance> instances;  // not yet written
  std::vector<Event> pending;
  uint64_t events = 0;
  uint64_t offset = 0;
  bool finished = false;
  DictionaryMark mark;
  std::string metadata_written;
  std::vector<SectionPlace> places;
  std::vector<BlockInfo> blocks;
  BlockEncoder blocks_encoder;
  ColumnEncoder columns;
};

Status TraceWriter::State::Put(std::string_view bytes) {
  if (offset == 0) {
    const std::string head = EncodeFileHead();
    offset += head.size();
    CULPRIT_TRY(sink(head));
  }
  offset += bytes.size();
  return sink(bytes);
}

Status TraceWriter::State::PutSection(std::string_view tag, std::string_view payload) {
  CULPRIT_TRY(Put({}));
  places.push_back({.tag = tag, .offset = offset, .length = kSectionHeadBytes + payload.size()});
  CULPRIT_TRY(Put(EncodeSectionHead(tag, payload)));
  return Put(payload);
}

Status TraceWriter::State::PutCompressed(std::string_view tag, std::string_view raw) {
  ByteWriter out;
  columns.Compress(raw, out);
  return PutSection(tag, out.bytes());
}

Status TraceWriter::State::PutMetadata() {
  std::string payload = EncodeMetadata(metadata);
  if (payload == metadata_written) return {};
  CULPRIT_TRY(PutSection(kMetadataTag, payload));
  metadata_written = std::move(payload);
  return {};
}

Status TraceWriter::State::PutDictionary() {
  for (;;) {
    const std::string piece = EncodeDictionaryPiece(dictionary, mark, kPieceBytes);
    if (piece.empty()) return {};
    CULPRIT_TRY(PutCompressed(kDictionaryTag, piece));
  }
}

Status TraceWriter::State::PutInstances() {
  for (size_t from = 0; from < instances.size(); from += kInstancesPerSection) {
    const size_t count = std::min(kInstancesPerSection, instances.size() - from);
    const Instance* begin = instances.data() + from;
    CULPRIT_TRY(PutCompressed(kInstancesTag, EncodeInstances(begin, begin + count)));
  }
  instances.clear();
  return {};
}

Status TraceWriter::State::PutBlock() {
  CULPRIT_TRY(PutMetadata());
  CULPRIT_TRY(PutDictionary());
  CULPRIT_TRY(PutInstances());
  if (pending.empty()) return {};
  std::string payload;
  BlockInfo info;
  blocks_encoder.Encode(pending, payload, info);
  pending.clear();
  CULPRIT_TRY(PutSection(kEventsTag, payload));
  info.offset = places.back().offset;
  info.length = places.back().length;
  blocks.push_back(std::move(info));
  return {};
}

Status TraceWriter::State::PutIndex() {
  ByteWriter out;
  out.Varint(places.size());
  size_t block = 0;
  for (const SectionPlace& place : places) {
    out.Bytes(place.tag);
    out.Varint(place.offset);
    out.Varint(place.length);
    if (place.tag == kEventsTag) EncodeBlockInfo(blocks[block++], out);
  }
  const uint64_t index_offset = offset;
  CULPRIT_TRY(PutCompressed(kIndexTag, out.bytes()));
  ByteWriter trailer;
  trailer.U64(index_offset);
  trailer.Bytes(kTrailerMagic);
  return Put(trailer.bytes());
}

TraceWriter::TraceWriter(Sink sink, WriterOptions options)
    : state_(std::make_unique<State>(std::move(sink), options)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Dictionary& TraceWriter::dictionary() { return state_->dictionary; }
Metadata& TraceWriter::metadata() { return state_->metadata; }
uint64_t TraceWriter::events() const { return state_->events; }
uint64_t TraceWriter::bytes() const { return state_->offset; }

void TraceWriter::AddInstance(const Instance& instance) { state_->instances.push_back(instance); }

Status TraceWriter::Add(const Event& event) {
  State& s = *state_;
  CULPRIT_CHECK(!s.finished);
  const bool sane = event.dur_ns >= 0 && event.dur_ns <= kMaxTimeNs &&
                    event.time_ns >= -kMaxTimeNs && event.time_ns <= kMaxTimeNs - event.dur_ns;
  if (!sane) {
    return Error{.message = "event with an impossible time: starts at " +
                            std::to_string(event.time_ns) + " ns, lasts " +
                            std::to_string(event.dur_ns) + " ns"};
  }
  if (s.options.census != nullptr) s.options.census->Count(event);
  s.pending.push_back(event);
  ++s.events;
  return s.pending.size() >= s.options.block_events ? s.PutBlock() : Status();
}

Status TraceWriter::Flush() {
  CULPRIT_CHECK(!state_->finished);
  return state_->PutBlock();
}

Status TraceWriter::Finish() {
  State& s = *state_;
  CULPRIT_CHECK(!s.finished);
  s.finished = true;
  CULPRIT_TRY(s.PutBlock());
  return s.PutIndex();
}

namespace {

Status WriteAll(const Trace& trace, const TraceWriter::Sink& sink, WriterOptions options) {
  TraceWriter writer(sink, options);
  writer.metadata() = trace.metadata;
  CopyDictionary(trace.dictionary, writer.dictionary());
  for (const Instance& instance : trace.instances) writer.AddInstance(instance);
  for (const Event& event : trace.events) CULPRIT_TRY(writer.Add(event));
  return writer.Finish();
}

}  // namespace

Status WriteTrace(const Trace& trace, const std::string& path, Overwrite overwrite,
                  WriterOptions options) {
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, overwrite));
  CULPRIT_TRY(WriteAll(
      trace, [&](std::string_view bytes) { return file.Write(bytes); }, options));
  return file.Commit();
}

std::string EncodeTrace(const Trace& trace, WriterOptions options) {
  std::string out;
  const Status status = WriteAll(
      trace,
      [&](std::string_view bytes) {
        out.append(bytes);
        return Status();
      },
      options);
  CULPRIT_CHECK(status.ok());
  return out;
}

}  // namespace culprit::trace
