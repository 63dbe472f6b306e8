// SPDX-License-Identifier: Apache-2.0
#include "import/etl_event.h"

#include <algorithm>
#include <array>

namespace culprit::import_ {
namespace {

constexpr size_t kEtlSystemBytes = 32;
constexpr size_t kEtlCompactBytes = 24;
constexpr size_t kEtlPerfInfoBytes = 16;
constexpr size_t kEtlFullBytes = 48;
constexpr size_t kEtlEventBytes = 80;
constexpr size_t kEtlAlignment = 8;

// In the version of a PERFINFO header: counters that stand before the data.
constexpr uint16_t kEtlHasPebsIndex = 0x8000;
constexpr uint16_t kEtlCounterCount = 0x0700;

constexpr uint16_t kEtlExtended = 0x0001;      // flags of an EVENT_HEADER
constexpr uint16_t kEtlClassicEvent = 0x0100;  // the same

struct EtlGuid {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const EtlGuid&) const = default;
};

constexpr EtlGuid MakeEtlGuid(uint32_t a, uint16_t b, uint16_t c, uint64_t d) {
  EtlGuid guid;
  guid.low = uint64_t{a} | uint64_t{b} << 32 | uint64_t{c} << 48;
  for (int i = 0; i < 8; ++i) guid.high |= (d >> (8 * i) & 0xff) << (56 - 8 * i);
  return guid;
}

struct EtlKernelClass {
  EtlGuid guid;
  EtlGroup group;
};
constexpr std::array<EtlKernelClass, 7> kEtlKernelClasses = {{
    {MakeEtlGuid(0x3d6fa8d0, 0xfe05, 0x11d0, 0x9dda00c04fd7ba7c), kEtlGroupProcess},
    {MakeEtlGuid(0x3d6fa8d1, 0xfe05, 0x11d0, 0x9dda00c04fd7ba7c), kEtlGroupThread},
    {MakeEtlGuid(0x3d6fa8d4, 0xfe05, 0x11d0, 0x9dda00c04fd7ba7c), kEtlGroupIo},
    {MakeEtlGuid(0x2cb15d1d, 0x5fc1, 0x11d2, 0xabe100a0c911f518), kEtlGroupImage},
    {MakeEtlGuid(0xce1dbfb4, 0x137e, 0x4da6, 0x87b03f59aa102cbc), kEtlGroupPerfInfo},
    {MakeEtlGuid(0xdef2fe46, 0x7bd6, 0x4b80, 0xbd94f57fe20d0ce3), kEtlGroupStackWalk},
    {MakeEtlGuid(0x01853a65, 0x418f, 0x4f36, 0xaefcdc0f1d2fd235), kEtlGroupConfig},
}};

struct EtlKnownProvider {
  EtlGuid guid;
  EtlProvider provider;
};
constexpr std::array<EtlKnownProvider, 4> kEtlProviders = {{
    {MakeEtlGuid(0xb3e675d7, 0x2554, 0x4f18, 0x830b2762732560de), EtlProvider::kImageId},
    {MakeEtlGuid(0x9b79ee91, 0xb5fd, 0x41c0, 0xa2434248e266e9d0), EtlProvider::kSystemId},
    {MakeEtlGuid(0xe13c0d23, 0xccbc, 0x4e12, 0x931bd9cc2eee27e4), EtlProvider::kRuntime},
    {MakeEtlGuid(0xa669021c, 0xc450, 0x4609, 0xa0355af59af4df18), EtlProvider::kRuntimeRundown},
}};

EtlGuid TakeEtlGuid(ByteReader& reader) {
  EtlGuid guid;
  guid.low = reader.U64();
  guid.high = reader.U64();
  return guid;
}

uint16_t EtlCodeOf(uint8_t group, uint8_t type) {
  const auto code = static_cast<uint16_t>(group << 8 | type);
  return code == kEtlImageLoadAsProcess ? uint16_t{kEtlImageLoad} : code;
}

// What a classic event is, from the GUID of its class.
void ClassifyEtl(const EtlGuid& guid, uint8_t opcode, EtlEvent& event) {
  for (const EtlKernelClass& known : kEtlKernelClasses) {
    if (known.guid != guid) continue;
    event.provider = EtlProvider::kKernel;
    event.code = EtlCodeOf(known.group, opcode);
    return;
  }
  event.code = opcode;
  for (const EtlKnownProvider& known : kEtlProviders) {
    if (known.guid == guid) event.provider = known.provider;
  }
}

// Items between an EVENT_HEADER and its data, each with its size and whether
// another follows.
std::string_view SkipEtlExtendedItems(std::string_view data) {
  for (;;) {
    ByteReader reader(data);
    const uint16_t size = reader.U16();
    reader.U16();
    const bool more = (reader.U16() & 1) != 0;
    if (reader.failed() || size < 8 || size > data.size()) return {};
    data.remove_prefix(size);
    if (!more) return data;
  }
}

}  // namespace

void EtlFields::SkipUser() {
  ByteReader ahead = reader_;
  if (ahead.U32() == 0) {
    reader_.Bytes(4);
    return;
  }
  SkipPointers(2);
  reader_.U8();
  const uint8_t authorities = reader_.U8();
  reader_.Bytes(6 + 4 * size_t{authorities});
}

