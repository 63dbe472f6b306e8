// SPDX-License-Identifier: Apache-2.0
#include "import/etl_xpress.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace culprit::import_ {
namespace {

constexpr size_t kXpressMinMatch = 3;
constexpr size_t kXpressBlockBytes = 65536;
constexpr size_t kXpressSymbols = 512;
constexpr size_t kXpressMaxCodeBits = 15;

uint8_t XpressByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

// Little-endian, `width` bytes; nothing if they are not all there.
std::optional<uint32_t> TakeXpress(std::string_view bytes, size_t width, size_t& at) {
  if (bytes.size() - at < width) return std::nullopt;
  uint32_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= uint32_t{XpressByteAt(bytes, at + i)} << (8 * i);
  at += width;
  return value;
}

// A match may overlap what it makes, so it is copied byte by byte.
bool CopyXpressMatch(size_t distance, size_t length, size_t size, std::string& out) {
  if (distance == 0 || distance > out.size() || length > size - out.size()) return false;
  for (size_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
  return true;
}

// Longer and longer forms of a length: a byte, two, four; those of more than a
// byte state the whole of it, of which `base` is known already.
std::optional<size_t> XpressLongLength(std::string_view bytes, size_t base, size_t& at) {
  std::optional<uint32_t> value = TakeXpress(bytes, 1, at);
  if (!value) return std::nullopt;
  if (*value < 255) return *value + base;
  value = TakeXpress(bytes, 2, at);
  if (value && *value == 0) value = TakeXpress(bytes, 4, at);
  if (!value || *value < base) return std::nullopt;
  return *value;
}

class XpressLz77 {
 public:
  XpressLz77(std::string_view bytes, size_t size, std::string& out)
      : bytes_(bytes), size_(size), out_(out) {}

  bool Run() {
    uint32_t flags = 0;
    size_t left = 0;
    while (out_.size() < size_) {
      if (left == 0) {
        const auto next = TakeXpress(bytes_, 4, at_);
        if (!next) return false;
        flags = *next;
        left = 32;
      }
      --left;
      if ((flags >> left & 1) != 0) {
        if (!Match()) return false;
      } else {
        if (at_ >= bytes_.size()) return false;
        out_.push_back(bytes_[at_++]);
      }
    }
    return true;
  }

 private:
  bool Match() {
    const auto pair = TakeXpress(bytes_, 2, at_);
    if (!pair) return false;
    const auto length = Length(*pair & 7);
    return length && CopyXpressMatch((*pair >> 3) + 1, *length + kXpressMinMatch, size_, out_);
  }

  // Two matches share a byte for the next four bits of their lengths.
  std::optional<size_t> Length(size_t three_bits) {
    if (three_bits < 7) return three_bits;
    size_t four_bits = 0;
    if (half_byte_) {
      four_bits = XpressByteAt(bytes_, *half_byte_) >> 4;
      half_byte_.reset();
    } else {
      if (at_ >= bytes_.size()) return std::nullopt;
      four_bits = XpressByteAt(bytes_, at_) & 15;
      half_byte_ = at_++;
    }
    if (four_bits < 15) return four_bits + 7;
    return XpressLongLength(bytes_, 15 + 7, at_);
  }

  std::string_view bytes_;
  size_t size_;
  std::string& out_;
  size_t at_ = 0;
  std::optional<size_t> half_byte_;  // where the upper half is still to be used
};

class XpressHuffman {
 public:
  XpressHuffman(std::string_view bytes, size_t size, std::string& out)
      : bytes_(bytes), size_(size), out_(out), table_(size_t{1} << kXpressMaxCodeBits) {}

  bool Run() {
    while (out_.size() < size_) {
      if (!ReadTable() || !Block(std::min(size_, out_.size() + kXpressBlockBytes))) return false;
    }
    return true;
  }

 private:
  bool ReadTable() {
    if (bytes_.size() - at_ < kXpressSymbols / 2) return false;
    size_t filled = 0;
    for (size_t bits = 1; bits <= kXpressMaxCodeBits; ++bits) {
      for (size_t symbol = 0; symbol < kXpressSymbols; ++symbol) {
        const uint8_t pair = XpressByteAt(bytes_, at_ + symbol / 2);
        if ((symbol % 2 == 0 ? pair & 15 : pair >> 4) != static_cast<int>(bits)) continue;
        const size_t count = size_t{1} << (kXpressMaxCodeBits - bits);
        if (filled + count > table_.size()) return false;
        for (size_t i = 0; i < count; ++i) {
          table_[filled + i] = {static_cast<uint16_t>(symbol), static_cast<uint8_t>(bits)};
        }
        filled += count;
      }
    }
    at_ += kXpressSymbols / 2;
    return filled == table_.size();
  }

  bool Block(size_t end) {
    const auto high = TakeXpress(bytes_, 2, at_);
    const auto low = high ? TakeXpress(bytes_, 2, at_) : std::nullopt;
    if (!low) return false;
    bits_ = *high << 16 | *low;
    spare_ = 16;
    while (out_.size() < end) {
      const Code code = table_[bits_ >> (32 - kXpressMaxCodeBits)];
      if (!Drop(code.bits)) return false;
      if (code.symbol < 256) {
        out_.push_back(static_cast<char>(code.symbol));
      } else if (!Match(code.symbol - 256u)) {
        return false;
      }
    }
    return true;
  }

  bool Match(size_t symbol) {
    size_t length = symbol % 16;
    const size_t distance_bits = symbol / 16;
    if (length == 15) {
      const auto longer = XpressLongLength(bytes_, 15, at_);
      if (!longer) return false;
      length = *longer;
    }
    const uint32_t rest = distance_bits == 0 ? 0 : bits_ >> (32 - distance_bits);
    if (!Drop(distance_bits)) return false;
    return CopyXpressMatch((size_t{1} << distance_bits) + rest, length + kXpressMinMatch, size_,
                           out_);
  }

  // At the end of the input there is nothing to refill from, and nothing that
  // would need it: the last symbols are in bits_ already.
  bool Drop(size_t count) {
    bits_ <<= count;
    spare_ -= static_cast<int>(count);
    if (spare_ >= 0) return true;
    const uint32_t next = TakeXpress(bytes_, 2, at_).value_or(0);
    bits_ |= next << -spare_;
    spare_ += 16;
    past_end_ += at_ >= bytes_.size() ? 1 : 0;
    return past_end_ <= kMaxRefillsPastEnd;
  }

  struct Code {
    uint16_t symbol = 0;
    uint8_t bits = 0;
  };
  static constexpr int kMaxRefillsPastEnd = 3;

  std::string_view bytes_;
  size_t size_;
  std::string& out_;
  std::vector<Code> table_;
  size_t at_ = 0;
  uint32_t bits_ = 0;
  int spare_ = 0;  // bits beyond the upper 16
  int past_end_ = 0;
};

}  // namespace

bool UnpackXpress(std::string_view bytes, size_t size, std::string& out) {
  out.clear();
  return XpressLz77(bytes, size, out).Run();
}

bool UnpackXpressHuffman(std::string_view bytes, size_t size, std::string& out) {
  out.clear();
  return XpressHuffman(bytes, size, out).Run();
}

}  // namespace culprit::import_
