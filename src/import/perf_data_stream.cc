// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_stream.h"

#include <zstd.h>

#include <algorithm>

namespace culprit::import_ {
namespace {

constexpr size_t kChunkBytes = 512 << 10;  // stays in a core's own cache
constexpr size_t kUnpackBytes = 1 << 20;
// perf compresses at most a ring buffer at a time; more is an attack.
constexpr uint64_t kMaxUnpackedPerRecord = uint64_t{256} << 20;
constexpr uint64_t kMaxTracingBytes = uint64_t{64} << 20;

PerfRecordView Head(const char* at, bool big) {
  PerfRecordView record;
  record.type = LoadInteger<uint32_t>(at, big);
  record.misc = LoadInteger<uint16_t>(at + 4, big);
  return record;
}

}  // namespace

struct PerfDataStream::Decompressor {
  Decompressor() : stream(ZSTD_createDStream()) { ZSTD_initDStream(stream); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDStream(stream); }

  ZSTD_DStream* stream;
  std::string unpacked;  // a record may end in the next piece
};

PerfDataStream::PerfDataStream(const Bytes& bytes, uint64_t begin, uint64_t end, bool big,
                               Diagnostics& diagnostics)
    : bytes_(bytes),
      begin_(begin),
      end_(std::min(end, bytes.size())),
      big_(big),
      diagnostics_(diagnostics) {}
PerfDataStream::~PerfDataStream() = default;

// Fewer bytes than asked for only at the end. Valid until the next call.
Result<std::string_view> PerfDataStream::View(uint64_t offset, size_t count) {
  const bool inside = offset >= chunk_offset_ && offset - chunk_offset_ <= chunk_.size() &&
                      chunk_.size() - (offset - chunk_offset_) >= count;
  if (!inside) {
    const uint64_t left = offset < end_ ? end_ - offset : 0;
    const size_t want = static_cast<size_t>(std::min<uint64_t>(left, std::max(kChunkBytes, count)));
    CULPRIT_TRY(bytes_.ReadAt(offset, want, chunk_));
    chunk_offset_ = offset;
  }
  return std::string_view(chunk_).substr(offset - chunk_offset_, count);
}

// Bytes behind a hardware trace's or tracing data's record that belong to it.
Result<uint64_t> PerfDataStream::Follower(PerfRecordView& record) {
  FieldReader in(record.body, big_);
  const uint64_t behind = record.offset + kRecordHeadBytes + record.body.size();
  if (record.type == kRecordAuxtrace) return std::min(in.U64(), end_ - std::min(end_, behind));
  const uint64_t announced = in.U32();
  if (announced != 0 && announced <= in.remaining()) {
    record.body = in.Bytes(announced);  // simpleperf puts it inside
    return uint64_t{0};
  }
  const uint64_t size = std::min(announced, end_ - std::min(end_, behind));
  CULPRIT_TRY(
      bytes_.ReadAt(behind, static_cast<size_t>(std::min(size, kMaxTracingBytes)), tracing_));
  record.body = tracing_;
  return (size + 7) / 8 * 8;
}

// The record at `offset`, if all of it is at hand; empty if not.
std::string_view PerfDataStream::InChunk(uint64_t offset) const {
  if (offset < chunk_offset_ || offset - chunk_offset_ + kRecordHeadBytes > chunk_.size())
    return {};
  const std::string_view rest = std::string_view(chunk_).substr(offset - chunk_offset_);
  const size_t size = LoadInteger<uint16_t>(rest.data() + 6, big_);
  return size < kRecordHeadBytes || size > rest.size() ? std::string_view() : rest.substr(0, size);
}

// The same after reading on; empty if it is damaged, which is counted.
Result<std::string_view> PerfDataStream::Fetch(uint64_t offset) {
  CULPRIT_ASSIGN(const std::string_view head, View(offset, kRecordHeadBytes));
  const bool cut = head.size() < kRecordHeadBytes;
  const size_t size = cut ? 0 : LoadInteger<uint16_t>(head.data() + 6, big_);
  if (!cut && size < kRecordHeadBytes) {
    diagnostics_.Count("record of impossible size, the rest is skipped", 1, offset);
    return std::string_view();
  }
  CULPRIT_ASSIGN(const std::string_view view, View(offset, size));
  if (!cut && view.size() == size) return view;
  diagnostics_.Count("record cut short at the end of the file", 1, offset);
  return std::string_view();
}

Status PerfDataStream::Visit(const Visitor& visitor, bool decompress) {
  uint64_t offset = begin_;
  while (offset < end_) {
    std::string_view view = InChunk(offset);
    if (view.empty()) {
      CULPRIT_ASSIGN(view, Fetch(offset));
      if (view.empty()) return {};
    }
    PerfRecordView record = Head(view.data(), big_);
    record.offset = offset;
    record.body = view.substr(kRecordHeadBytes);
    offset += view.size();
    if (record.type == kRecordAuxtrace || record.type == kRecordTracingData) {
      CULPRIT_ASSIGN(const uint64_t follower, Follower(record));
      offset += follower;
    }
    if (record.type == kRecordCompressed || record.type == kRecordCompressed2) {
      if (decompress) CULPRIT_TRY(Decompress(record, visitor));
    } else {
      CULPRIT_TRY(visitor(record));
    }
  }
  return {};
}

Status PerfDataStream::Decompress(const PerfRecordView& record, const Visitor& visitor) {
  if (decompressor_ == nullptr) decompressor_ = std::make_unique<Decompressor>();
  std::string_view packed = record.body;
  if (record.type == kRecordCompressed2) {
    FieldReader in(packed, big_);
    const uint64_t size = in.U64();
    packed = in.Bytes(std::min<uint64_t>(size, in.remaining()));
  }
  std::string& unpacked = decompressor_->unpacked;
  ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
  uint64_t produced = 0;
  for (bool more = true; more;) {
    const size_t kept = unpacked.size();
    unpacked.resize(kept + kUnpackBytes);
    ZSTD_outBuffer out = {unpacked.data() + kept, kUnpackBytes, 0};
    const size_t status = ZSTD_decompressStream(decompressor_->stream, &out, &in);
    unpacked.resize(kept + out.pos);
    produced += out.pos;
    if (ZSTD_isError(status) != 0 || produced > kMaxUnpackedPerRecord) {
      diagnostics_.Count("compressed record that cannot be unpacked", 1, record.offset);
      ZSTD_initDStream(decompressor_->stream);
      unpacked.clear();
      return {};
    }
    more = in.pos < in.size || out.pos == kUnpackBytes;
    if (out.pos == 0 && in.pos == in.size) more = false;
    CULPRIT_TRY(VisitUnpacked(record.offset, visitor));
  }
  return {};
}

Status PerfDataStream::VisitUnpacked(uint64_t offset, const Visitor& visitor) {
  std::string& unpacked = decompressor_->unpacked;
  size_t at = 0;
  while (unpacked.size() - at >= kRecordHeadBytes) {
    const size_t size = LoadInteger<uint16_t>(unpacked.data() + at + 6, big_);
    if (size < kRecordHeadBytes) {
      diagnostics_.Count("compressed record of impossible contents", 1, offset);
      at = unpacked.size();
      break;
    }
    if (unpacked.size() - at < size) break;
    PerfRecordView record = Head(unpacked.data() + at, big_);
    record.offset = offset;
    record.body = std::string_view(unpacked).substr(at + kRecordHeadBytes, size - kRecordHeadBytes);
    at += size;
    // What stands outside of records cannot be inside a compressed one.
    if (record.type != kRecordTracingData && record.type != kRecordAuxtrace) {
      CULPRIT_TRY(visitor(record));
    }
  }
  unpacked.erase(0, at);
  return {};
}

}  // namespace culprit::import_