size_t EtlWalk::ParseKernel(std::string_view record, EtlEvent& event) const {
  ByteReader reader(record);
  uint16_t version = reader.U16();
  const uint8_t header_type = reader.U8();
  reader.U8();
  const uint16_t size = reader.U16();
  const uint8_t type = reader.U8();
  const uint8_t group = reader.U8();
  size_t header_bytes = kEtlPerfInfoBytes;
  if (header_type == kEtlPerfInfo32 || header_type == kEtlPerfInfo64) {
    if ((version & kEtlHasPebsIndex) != 0) header_bytes += 8;
    header_bytes += 8 * ((version & kEtlCounterCount) >> 8);
    version &= static_cast<uint16_t>(~(kEtlHasPebsIndex | kEtlCounterCount));
  } else {
    const bool compact = header_type == kEtlCompact32 || header_type == kEtlCompact64;
    header_bytes = compact ? kEtlCompactBytes : kEtlSystemBytes;
    event.tid = reader.U32();
    event.pid = reader.U32();
  }
  event.time = reader.U64();
  if (reader.failed() || size < header_bytes || size > record.size()) return 0;
  event.provider = EtlProvider::kKernel;
  event.code = EtlCodeOf(group, type);
  event.version = static_cast<uint8_t>(version);
  event.data = record.substr(header_bytes, size - header_bytes);
  return size;
}

size_t EtlWalk::ParseFull(std::string_view record, EtlEvent& event) const {
  ByteReader reader(record);
  const uint16_t size = reader.U16();
  reader.U16();
  const uint8_t opcode = reader.U8();
  reader.U8();
  event.version = static_cast<uint8_t>(reader.U16());
  event.tid = reader.U32();
  event.pid = reader.U32();
  event.time = reader.U64();
  const EtlGuid guid = TakeEtlGuid(reader);
  if (reader.failed() || size < kEtlFullBytes || size > record.size()) return 0;
  ClassifyEtl(guid, opcode, event);
  event.data = record.substr(kEtlFullBytes, size - kEtlFullBytes);
  return size;
}

size_t EtlWalk::ParseEventHeader(std::string_view record, EtlEvent& event) const {
  ByteReader reader(record);
  const uint16_t size = reader.U16();
  reader.U16();
  const uint16_t flags = reader.U16();
  reader.U16();
  event.tid = reader.U32();
  event.pid = reader.U32();
  event.time = reader.U64();
  const EtlGuid guid = TakeEtlGuid(reader);
  const uint16_t id = reader.U16();
  event.version = reader.U8();
  reader.U16();
  const uint8_t opcode = reader.U8();
  if (reader.failed() || size < kEtlEventBytes || size > record.size()) return 0;
  ClassifyEtl(guid, opcode, event);
  if (event.provider == EtlProvider::kKernel && (flags & kEtlClassicEvent) == 0) {
    event.provider = EtlProvider::kOther;
  }
  if ((flags & kEtlClassicEvent) == 0) event.code = id;
  event.data = record.substr(kEtlEventBytes, size - kEtlEventBytes);
  if ((flags & kEtlExtended) != 0) event.data = SkipEtlExtendedItems(event.data);
  return size;
}

size_t EtlWalk::ParseRecord(std::string_view record, EtlEvent& event) const {
  ByteReader reader(record);
  const uint16_t size = reader.U16();
  const uint8_t type = reader.U8();
  const uint8_t flags = reader.U8();
  if (reader.failed() || (flags & kEtlIsHeader) == 0) return 0;
  const bool has_size = size >= kEtlAlignment && size <= record.size();
  if ((flags & kEtlIsEvent) == 0) {
    event.provider = EtlProvider::kMessage;
    return has_size ? size : 0;
  }
  switch (type) {
    case kEtlSystem32:
    case kEtlCompact32:
    case kEtlPerfInfo32:
      event.pointer_bytes = 4;
      return ParseKernel(record, event);
    case kEtlSystem64:
    case kEtlCompact64:
    case kEtlPerfInfo64:
      return ParseKernel(record, event);
    case kEtlFull32:
      event.pointer_bytes = 4;
      return ParseFull(record, event);
    case kEtlFull64:
      return ParseFull(record, event);
    case kEtlEvent32:
      event.pointer_bytes = 4;
      return ParseEventHeader(record, event);
    case kEtlEvent64:
      return ParseEventHeader(record, event);
    default:
      // Instances and kinds that are said to be unused: their size is known.
      return has_size ? size : 0;
  }
}

bool EtlWalk::Next(EtlEvent& event) {
  if (position_ >= records_.size()) return false;
  const std::string_view record = records_.substr(position_);
  // The rest of a buffer is filled with ones; of one never filled, with zeros.
  const std::string_view marker = record.substr(0, 4);
  if (std::all_of(marker.begin(), marker.end(), [](char c) { return c == '\xff'; }) ||
      std::all_of(marker.begin(), marker.end(), [](char c) { return c == '\0'; })) {
    return false;
  }
  event = {};
  event.cpu = cpu_;
  event.position = position_;
  const size_t size = ParseRecord(record, event);
  if (size == 0) {
    damaged_ = true;
    return false;
  }
  position_ += std::min((size + kEtlAlignment - 1) / kEtlAlignment * kEtlAlignment, record.size());
  return true;
}

}  // namespace culprit::import_
