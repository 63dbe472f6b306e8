// SPDX-License-Identifier: Apache-2.0
#include "import/etl_text.h"

#include "base/utf8.h"

namespace culprit::import_ {
namespace {

void AppendEtlUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xc0 | code >> 6));
    out.push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | code >> 12));
    out.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xf0 | code >> 18));
    out.push_back(static_cast<char>(0x80 | (code >> 12 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (code >> 6 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3f)));
  }
}

std::string EtlHexadecimal(uint64_t value, int digits) {
  std::string text;
  for (int i = digits - 1; i >= 0; --i) text += "0123456789abcdef"[value >> (4 * i) & 15];
  return text;
}

}  // namespace

std::string TakeWideText(ByteReader& reader) {
  std::string text;
  uint32_t high = 0;  // the first half of a pair, waiting for its second
  while (reader.remaining() >= 2) {
    const uint16_t unit = reader.U16();
    if (unit == 0) break;
    const bool second = unit >= 0xdc00 && unit < 0xe000;
    if (high != 0 && second) {
      AppendEtlUtf8(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00), text);
      high = 0;
      continue;
    }
    if (high != 0) text += kReplacementCharacter;
    high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
    if (second) {
      text += kReplacementCharacter;
    } else if (high == 0) {
      AppendEtlUtf8(unit, text);
    }
  }
  if (high != 0) text += kReplacementCharacter;
  return text;
}

std::string TakeNarrowText(ByteReader& reader) {
  std::string text;
  while (reader.remaining() > 0) {
    const char c = static_cast<char>(reader.U8());
    if (c == '\0') break;
    text.push_back(c);
  }
  return ValidUtf8(text);
}

std::string TakeDebugId(ByteReader& reader) {
  std::string id = EtlHexadecimal(reader.U32(), 8);
  id += EtlHexadecimal(reader.U16(), 4);
  id += EtlHexadecimal(reader.U16(), 4);
  for (const char c : reader.Bytes(8)) id += EtlHexadecimal(static_cast<uint8_t>(c), 2);
  const uint32_t age = reader.U32();
  int digits = 1;
  while (digits < 8 && age >> (4 * digits) != 0) ++digits;
  return id + EtlHexadecimal(age, digits);
}

std::string ModuleNameOf(std::string_view path) {
  const size_t slash = path.find_last_of("\\/");
  std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace culprit::import_
