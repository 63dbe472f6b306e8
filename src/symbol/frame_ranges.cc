// SPDX-License-Identifier: Apache-2.0
#include "symbol/frame_ranges.h"

#include <optional>
#include <unordered_map>

namespace culprit::symbol {
namespace {

// DW_EH_PE_*: the low half says the format, the high half what it is relative to.
enum PointerFormat : uint8_t {
  kAbsolute = 0x00,
  kUleb128 = 0x01,
  kUdata2 = 0x02,
  kUdata4 = 0x03,
  kUdata8 = 0x04,
  kSigned = 0x08,
  kSleb128 = 0x09,
  kSdata2 = 0x0a,
  kSdata4 = 0x0b,
  kSdata8 = 0x0c,
};
constexpr uint8_t kFormatMask = 0x0f;
constexpr uint8_t kBaseMask = 0x70;
constexpr uint8_t kPcRelative = 0x10;
constexpr uint8_t kIndirect = 0x80;
constexpr uint8_t kOmitted = 0xff;

class Cursor {
 public:
  Cursor(const FrameSection& section, size_t position, size_t end)
      : section_(section), position_(position), end_(std::min(end, section.bytes.size())) {}

  uint64_t Fixed(size_t bytes) {
    if (failed_ || bytes > end_ - position_) {
      failed_ = true;
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      const size_t at = section_.big_endian ? i : bytes - 1 - i;
      value = (value << 8) | static_cast<uint8_t>(section_.bytes[position_ + at]);
    }
    position_ += bytes;
    return value;
  }
  uint64_t Leb128(bool is_signed) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint64_t byte = 0x80;
    while ((byte & 0x80) != 0 && !failed_) {
      byte = Fixed(1);
      if (shift < 64) value |= (byte & 0x7f) << shift;
      shift += 7;
    }
    if (is_signed && shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
    return value;
  }
  // A pointer without what it is relative to.
  uint64_t Value(uint8_t encoding) {
    switch (encoding & kFormatMask) {
      case kAbsolute:
      case kSigned:
        return Fixed(section_.is_64_bit ? 8 : 4);
      case kUleb128:
        return Leb128(false);
      case kSleb128:
        return Leb128(true);
      case kUdata2:
        return Fixed(2);
      case kSdata2:
        return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(Fixed(2))));
      case kUdata4:
        return Fixed(4);
      case kSdata4:
        return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(Fixed(4))));
      case kUdata8:
      case kSdata8:
        return Fixed(8);
      default:
        failed_ = true;
        return 0;
    }
  }
  uint64_t Pointer(uint8_t encoding) {
    const uint64_t here = section_.address + position_;
    uint64_t value = Value(encoding);
    const uint8_t base = encoding & kBaseMask;
    if (base == kPcRelative) {
      value += here;
    } else if (base != 0) {
      failed_ = true;  // relative to sections we do not know
    }
    if ((encoding & kIndirect) != 0) failed_ = true;
    return section_.is_64_bit ? value : static_cast<uint32_t>(value);
  }
  std::string_view CString() {
    const std::string_view rest = section_.bytes.substr(position_, end_ - position_);
    const size_t length = rest.find('\0');
    if (failed_ || length == std::string_view::npos) {
      failed_ = true;
      return {};
    }
    position_ += length + 1;
    return rest.substr(0, length);
  }
  void Skip(uint64_t bytes) {
    if (bytes > end_ - position_) failed_ = true;
    if (!failed_) position_ += bytes;
  }
  bool failed() const { return failed_; }
  size_t position() const { return position_; }

 private:
  const FrameSection& section_;
  size_t position_;
  size_t end_;
  bool failed_ = false;
};

// How the CIE at `position` (after its id) has its FDEs' pointers encoded.
std::optional<uint8_t> ReadPointerEncoding(Cursor cursor, bool is_64_bit) {
  const uint64_t version = cursor.Fixed(1);
  const std::string_view augmentation = cursor.CString();
  if (cursor.failed() || (version != 1 && version != 3 && version != 4)) return std::nullopt;
  if (augmentation == "eh") cursor.Skip(is_64_bit ? 8 : 4);
  if (version == 4) cursor.Skip(2);
  cursor.Leb128(false);
  cursor.Leb128(true);
  if (version == 1) {
    cursor.Skip(1);
  } else {
    cursor.Leb128(false);
  }
  uint8_t encoding = kAbsolute;
  if (augmentation.starts_with('z')) {
    cursor.Leb128(false);
    for (const char letter : augmentation.substr(1)) {
      if (letter == 'R') {
        encoding = static_cast<uint8_t>(cursor.Fixed(1));
        break;
      }
      if (letter == 'L') cursor.Skip(1);
      if (letter == 'P') {
        const auto format = static_cast<uint8_t>(cursor.Fixed(1));
        if (format != kOmitted) cursor.Value(format);
      }
    }
  }
  if (cursor.failed() || encoding == kOmitted) return std::nullopt;
  return encoding;
}

}  // namespace

std::vector<CodeRange> ReadFrameRanges(const FrameSection& section, uint64_t& bad) {
  std::vector<CodeRange> ranges;
  std::unordered_map<size_t, std::optional<uint8_t>> encodings;  // by offset of the CIE
  size_t position = 0;
  while (section.bytes.size() - position >= 4) {
    const size_t entry = position;
    Cursor head(section, position, section.bytes.size());
    uint64_t length = head.Fixed(4);
    if (length == 0) break;
    if (length == UINT32_MAX) length = head.Fixed(8);
    const size_t body = head.position();
    if (head.failed() || length > section.bytes.size() - body || length < 4) {
      ++bad;
      break;  // without a length there is no next entry
    }
    position = body + length;
    Cursor cursor(section, body, position);
    const uint64_t back = cursor.Fixed(4);
    if (back == 0) {
      encodings[entry] = ReadPointerEncoding(cursor, section.is_64_bit);
      continue;
    }
    const auto encoding = back <= body ? encodings.find(body - back) : encodings.end();
    if (encoding == encodings.end() || !encoding->second) {
      ++bad;
      continue;
    }
    const uint64_t start = cursor.Pointer(*encoding->second);
    const uint64_t size = cursor.Value(*encoding->second & kFormatMask);
    if (cursor.failed() || size == 0 || start + size < start) {
      ++bad;
      continue;
    }
    if (start != 0) ranges.push_back({start, start + size});
  }
  return ranges;
}

std::optional<uint64_t> FrameSectionAddress(const FrameSection& header) {
  Cursor cursor(header, 0, header.bytes.size());
  const uint64_t version = cursor.Fixed(1);
  const auto encoding = static_cast<uint8_t>(cursor.Fixed(1));
  cursor.Skip(2);
  const uint64_t address = cursor.Pointer(encoding);
  if (cursor.failed() || version != 1 || encoding == kOmitted) return std::nullopt;
  return address;
}

}  // namespace culprit::symbol
