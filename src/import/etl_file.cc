// SPDX-License-Identifier: Apache-2.0
#include "import/etl_file.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "import/etl_text.h"
#include "import/etl_xpress.h"
#include "import/importer.h"

namespace culprit::import_ {
namespace {

__extension__ using WideTicks = unsigned __int128;

constexpr size_t kEtlRecordHeaderBytes = 32;
constexpr size_t kEtlTimeZoneBytes = 172;
constexpr size_t kMinEtlHeaderBytes = 272;
constexpr uint64_t kEtlNsPerSecond = 1'000'000'000;
constexpr uint64_t kEtlTicksPerSecond = 10'000'000;  // of system time
constexpr int64_t kMaxEtlNs = int64_t{1} << 61;

// The part of a buffer's header that is the same in all versions of Windows.
struct EtlBufferHeader {
  uint32_t size = 0;
  uint32_t saved = 0;
  uint16_t cpu = 0;
  uint16_t state = 0;
  uint32_t offset = 0;
  uint16_t flags = 0;
  uint16_t type = 0;
};

EtlBufferHeader ParseEtlBufferHeader(std::string_view bytes) {
  ByteReader reader(bytes);
  EtlBufferHeader header;
  header.size = reader.U32();
  header.saved = reader.U32();
  reader.Bytes(32);
  header.cpu = reader.U16();
  reader.U16();
  header.state = reader.U16();
  reader.U16();
  header.offset = reader.U32();
  header.flags = reader.U16();
  header.type = reader.U16();
  if ((header.flags & kEtlWideCpu) == 0) header.cpu &= 0xff;
  return header;
}

void ParseEtlLogFile(std::string_view record, EtlHeader& header) {
  const size_t pointer = static_cast<uint8_t>(record[2]) == kEtlSystem32 ? 4 : 8;
  ByteReader reader(record);
  reader.Bytes(16);
  header.start_ticks = reader.U64();
  reader.Bytes(8);
  header.buffer_bytes = reader.U32();
  header.os_major = reader.U8();
  header.os_minor = reader.U8();
  reader.U16();
  header.os_build = reader.U32();
  header.cpus = reader.U32();
  reader.Bytes(16);
  header.mode = reader.U32();
  reader.Bytes(8);
  header.pointer_bytes = reader.U32();
  header.events_lost = reader.U32();
  header.cpu_mhz = reader.U32();
  reader.Bytes(2 * pointer + kEtlTimeZoneBytes + 4 + 8);  // padding, boot time
  header.frequency = reader.U64();
  header.start_time = reader.U64();
  const uint32_t clock = reader.U32();
  if (clock == 2 || clock == 3) header.clock = static_cast<EtlClockType>(clock);
  header.buffers_lost = reader.U32();
  header.logger = TakeWideText(reader);
}

std::optional<EtlBuffer> ParseEtlBuffer(const EtlBufferHeader& header, uint64_t offset,
                                        uint64_t file_size) {
  if (header.size < kEtlBufferHeaderBytes || header.size > kMaxEtlBufferBytes ||
      header.cpu >= kMaxCpus) {
    return std::nullopt;
  }
  EtlBuffer buffer;
  buffer.offset = offset;
  buffer.file_bytes = static_cast<uint32_t>(std::min<uint64_t>(header.size, file_size - offset));
  buffer.cpu = header.cpu;
  buffer.packed = (header.flags & kEtlPacked) != 0;
  buffer.used_bytes = header.saved >= kEtlBufferHeaderBytes ? header.saved : header.offset;
  if (buffer.used_bytes < kEtlBufferHeaderBytes) buffer.used_bytes = header.size;
  if (buffer.used_bytes > (buffer.packed ? kMaxEtlBufferBytes : header.size)) return std::nullopt;
  return buffer;
}

}  // namespace

int64_t EtlHeader::DurationNs(uint64_t ticks) const {
  uint64_t per_second = frequency;
  if (clock == EtlClockType::kSystemTime) per_second = kEtlTicksPerSecond;
  if (clock == EtlClockType::kCpuCycles) per_second = uint64_t{cpu_mhz} * 1'000'000;
  if (per_second == 0) per_second = kEtlTicksPerSecond;
  const WideTicks ns = WideTicks{ticks} * kEtlNsPerSecond / per_second;
  return ns > WideTicks{static_cast<uint64_t>(kMaxEtlNs)} ? kMaxEtlNs : static_cast<int64_t>(ns);
}

int64_t EtlHeader::ToNs(uint64_t ticks) const {
  return ticks >= start_ticks ? DurationNs(ticks - start_ticks) : -DurationNs(start_ticks - ticks);
}

bool IsEtl(std::string_view head) {
  constexpr size_t kNeeded = kEtlBufferHeaderBytes + kEtlRecordHeaderBytes + 48;
  if (head.size() < kNeeded) return false;
  ByteReader reader(head.substr(kEtlBufferHeaderBytes));
  const uint16_t version = reader.U16();
  const uint8_t type = reader.U8();
  const uint8_t flags = reader.U8();
  const uint16_t size = reader.U16();
  const uint16_t code = reader.U16();
  reader.Bytes(kEtlRecordHeaderBytes - 8);
  const uint32_t buffer_bytes = reader.U32();
  reader.Bytes(40);
  const uint32_t pointer_bytes = reader.U32();
  return (version == 1 || version == 2) && (type == kEtlSystem32 || type == kEtlSystem64) &&
         flags == (kEtlIsHeader | kEtlIsEvent) && code == 0 &&
         size >= kEtlRecordHeaderBytes + kMinEtlHeaderBytes &&
         buffer_bytes >= kEtlBufferHeaderBytes && (pointer_bytes == 4 || pointer_bytes == 8);
}

Result<EtlHeader> ReadEtlHeader(const Source& source) {
  std::string head;
  CULPRIT_TRY(source.bytes().ReadAt(0, kEtlBufferHeaderBytes + 0x10000, head));
  constexpr size_t kNeeded = kEtlBufferHeaderBytes + kEtlRecordHeaderBytes + kMinEtlHeaderBytes + 8;
  if (!IsEtl(head) || head.size() < kNeeded) {
    return Error{
        .message = "not an ETW log file, or cut within its header",
        .file = source.name(),
        .offset = 0,
        .hint = "stop the trace with `xperf -stop` or `wpr -stop`, which complete the file"};
  }
  EtlHeader header;
  const std::string_view record = std::string_view(head).substr(kEtlBufferHeaderBytes);
  ByteReader size_at(record.substr(4));
  ParseEtlLogFile(record.substr(0, size_at.U16()), header);
  if ((header.mode & kEtlCompressedMode) != 0) {
    header.compression = static_cast<EtlCompression>(ParseEtlBufferHeader(head).state);
  }
  return header;
}

Result<std::vector<EtlBuffer>> ListEtlBuffers(const Bytes& bytes, const EtlHeader& header,
                                              Diagnostics& diagnostics) {
  std::vector<EtlBuffer> buffers;
  std::string head;
  uint64_t offset = 0;
  while (offset < bytes.size()) {
    CULPRIT_TRY(bytes.ReadAt(offset, kEtlBufferHeaderBytes, head));
    if (head.size() < kEtlBufferHeaderBytes) {
      diagnostics.Count("buffer cut off within its header", 1, offset);
      break;
    }
    const EtlBufferHeader parsed = ParseEtlBufferHeader(head);
    const auto buffer = ParseEtlBuffer(parsed, offset, bytes.size());
    if (!buffer) {
      // Only where all buffers have one size does the next one's place follow.
      if ((header.mode & kEtlCompressedMode) != 0) {
        diagnostics.Count("buffer with a bad header, rest of the file skipped", 1, offset);
        break;
      }
      const bool unused = parsed.size == 0 && parsed.saved == 0;
      diagnostics.Count(unused ? "buffer that was never written" : "buffer with a bad header", 1,
                        offset);
      offset += std::max<uint64_t>(header.buffer_bytes, kEtlBufferHeaderBytes);
      continue;
    }
    if (buffers.size() >= kMaxEtlBuffers) {
      diagnostics.Count("more buffers than are read, rest of the file skipped", 1, offset);
      break;
    }
    if (parsed.size > buffer->file_bytes) {
      diagnostics.Count("buffer cut off at the end of the file", 1, offset);
    }
    if (parsed.type == kEtlCompactSwitchBuffer) {
      diagnostics.Count("buffer of compact context switches, left out", 1, offset);
    } else {
      buffers.push_back(*buffer);
    }
    offset += buffer->file_bytes;
  }
  return buffers;
}

Status LoadEtlBuffer(const Bytes& bytes, const EtlHeader& header, const EtlBuffer& buffer,
                     std::string& records, Diagnostics& diagnostics) {
  const size_t wanted = buffer.used_bytes - kEtlBufferHeaderBytes;
  const size_t stored =
      buffer.file_bytes - std::min<size_t>(buffer.file_bytes, kEtlBufferHeaderBytes);
  const uint64_t begin = buffer.offset + kEtlBufferHeaderBytes;
  if (!buffer.packed) return bytes.ReadAt(begin, std::min(wanted, stored), records);
  std::string packed;
  CULPRIT_TRY(bytes.ReadAt(begin, stored, packed));
  const bool ok = header.compression == EtlCompression::kXpressHuffman
                      ? UnpackXpressHuffman(packed, wanted, records)
                      : UnpackXpress(packed, wanted, records);
  if (!ok) diagnostics.Count("compressed buffer that is damaged", 1, buffer.offset);
  return {};
}

}  // namespace culprit::import_
