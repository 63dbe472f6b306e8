// SPDX-License-Identifier: Apache-2.0
#include "import/scap_block.h"

#include <algorithm>
#include <utility>

#include "import/event_format.h"
#include "import/perf_data_layout.h"

namespace culprit::import_ {
namespace {

constexpr uint32_t kScapHeadBytes = 8;
constexpr uint32_t kScapFrameBytes = kScapHeadBytes + 4;  // with the length at the end
constexpr size_t kMaxParameters = 256;

// Numbers of process lists. The high ones are from before the format's release.
constexpr std::pair<uint32_t, int> kProcessLists[] = {
    {0x202, 1}, {0x207, 2}, {0x209, 3}, {0x210, 4},      {0x211, 5},      {0x212, 6},
    {0x213, 7}, {0x214, 8}, {0x215, 9}, {0x8000abcd, 1}, {0x8013abcd, 2}, {0x8014abcd, 3}};
constexpr uint32_t kEventBeforeRelease = 0x8010abcd;

bool HasScapFlags(uint32_t type) {
  return type == kScapEventFlags || type == kScapEventFlagsV2 || type == kScapEventFlagsLarge;
}
bool HasLongLengths(uint32_t type) {
  return type == kScapEventLarge || type == kScapEventFlagsLarge;
}
bool HasScapCount(uint32_t type) {
  return type == kScapEventV2 || type == kScapEventFlagsV2 || HasLongLengths(type);
}

// Old events do not say how many parameters they have; as each adds at least
// its own length, only one number can fill the event exactly.
size_t CountParameters(std::string_view rest, bool big) {
  size_t sum = 0;
  for (size_t count = 0; count <= kMaxParameters; ++count) {
    if (sum == rest.size()) return count;
    if (sum > rest.size() || 2 * count + 2 > rest.size()) break;
    sum += 2 + LoadInteger<uint16_t>(rest.data() + 2 * count, big);
  }
  return kMaxParameters + 1;
}

}  // namespace

int ScapProcessListVersion(uint32_t block_type) {
  for (const auto& [type, version] : kProcessLists) {
    if (type == block_type) return version;
  }
  return 0;
}

bool IsScapEvent(uint32_t block_type) {
  return block_type == kScapEvent || block_type == kEventBeforeRelease ||
         HasScapFlags(block_type) || HasScapCount(block_type);
}

Result<std::optional<ScapBlock>> ScapBlockReader::Next(Diagnostics& diagnostics) {
  reader_.Skip(skip_);
  skip_ = 0;
  CULPRIT_ASSIGN(std::string_view head, reader_.Peek(kScapFrameBytes));
  if (head.empty()) return std::optional<ScapBlock>();
  if (head.size() < kScapFrameBytes) {
    diagnostics.Count("file ends inside a block", 1, reader_.offset());
    return std::optional<ScapBlock>();
  }
  // Its type reads the same in both orders.
  if (LoadInteger<uint32_t>(head.data(), false) == kScapSection) {
    big_ = LoadInteger<uint32_t>(head.data() + kScapHeadBytes, true) == kScapMagic;
  }
  ScapBlock block{
      .type = LoadInteger<uint32_t>(head.data(), big_), .offset = reader_.offset(), .big = big_};
  const uint32_t length = LoadInteger<uint32_t>(head.data() + 4, big_);
  if (length < kScapFrameBytes || length > kMaxScapBlock) {
    diagnostics.Count("block of impossible length, the rest is not read", 1, block.offset);
    return std::optional<ScapBlock>();
  }
  CULPRIT_ASSIGN(const std::string_view bytes, reader_.Peek(length));
  if (bytes.size() < length) {
    diagnostics.Count("file ends inside a block", 1, block.offset);
    return std::optional<ScapBlock>();
  }
  if (LoadInteger<uint32_t>(bytes.data() + length - 4, big_) != length) {
    diagnostics.Count("block whose two lengths differ", 1, block.offset);
  }
  block.body = bytes.substr(kScapHeadBytes, length - kScapFrameBytes);
  skip_ = length;
  return std::optional<ScapBlock>(block);
}

bool ReadScapEvent(const ScapBlock& block, ScapEvent& event) {
  FieldReader reader(block.body, block.big);
  event.values.clear();
  event.big = block.big;
  event.cpu = reader.U16();
  if (HasScapFlags(block.type)) reader.Skip(4);
  const size_t begin = reader.position();
  event.time_ns = static_cast<int64_t>(reader.U64());
  event.tid = static_cast<int64_t>(reader.U64());
  const uint32_t length = reader.U32();
  event.type = reader.U16();
  const bool has_count = HasScapCount(block.type);
  size_t count = has_count ? reader.U32() : 0;
  if (reader.failed() || event.time_ns < 0) return false;
  const size_t head_bytes = reader.position() - begin;
  if (length < head_bytes || length - head_bytes > reader.remaining()) return false;
  // What follows the event is padding.
  const std::string_view rest = reader.Bytes(length - head_bytes);
  const size_t width = HasLongLengths(block.type) ? 4 : 2;
  if (!has_count) count = CountParameters(rest, block.big);
  if (count > kMaxParameters) return false;
  FieldReader lengths(rest.substr(0, count * width), block.big);
  FieldReader values(rest, block.big);
  values.Skip(count * width);
  for (size_t i = 0; i < count; ++i) {
    event.values.push_back(values.Bytes(width == 4 ? lengths.U32() : lengths.U16()));
  }
  return !values.failed() && !lengths.failed();
}

int64_t ScapEvent::Signed(size_t parameter) const {
  const std::string_view value = Value(parameter);
  if (value.empty() || value.size() > 8) return 0;
  return LoadSigned(value, 0, value.size(), big ? ByteOrder::kBig : ByteOrder::kLittle);
}

std::string_view ScapEvent::Text(size_t parameter) const {
  const std::string_view value = Value(parameter);
  return value.substr(0, std::min(value.find('\0'), value.size()));
}

}  // namespace culprit::import_
