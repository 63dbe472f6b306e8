// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/function_starts.h"

#include <algorithm>
#include <cstring>

#include "guard/runtime/code_address.h"

namespace culprit::guard::runtime {
namespace {

// DWARF's pointer encodings and call frame instructions, as far as they matter.
constexpr uint8_t kAbsolute = 0x00, kUleb = 0x01, kUdata2 = 0x02, kUdata4 = 0x03, kUdata8 = 0x04,
                  kSleb = 0x09, kSdata2 = 0x0a, kSdata4 = 0x0b, kSdata8 = 0x0c, kOmit = 0xff;
constexpr uint8_t kPcRelative = 0x10, kDataRelative = 0x30, kIndirect = 0x80;
constexpr uint8_t kAdvanceLoc = 0x40, kOffset = 0x80;  // top two bits
constexpr uint8_t kSetLoc = 0x01, kAdvance1 = 0x02, kAdvance4 = 0x04, kOffsetExtended = 0x05,
                  kRegister = 0x09, kRememberState = 0x0a, kDefCfa = 0x0c, kDefCfaRegister = 0x0d,
                  kDefCfaOffset = 0x0e, kDefCfaExpression = 0x0f, kNegateRaState = 0x2d,
                  kArgsSize = 0x2e;

// Bytes from `at` to the end of the record or segment they are in. Reading
// beyond the end yields zeros and sets `bad`.
struct Cursor {
  uint64_t at = 0;
  std::span<const uint8_t> left;
  bool bad = false;

  template <typename T>
  T Take() {
    T value = 0;
    if (left.size() < sizeof(T)) {
      bad = true;
      return 0;
    }
    std::memcpy(&value, left.data(), sizeof(T));
    Skip(sizeof(T));
    return value;
  }
  void Skip(uint64_t bytes) {
    if (bytes > left.size()) {
      bad = true;
      bytes = left.size();
    }
    left = left.subspan(bytes);
    at += bytes;
  }
  uint64_t TakeUleb(bool is_signed = false) {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && (byte & 0x40) != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
      return value;
    }
    bad = true;
    return 0;
  }
  uint64_t TakeEncoded(uint8_t encoding, uint64_t data_base) {
    const uint64_t from = at;
    uint64_t value = 0;
    switch (encoding & 0x0f) {
      case kAbsolute:
      case kUdata8:
      case kSdata8:
        value = Take<uint64_t>();
        break;
      case kUleb:
        value = TakeUleb();
        break;
      case kSleb:
        value = TakeUleb(true);
        break;
      case kUdata2:
        value = Take<uint16_t>();
        break;
      case kUdata4:
        value = Take<uint32_t>();
        break;
      case kSdata2:
        value = static_cast<uint64_t>(int64_t{Take<int16_t>()});
        break;
      case kSdata4:
        value = static_cast<uint64_t>(int64_t{Take<int32_t>()});
        break;
      default:
        bad = true;
    }
    const uint8_t base = encoding & 0x70;
    if (base == kPcRelative) value += from;
    if (base == kDataRelative) value += data_base;
    bad |=
        (encoding & kIndirect) != 0 || (base != 0 && base != kPcRelative && base != kDataRelative);
    return value;
  }
};

class TableReader {
 public:
  TableReader(std::span<const ImageSegment> image, uint64_t header)
      : image_(image), header_(header) {}

  StartsState Read(MappedArray<FunctionStart>& starts);

 private:
  struct Cie {
    uint64_t at = ~uint64_t{0};
    uint8_t encoding = kAbsolute;
    bool augmented = false;
    bool signal_frame = false;
    uint64_t cfa_register = 0, cfa_offset = 0;
  };

  bool Open(uint64_t address, Cursor& cursor) const;
  bool OpenRecord(uint64_t address, Cursor& record) const;
  static bool ReadAugmentation(const char* letters, Cursor& record, Cie& cie);
  bool ReadCie(uint64_t address);
  bool ReadFde(uint64_t address, uint64_t entry, FunctionStart& start);
  bool FrameIsSetUp(Cursor instructions) const;
  bool IsCode(uint64_t begin, uint64_t size) const;

