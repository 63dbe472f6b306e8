// SPDX-License-Identifier: Apache-2.0
#include "trace/trace_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/bytes.h"
#include "trace/column_codec.h"
#include "trace/dictionary_codec.h"
#include "trace/event_codec.h"
#include "trace/file_layout.h"
#include "trace/owner_state.h"

namespace culprit::trace {
namespace {

// A dictionary may unpack to this many times the file's size, plus a constant:
// real ones stay far below, a small hostile file cannot ask for gigabytes.
constexpr uint64_t kMaxUnpackRatio = 256;
constexpr uint64_t kMaxUnpackBase = 16 << 20;
constexpr size_t kScanChunkBytes = 1 << 20;
constexpr uint32_t kMaxLostThreads = 1 << 20;
// An index that speaks of more events is not believed before they are seen.
constexpr uint64_t kMaxEventsAByte = 16;

struct Place {
  std::string tag;
  uint64_t offset = 0;
  uint64_t length = 0;  // of the whole section
};

// One decoder a thread: its buffers are worth keeping, and blocks may be read from
// several threads.
BlockDecoder& DecoderOfThisThread() {
  thread_local BlockDecoder decoder;
  return decoder;
}

}  // namespace

struct TraceReader::State {
  std::string name;
  std::optional<InputFile> file;  // or
  std::string memory;
  uint64_t size = 0;

  Metadata metadata;
  Dictionary dictionary;
  DictionaryMap map;
  std::vector<Instance> instances;
  std::vector<BlockInfo> blocks;
  Diagnostics diagnostics;
  bool complete = false;
  bool dictionary_damaged = false;
  StackId lost_stack;  // stands for stacks that damage took
  uint64_t unpacked = 0;
  ColumnDecoder columns;

