// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_cursor.h"

namespace culprit::record {
namespace {

// DW_EH_PE_*: the low half says the format, the high half what it is relative to.
constexpr uint8_t kFormatMask = 0x0f;
constexpr uint8_t kBaseMask = 0x70;
constexpr uint8_t kPcRelative = 0x10;
constexpr uint8_t kIndirect = 0x80;

uint64_t Extend(int64_t value) { return static_cast<uint64_t>(value); }

}  // namespace

uint64_t UnwindCursor::Unsigned() {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = in_.U8();
    if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

int64_t UnwindCursor::Signed() {
  uint64_t value = 0;
  unsigned shift = 0;
  uint8_t byte = 0x80;
  while ((byte & 0x80) != 0) {
    byte = in_.U8();
    if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
    shift += 7;
  }
  if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
  return static_cast<int64_t>(value);
}

std::string_view UnwindCursor::CString() {
  const std::string_view rest = bytes_.substr(in_.position());
  const size_t length = rest.find('\0');
  if (length == std::string_view::npos) {
    Fail();
    return {};
  }
  in_.Bytes(length + 1);
  return rest.substr(0, length);
}

std::string_view UnwindCursor::Bytes(uint64_t count) {
  if (count > in_.remaining()) {
    Fail();
    return {};
  }
  return in_.Bytes(static_cast<size_t>(count));
}

uint64_t UnwindCursor::Value(uint8_t encoding) {
  switch (encoding & kFormatMask) {
    case 0x00:  // absptr
    case 0x08:  // signed
    case 0x04:  // udata8
    case 0x0c:  // sdata8
      return in_.U64();
    case 0x01:
      return Unsigned();
    case 0x09:
      return Extend(Signed());
    case 0x02:
      return in_.U16();
    case 0x0a:
      return Extend(static_cast<int16_t>(in_.U16()));
    case 0x03:
      return in_.U32();
    case 0x0b:
      return Extend(static_cast<int32_t>(in_.U32()));
    default:
      Fail();
      return 0;
  }
}

uint64_t UnwindCursor::Pointer(uint8_t encoding) {
  const uint64_t here = address();
  const uint64_t value = Value(encoding);
  const uint8_t base = encoding & kBaseMask;
  // The others are relative to what only a running program knows.
  if ((encoding & kIndirect) != 0 || (base != 0 && base != kPcRelative)) Fail();
  return base == kPcRelative ? value + here : value;
}

}  // namespace culprit::record