  std::span<const ImageSegment> image_;
  uint64_t header_;
  Cie cie_;  // the last one read: neighbours mostly share it
};

bool TableReader::Open(uint64_t address, Cursor& cursor) const {
  for (const ImageSegment& segment : image_) {
    if (address < segment.address || address - segment.address >= segment.bytes.size()) continue;
    cursor = {address, segment.bytes.subspan(address - segment.address)};
    return true;
  }
  return false;
}

bool TableReader::OpenRecord(uint64_t address, Cursor& record) const {
  if (!Open(address, record)) return false;
  const uint64_t length = record.Take<uint32_t>();
  // 0xffffffff announces the 64-bit form, which no linker writes here.
  if (record.bad || length < 4 || length == 0xffffffff || length > record.left.size()) return false;
  record.left = record.left.first(length);
  return true;
}

bool TableReader::IsCode(uint64_t begin, uint64_t size) const {
  for (const ImageSegment& segment : image_) {
    if (segment.executable && begin >= segment.address &&
        begin - segment.address < segment.bytes.size() &&
        size <= segment.bytes.size() - (begin - segment.address)) {
      return true;
    }
  }
  return false;
}

bool TableReader::ReadAugmentation(const char* letters, Cursor& record, Cie& cie) {
  cie.augmented = true;
  const uint64_t bytes = record.TakeUleb();
  if (bytes > record.left.size()) return false;
  Cursor data = record;
  data.left = data.left.first(bytes);
  record.Skip(bytes);
  for (; *letters != 0; ++letters) {
    if (*letters == 'R') cie.encoding = data.Take<uint8_t>();
    if (*letters == 'L') data.Take<uint8_t>();
    if (*letters == 'P') {
      const uint8_t encoding = data.Take<uint8_t>();
      data.TakeEncoded(static_cast<uint8_t>(encoding & ~kIndirect), 0);
    }
    if (*letters == 'S') cie.signal_frame = true;
  }
  return !data.bad;
}

bool TableReader::ReadCie(uint64_t address) {
  if (cie_.at == address) return true;
  Cursor record;
  if (!OpenRecord(address, record) || record.Take<uint32_t>() != 0) return false;
  Cie cie;
  cie.at = address;
  const uint8_t version = record.Take<uint8_t>();
  if (version != 1 && version != 3) return false;
  char augmentation[8] = {};
  for (size_t i = 0;; ++i) {
    if (i == sizeof(augmentation)) return false;
    augmentation[i] = static_cast<char>(record.Take<uint8_t>());
    if (augmentation[i] == 0) break;
  }
  record.TakeUleb();      // code alignment
  record.TakeUleb(true);  // data alignment
  if (version == 1) {
    record.Take<uint8_t>();  // return address register
  } else {
    record.TakeUleb();
  }
  if (augmentation[0] == 'z') {
    if (!ReadAugmentation(augmentation + 1, record, cie)) return false;
  } else if (augmentation[0] != 0) {
    return false;
  }
  if (!record.left.empty() && record.left[0] == kDefCfa) {
    record.Skip(1);
    cie.cfa_register = record.TakeUleb();
    cie.cfa_offset = record.TakeUleb();
  }
  if (record.bad) return false;
  cie_ = cie;
  return true;
}

// What comes before the first advance holds at the first instruction. Whatever
// differs from the state behind a call (the CIE's) says: this is no entry.
bool TableReader::FrameIsSetUp(Cursor at) const {
  while (!at.left.empty() && !at.bad) {
    const uint8_t op = at.Take<uint8_t>();
    const uint8_t top = op & 0xc0;
    if (top == kAdvanceLoc || (op >= kAdvance1 && op <= kAdvance4) || op == kSetLoc) return false;
    if (top == kOffset || op == kOffsetExtended || op == kDefCfaExpression ||
        op == kNegateRaState || op == kRegister) {
      return true;
    }
    if (op == kDefCfa) {
      const uint64_t reg = at.TakeUleb();
      const uint64_t offset = at.TakeUleb();
      if (reg != cie_.cfa_register || offset != cie_.cfa_offset) return true;
    } else if (op == kDefCfaRegister) {
      if (at.TakeUleb() != cie_.cfa_register) return true;
    } else if (op == kDefCfaOffset) {
      if (at.TakeUleb() != cie_.cfa_offset) return true;
    } else if (op == kArgsSize) {
      at.TakeUleb();
    } else if (op != 0 && op != kRememberState) {
      return false;
    }
  }
  return false;
}

bool TableReader::ReadFde(uint64_t address, uint64_t entry, FunctionStart& start) {
  Cursor record;
  if (!OpenRecord(address, record)) return false;
  const uint64_t id_at = record.at;
  const uint32_t back = record.Take<uint32_t>();
  if (back == 0 || back > id_at || !ReadCie(id_at - back)) return false;
  const uint64_t begin = record.TakeEncoded(cie_.encoding, header_);
  const uint64_t size = record.TakeEncoded(cie_.encoding & 0x0f, 0);
  if (record.bad || begin != entry || size > 0xffffffff || !IsCode(begin, size)) return false;
  if (cie_.augmented) record.Skip(record.TakeUleb());
  if (record.bad) return false;
  start.entry = begin;
  start.size = static_cast<uint32_t>(size);
  start.flags = (FrameIsSetUp(record) ? FunctionStart::kColdPart : 0u) |
                (cie_.signal_frame ? FunctionStart::kSignalFrame : 0u);
  return true;
}

StartsState TableReader::Read(MappedArray<FunctionStart>& starts) {
  Cursor table;
  if (!Open(header_, table)) return StartsState::kDamaged;
  const uint8_t version = table.Take<uint8_t>();
  const uint8_t frame_encoding = table.Take<uint8_t>();
  const uint8_t count_encoding = table.Take<uint8_t>();
  const uint8_t table_encoding = table.Take<uint8_t>();
  if (version != 1 || frame_encoding == kOmit) return StartsState::kDamaged;
  if (count_encoding == kOmit || table_encoding == kOmit) return StartsState::kNoTable;
  table.TakeEncoded(frame_encoding, header_);
  const uint64_t count = table.TakeEncoded(count_encoding, header_);
  // Pairs of pointers of at least two bytes: this bounds what a wrong count can ask for.
  if (table.bad || count > table.left.size() / 4) return StartsState::kDamaged;
  if (!starts.Reserve(count)) return StartsState::kNoMemory;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = table.TakeEncoded(table_encoding, header_);
    const uint64_t fde = table.TakeEncoded(table_encoding, header_);
    FunctionStart start;
    if (table.bad || !ReadFde(fde, entry, start)) return StartsState::kDamaged;
    if (!starts.empty() && start.entry < starts.back().entry) return StartsState::kDamaged;
    if (start.size == 0 || (!starts.empty() && start.entry == starts.back().entry)) continue;
    if (!starts.Append(start)) return StartsState::kNoMemory;
  }
  return StartsState::kRead;
}

}  // namespace

StartsState ReadFunctionStarts(std::span<const ImageSegment> image, uint64_t eh_frame_hdr,
                               MappedArray<FunctionStart>& starts) {
  starts.clear();
  const StartsState state = TableReader(image, eh_frame_hdr).Read(starts);
  if (state != StartsState::kRead) starts.clear();
  return state;
}

std::span<const ImageSegment> SegmentsOf(const LoadedModule& module,
                                         ImageSegment (&image)[LoadedModule::kMaxSegments]) {
  for (uint32_t i = 0; i < module.segment_count; ++i) {
    const AddressRange& range = module.segments[i].range;
    image[i] = {range.begin,
                {BytesAt(range.begin), range.end - range.begin},
                module.segments[i].executable};
  }
  return {image, module.segment_count};
}

StartsState ReadFunctionStarts(const LoadedModule& module, MappedArray<FunctionStart>& starts) {
  starts.clear();
  if (module.eh_frame_hdr.begin >= module.eh_frame_hdr.end) return StartsState::kNoTable;
  ImageSegment image[LoadedModule::kMaxSegments];
  return ReadFunctionStarts(SegmentsOf(module, image), module.eh_frame_hdr.begin, starts);
}

}  // namespace culprit::guard::runtime