  Status ReadBytes(uint64_t offset, uint64_t length, std::string& out) const;
  Status CheckFileHead();
  // The payload of a section, or nothing (and a diagnostic) if it is damaged.
  std::optional<std::string> ReadPayload(const Place& place);
  std::optional<std::vector<Place>> ReadIndex();
  std::vector<Place> Scan();
  uint64_t FindSection(uint64_t from) const;
  bool Unpack(std::string_view payload, std::string& raw);
  void Accept(const Place& place, std::string_view payload);
  void ReadSections(const std::vector<Place>& places);
  void ScanBlockInfo(const Place& place, std::string_view payload);
  void StandInForLostRows();
  void ReplaceLostIds(std::vector<Event>& events) const;
  bool HasAllIds() const { return !dictionary_damaged && map.identity; }
  IdLimits Limits() const;
  // The payload of a block of events; nothing if it is damaged.
  std::optional<std::string> ReadBlockPayload(const BlockInfo& block);
  Status Load();
};

bool BlockInfo::HasThread(ThreadId thread) const {
  const auto it = std::lower_bound(
      owners.begin(), owners.end(), thread,
      [](const Owner& owner, ThreadId id) { return owner.thread.value + 1 < id.value + 1; });
  return it != owners.end() && it->thread == thread;
}

Status TraceReader::State::ReadBytes(uint64_t offset, uint64_t length, std::string& out) const {
  if (file) return file->ReadAt(offset, length, out);
  out.assign(offset < size ? std::string_view(memory).substr(offset, length) : std::string_view());
  return {};
}

Status TraceReader::State::CheckFileHead() {
  std::string head;
  CULPRIT_TRY(ReadBytes(0, kFileHeadBytes, head));
  if (head.empty()) return Error{.message = "is empty: there is no trace in it", .file = name};
  ByteReader in(head);
  const std::string_view magic = in.Bytes(std::min(head.size(), kFileMagic.size()));
  if (magic != kFileMagic.substr(0, magic.size())) {
    return Error{
        .message = "is not a culprit trace: it does not begin with the magic bytes",
        .file = name,
        .offset = 0,
        .hint =
            "native traces end in .ctrace and are made by `culprit record` or `culprit import`"};
  }
  const uint16_t major = in.U16();
  if (!in.failed() && major > kMajorVersion) {
    return Error{.message = "was written in format version " + std::to_string(major) +
                            "; this program reads up to " + std::to_string(kMajorVersion),
                 .file = name,
                 .offset = kFileMagic.size(),
                 .hint = "use a newer culprit"};
  }
  if (head.size() < kFileHeadBytes) {
    return Error{.message = "is cut off inside its head, before any data",
                 .file = name,
                 .offset = head.size()};
  }
  return {};
}

std::optional<std::string> TraceReader::State::ReadPayload(const Place& place) {
  std::string bytes;
  if (!ReadBytes(place.offset, place.length, bytes).ok() || bytes.size() < kSectionHeadBytes) {
    return {};
  }
  const auto head = DecodeSectionHead(bytes);
  bytes.erase(0, kSectionHeadBytes);
  if (!head || head->length != bytes.size() || head->hash != PayloadHash(bytes)) return {};
  return bytes;
}

std::optional<std::vector<Place>> TraceReader::State::ReadIndex() {
  if (size < kFileHeadBytes + kTrailerBytes) return {};
  std::string bytes;
  if (!ReadBytes(size - kTrailerBytes, kTrailerBytes, bytes).ok()) return {};
  ByteReader trailer(bytes);
  const uint64_t offset = trailer.U64();
  if (trailer.Bytes(8) != kTrailerMagic || offset > size - kTrailerBytes) return {};
  const auto payload =
      ReadPayload({.tag = {}, .offset = offset, .length = size - kTrailerBytes - offset});
  std::string raw;
  if (!payload || !Unpack(*payload, raw)) return {};
  ByteReader in(raw);
  const uint64_t count = in.Varint();
  if (count > in.remaining()) return {};
  std::vector<Place> places;
  for (uint64_t i = 0; i < count; ++i) {
    Place place;
    place.tag = std::string(in.Bytes(4));
    place.offset = in.Varint();
    place.length = in.Varint();
    if (in.failed() || place.offset > offset || place.length > offset - place.offset) return {};
    if (place.tag == kEventsTag) {
      // Ids are checked again when the block is decoded.
      BlockInfo info;
      if (!DecodeBlockInfo(in, {.threads = UINT32_MAX, .stacks = UINT32_MAX}, info)) return {};
      info.offset = place.offset;
      info.length = place.length;
      blocks.push_back(std::move(info));
    }
    places.push_back(std::move(place));
  }
  return places;
}

// The next offset >= `from` where a section's head stands, or the file's end.
uint64_t TraceReader::State::FindSection(uint64_t from) const {
  std::string chunk;
  for (uint64_t base = from; base + kSectionHeadBytes <= size; base += kScanChunkBytes) {
    if (!ReadBytes(base, kScanChunkBytes + kSectionHeadBytes - 1, chunk).ok()) return size;
    for (size_t i = 0; i + kSectionHeadBytes <= chunk.size(); ++i) {
      if (DecodeSectionHead(std::string_view(chunk).substr(i))) return base + i;
    }
  }
  return size;
}

// Without an index: section by section from the front. Reading goes on behind
// damage at the next head that can be recognized.
std::vector<Place> TraceReader::State::Scan() {
  std::vector<Place> places;
  uint64_t offset = kFileHeadBytes;
  std::string bytes;
  while (offset < size) {
    if (!ReadBytes(offset, kSectionHeadBytes, bytes).ok()) break;
    const auto head = DecodeSectionHead(bytes);
    if (!head) {
      const uint64_t next = FindSection(offset + 1);
      // The trailer of a finished file is no damage.
      const bool trailer = size - offset == kTrailerBytes && bytes.ends_with(kTrailerMagic);
      if (!trailer && next < size) {
        diagnostics.Count("stretch of unreadable bytes between sections", 1, offset);
        dictionary_damaged = true;
      } else if (!trailer) {
        diagnostics.Count("cut off: the last section is not whole", 1, offset);
      }
      offset = next;
      continue;
    }
    const uint64_t room = size - offset - kSectionHeadBytes;
    if (head->length > room) {
      diagnostics.Count("cut off: the last section is not whole", 1, offset);
      break;
    }
    places.push_back(
        {.tag = head->tag, .offset = offset, .length = kSectionHeadBytes + head->length});
    offset += kSectionHeadBytes + head->length;
  }
  return places;
}

bool TraceReader::State::Unpack(std::string_view payload, std::string& raw) {
  const uint64_t budget = kMaxUnpackBase + kMaxUnpackRatio * size;
  ByteReader in(payload);
  const uint64_t room = budget > unpacked ? budget - unpacked : 0;
  if (!columns.Decompress(in, std::min<uint64_t>(room, kMaxUnpackedBytes), raw)) return false;
  unpacked += raw.size();
  return in.remaining() == 0;
}

void TraceReader::State::Accept(const Place& place, std::string_view payload) {
  std::string raw;
  bool ok = true;
  if (place.tag == kMetadataTag) {
    ok = DecodeMetadata(payload, metadata);
  } else if (place.tag == kDictionaryTag) {
    ok = Unpack(payload, raw) &&
         DecodeDictionaryPiece(raw, dictionary_damaged, dictionary, map, diagnostics);
    dictionary_damaged |= !ok;
  } else if (place.tag == kInstancesTag) {
    ok = Unpack(payload, raw) && DecodeInstances(raw, map, dictionary, instances, diagnostics);
  } else if (place.tag != kEventsTag && place.tag != kIndexTag) {
    diagnostics.Count("section of an unknown kind, skipped", 1, place.offset);
  }
  if (!ok) {
    diagnostics.Count("section " + place.tag + " that cannot be decoded", 1, place.offset);
  }
}

void TraceReader::State::ScanBlockInfo(const Place& place, std::string_view payload) {
  BlockInfo info;
  const IdLimits any = {.threads = UINT32_MAX, .stacks = UINT32_MAX};
  if (!BlockDecoder::DecodeInfo(payload, any, info)) {
    diagnostics.Count("section EVTS that cannot be decoded", 1, place.offset);
    return;
  }
  info.offset = place.offset;
  info.length = place.length;
  blocks.push_back(std::move(info));
}

void TraceReader::State::ReadSections(const std::vector<Place>& places) {
  for (const Place& place : places) {
    // With an index, event blocks are read only when asked for.
    if (place.tag == kEventsTag && complete) continue;
    const auto payload = ReadPayload(place);
    if (!payload) {
      diagnostics.Count("section " + place.tag + " with a wrong checksum", 1, place.offset);
      dictionary_damaged |= place.tag == kDictionaryTag;
    } else if (place.tag == kEventsTag) {
      ScanBlockInfo(place, *payload);
    } else {
      Accept(place, *payload);
    }
  }
}

// Events may name threads and stacks whose dictionary piece is gone. They are
// kept: threads with events get a row, everything else becomes [lost] or none.
void TraceReader::State::StandInForLostRows() {
  if (!dictionary_damaged) return;
  lost_stack = dictionary.InternStack({}, dictionary.InternFrame("", "[lost]"));
  size_t threads = dictionary.threads().size();
  for (const BlockInfo& block : blocks) {
    if (block.owners.empty() || !block.owners.back().thread.valid()) continue;
    const uint32_t last = block.owners.back().thread.value;
    if (last < kMaxLostThreads) threads = std::max<size_t>(threads, last + 1);
  }
  const size_t lost = threads - dictionary.threads().size();
  diagnostics.Count("threads lost with a damaged section", lost);
  for (size_t i = 0; i < lost; ++i) dictionary.AddThread({.name = dictionary.Intern("[lost]")});
}

void TraceReader::State::ReplaceLostIds(std::vector<Event>& events) const {
  const size_t threads = dictionary.threads().size();
  for (Event& event : events) {
    if (event.stack.valid()) {
      const uint32_t id = event.stack.value;
      event.stack = id < map.stacks.size() ? map.stacks[id] : lost_stack;
    }
    if (event.thread.value >= threads) event.thread = {};
    if (event.peer.value >= threads) event.peer = {};
  }
}

Status TraceReader::State::Load() {
  CULPRIT_TRY(CheckFileHead());
  auto places = ReadIndex();
  complete = places.has_value();
  if (!complete) {
    blocks.clear();
    places = Scan();
    diagnostics.Count("no index at the end: the file was cut off, damaged or is still written");
  }
  ReadSections(*places);
  StandInForLostRows();
  if (!complete) {
    for (const BlockInfo& block : blocks) {
      metadata.end_ns = std::max(metadata.end_ns, block.max_end_ns);
    }
  }
  return {};
}

TraceReader::TraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::Open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->name = path;
  CULPRIT_ASSIGN(state->file, InputFile::Open(path));
  state->size = state->file->size();
  CULPRIT_TRY(state->Load());
  return TraceReader(std::move(state));
}

Result<TraceReader> TraceReader::FromBytes(std::string bytes, std::string name) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->memory = std::move(bytes);
  state->size = state->memory.size();
  CULPRIT_TRY(state->Load());
  return TraceReader(std::move(state));
}

const Metadata& TraceReader::metadata() const { return state_->metadata; }
const Dictionary& TraceReader::dictionary() const { return state_->dictionary; }
const std::vector<Instance>& TraceReader::instances() const { return state_->instances; }
const std::vector<BlockInfo>& TraceReader::blocks() const { return state_->blocks; }
const Diagnostics& TraceReader::diagnostics() const { return state_->diagnostics; }
bool TraceReader::complete() const { return state_->complete; }
uint64_t TraceReader::file_bytes() const { return state_->size; }

uint64_t TraceReader::events() const {
  uint64_t sum = 0;
  for (const BlockInfo& block : state_->blocks) sum += block.events;
  return sum;
}

IdLimits TraceReader::State::Limits() const {
  if (dictionary_damaged) return {.threads = UINT32_MAX, .stacks = UINT32_MAX};
  return {.threads = static_cast<uint32_t>(dictionary.threads().size()),
          .stacks = static_cast<uint32_t>(map.stacks.size())};
}

std::optional<std::string> TraceReader::State::ReadBlockPayload(const BlockInfo& block) {
  return ReadPayload(
      {.tag = std::string(kEventsTag), .offset = block.offset, .length = block.length});
}

Status TraceReader::ReadBlock(size_t index, std::vector<Event>& events) const {
  CULPRIT_CHECK(index < state_->blocks.size());
  State& s = *state_;
  const BlockInfo& block = s.blocks[index];
  const auto payload = s.ReadBlockPayload(block);
  events.clear();
  if (!payload) {
    return Error{.message = "event block with a wrong checksum",
                 .file = s.name,
                 .offset = block.offset,
                 .hint = "the other blocks are not affected"};
  }
  if (!DecoderOfThisThread().Decode(*payload, s.Limits(), events)) {
    return Error{.message = "event block that cannot be decoded",
                 .file = s.name,
                 .offset = block.offset,
                 .hint = "the other blocks are not affected"};
  }
  if (!s.HasAllIds()) s.ReplaceLostIds(events);
  return {};
}

// The index says how many events of which thread there are, so every block can be
// decoded to where its events belong. False: something was not as the index says.
bool TraceReader::ReadInPlace(std::vector<Event>& events) const {
  State& s = *state_;
  const uint64_t count = this->events();
  if (!s.HasAllIds() || count / kMaxEventsAByte > s.size) return false;
  const size_t threads = s.dictionary.threads().size();
  std::vector<uint64_t> next(threads + 2);  // none() is slot 0
  for (const BlockInfo& block : s.blocks) {
    for (const BlockInfo::Owner& owner : block.owners) {
      const uint64_t slot = uint64_t{owner.thread.value + 1};
      if (slot > threads) return false;
      next[slot + 1] += owner.events;
    }
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  events.resize(count);
  std::vector<Event*> places;
  for (const BlockInfo& block : s.blocks) {
    places.clear();
    for (const BlockInfo::Owner& owner : block.owners) {
      uint64_t& place = next[owner.thread.value + 1];
      places.push_back(events.data() + place);
      place += owner.events;
    }
    const auto payload = s.ReadBlockPayload(block);
    if (!payload || !DecoderOfThisThread().DecodeInto(*payload, s.Limits(), block, places)) {
      return false;
    }
  }
  return true;
}

// One block after the other; what is damaged is counted and left out.
std::vector<Event> TraceReader::ReadBlocks() {
  State& s = *state_;
  std::vector<Event> all;
  std::vector<Event> block;
  all.reserve(events());
  for (size_t i = 0; i < s.blocks.size(); ++i) {
    const Status status = ReadBlock(i, block);
    if (!status.ok()) {
      s.diagnostics.Count(status.error().message, 1, status.error().offset);
      s.diagnostics.Count("events lost with a damaged block", s.blocks[i].events);
    }
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

Trace TraceReader::ReadAll(EventOrder order) && {
  State& s = *state_;
  Trace trace;
  if (order == EventOrder::kByTime) {
    trace.events = ReadBlocks();
    SortByTime(trace.events);
  } else if (!ReadInPlace(trace.events)) {
    trace.events = ReadBlocks();
    std::ranges::stable_sort(trace.events, {},
                             [](const Event& event) { return OwnerOf(event).value + 1; });
  }
  trace.metadata = std::move(s.metadata);
  trace.dictionary = std::move(s.dictionary);
  trace.instances = std::move(s.instances);
  trace.diagnostics = std::move(s.diagnostics);
  return trace;
}

Result<Trace> ReadTrace(const std::string& path, EventOrder order) {
  CULPRIT_ASSIGN(TraceReader reader, TraceReader::Open(path));
  return std::move(reader).ReadAll(order);
}

}  // namespace culprit::trace
