// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/frame_rules.h"

#include <cstring>

#include "guard/runtime/code_address.h"

namespace culprit::guard::runtime {
namespace {

// Pointer encodings of .eh_frame.
enum : uint8_t {
  kAbsolute = 0x00,
  kUleb = 0x01,
  kU2 = 0x02,
  kU4 = 0x03,
  kU8 = 0x04,
  kSleb = 0x09,
  kS2 = 0x0a,
  kS4 = 0x0b,
  kS8 = 0x0c,
  kPcRelative = 0x10,
  kIndirect = 0x80,
  kOmitted = 0xff
};

// Bytes at their place in memory, with an end that nothing is read behind.
class CodeBytes {
 public:
  CodeBytes(uint64_t at, uint64_t end) : at_(at), end_(end) {}

  uint64_t at() const { return at_; }
  bool good() const { return good_; }
  bool empty() const { return !good_ || at_ >= end_; }
  CodeBytes Part(uint64_t size) {
    if (size > end_ - at_) Fail();
    if (!good_) return {0, 0};
    CodeBytes part(at_, at_ + size);
    at_ += size;
    return part;
  }
  template <class T>
  T Take() {
    T value = 0;
    if (!good_ || end_ - at_ < sizeof(T)) {
      Fail();
      return value;
    }
    memcpy(&value, BytesAt(at_), sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  uint64_t TakeUleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; good_; shift += 7) {
      const auto byte = Take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  int64_t TakeSleb() {
    uint64_t value = 0;
    for (uint32_t shift = 0; good_; shift += 7) {
      const auto byte = Take<uint8_t>();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if (shift + 7 < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << (shift + 7);
      break;
    }
    return static_cast<int64_t>(value);
  }
  uint64_t TakePointer(uint8_t encoding) {
    const uint64_t here = at_;
    uint64_t value = 0;
    switch (encoding & 0x0f) {
      case kAbsolute:
      case kU8:
      case kS8:
        value = Take<uint64_t>();
        break;
      case kUleb:
        value = TakeUleb();
        break;
      case kU2:
        value = Take<uint16_t>();
        break;
      case kU4:
        value = Take<uint32_t>();
        break;
      case kSleb:
        value = static_cast<uint64_t>(TakeSleb());
        break;
      case kS2:
        value = static_cast<uint64_t>(int64_t{Take<int16_t>()});
        break;
      case kS4:
        value = static_cast<uint64_t>(int64_t{Take<int32_t>()});
        break;
      default:
        Fail();
    }
    if ((encoding & 0x70) == kPcRelative) {
      value += here;
    } else if ((encoding & 0x70) != 0 || (encoding & kIndirect) != 0) {
      Fail();
    }
    return value;
  }
  void Skip(uint64_t size) { Part(size); }
  void Fail() { good_ = false; }

 private:
  uint64_t at_;
  uint64_t end_;
  bool good_ = true;
};

CodeBytes SegmentFrom(const LoadedModule& module, uint64_t address) {
  for (uint32_t i = 0; i < module.segment_count; ++i) {
    const AddressRange& range = module.segments[i].range;
    if (range.Contains(address)) return {address, range.end};
  }
  CodeBytes none(0, 0);
  none.Fail();
  return none;
}

// The binary search table: pairs of offsets from the header's begin.
bool FindFde(const LoadedModule& module, uint64_t pc, uint64_t& fde) {
  const uint64_t header = module.eh_frame_hdr.begin;
  if (header == 0) return false;
  CodeBytes bytes = SegmentFrom(module, header);
  const auto version = bytes.Take<uint8_t>();
  const auto pointer_encoding = bytes.Take<uint8_t>();
  const auto count_encoding = bytes.Take<uint8_t>();
  const auto table_encoding = bytes.Take<uint8_t>();
  if (!bytes.good() || version != 1 || table_encoding != (0x30 | kS4)) return false;
  bytes.TakePointer(pointer_encoding);
  const uint64_t count = bytes.TakePointer(count_encoding);
  const uint64_t table = bytes.at();
  if (count > UINT32_MAX) bytes.Fail();
  bytes.Skip(count * 8);
  if (!bytes.good() || count == 0) return false;
  uint64_t low = 0;
  uint64_t high = count;
  const auto entry = [&](uint64_t i, uint32_t which) {
    int32_t offset = 0;
    memcpy(&offset, BytesAt(table + 8 * i + 4 * which), sizeof(offset));
    return header + static_cast<uint64_t>(int64_t{offset});
  };
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (entry(middle, 0) <= pc ? low : high) = middle;
  }
  fde = entry(low, 1);
  return entry(low, 0) <= pc;
}

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint8_t fde_encoding = kAbsolute;
  bool has_augmentation = false;
  CodeBytes program{0, 0};
};

// The augmentation string: z, then a letter for each part of the data.
void ReadAugmentation(CodeBytes& bytes, const char* letters, uint64_t count, Cie& cie,
                      FrameRules& rules) {
  cie.has_augmentation = true;
  CodeBytes data = bytes.Part(bytes.TakeUleb());
  for (uint64_t i = 1; i < count && data.good(); ++i) {
    switch (letters[i]) {
      case 'R':
        cie.fde_encoding = data.Take<uint8_t>();
        break;
      case 'P': {
        const auto encoding = data.Take<uint8_t>();
        data.TakePointer(encoding & 0x7f);  // the personality is not followed
        break;
      }
      case 'L':
        data.Take<uint8_t>();
        break;
      case 'S':
        rules.signal_frame = true;
        break;
      default:
        break;  // 'B': signed return addresses
    }
  }
}

bool ReadCie(const LoadedModule& module, uint64_t address, Cie& cie, FrameRules& rules) {
  CodeBytes section = SegmentFrom(module, address);
  const auto length = section.Take<uint32_t>();
  if (length == 0 || length == UINT32_MAX) return false;
  CodeBytes bytes = section.Part(length);
  if (bytes.Take<uint32_t>() != 0) return false;  // not a CIE
  const auto version = bytes.Take<uint8_t>();
  if (version != 1 && version != 3) return false;
  char letters[8] = {};
  uint64_t count = 0;
  for (char c = bytes.Take<char>(); c != 0 && bytes.good(); c = bytes.Take<char>()) {
    if (count == sizeof(letters)) return false;
    letters[count++] = c;
  }
  cie.code_align = bytes.TakeUleb();
  cie.data_align = bytes.TakeSleb();
  rules.return_register =
      version == 1 ? bytes.Take<uint8_t>() : static_cast<uint32_t>(bytes.TakeUleb());
  if (count > 0 && letters[0] == 'z') {
    ReadAugmentation(bytes, letters, count, cie, rules);
  } else if (count > 0) {
    return false;
  }
  cie.program = bytes;
  return bytes.good() && rules.return_register < Registers::kCount;
}

// Runs the instructions of a CIE or FDE up to a place in the code.
class RuleProgram {
 public:
  RuleProgram(const Cie& cie, FrameRules& rules) : cie_(cie), rules_(rules) {}

  bool Run(CodeBytes program, uint64_t begin, uint64_t pc) {
    place_ = begin;
    while (!program.empty() && place_ <= pc) {
      const auto op = program.Take<uint8_t>();
      if (op >> 6 != 0) {
        Short(op, program);
      } else if (!Long(op, program)) {
        return false;
      }
    }
    return program.good();
  }
  void KeepInitial() { initial_ = rules_; }

 private:
  static constexpr uint32_t kMaxRemembered = 4;

  void Short(uint8_t op, CodeBytes& program) {
    const uint32_t low = op & 0x3f;
    if (op >> 6 == 1) {
      place_ += low * cie_.code_align;
    } else if (op >> 6 == 2) {
      Set(low, FrameRules::kAtOffset, static_cast<int64_t>(program.TakeUleb()) * cie_.data_align);
    } else {
      Restore(low);
    }
  }

  bool Long(uint8_t op, CodeBytes& program) {
    switch (op) {
      case 0x00:
        return true;
      case 0x01:
        place_ = program.TakePointer(cie_.fde_encoding);
        return true;
      case 0x02:
        place_ += program.Take<uint8_t>() * cie_.code_align;
        return true;
      case 0x03:
        place_ += program.Take<uint16_t>() * cie_.code_align;
        return true;
      case 0x04:
        place_ += program.Take<uint32_t>() * cie_.code_align;
        return true;
      case 0x05:
        return SetNext(program, FrameRules::kAtOffset, false);
      case 0x06:
        Restore(Register(program));
        return true;
      case 0x07:
        Set(Register(program), FrameRules::kUndefined, 0);
        return true;
      case 0x08:
        Set(Register(program), FrameRules::kSame, 0);
        return true;
      case 0x09: {
        const uint32_t index = Register(program);
        Set(index, FrameRules::kInRegister, static_cast<int64_t>(program.TakeUleb()));
        return true;
      }
      case 0x0a:
        return Remember();
      case 0x0b:
        return Recall();
      case 0x0c:
        rules_.cfa_register = Register(program);
        rules_.cfa_offset = static_cast<int64_t>(program.TakeUleb());
        return true;
      case 0x0d:
        rules_.cfa_register = Register(program);
        return true;
      case 0x0e:
        rules_.cfa_offset = static_cast<int64_t>(program.TakeUleb());
        return true;
      case 0x11:
        return SetNext(program, FrameRules::kAtOffset, true);
      case 0x12:
        rules_.cfa_register = Register(program);
        rules_.cfa_offset = program.TakeSleb() * cie_.data_align;
        return true;
      case 0x13:
        rules_.cfa_offset = program.TakeSleb() * cie_.data_align;
        return true;
      case 0x14:
        return SetNext(program, FrameRules::kIsOffset, false);
      case 0x15:
        return SetNext(program, FrameRules::kIsOffset, true);
      case 0x2d:
        return true;  // arm64: return addresses are signed from here on
      case 0x2e:
        program.TakeUleb();
        return true;  // size of arguments
      default:
        return false;  // expressions and what nobody emits
    }
  }

  static uint32_t Register(CodeBytes& program) {
    const uint64_t index = program.TakeUleb();
    return index < Registers::kCount ? static_cast<uint32_t>(index) : Registers::kCount;
  }
  bool SetNext(CodeBytes& program, FrameRules::Kind kind, bool is_signed) {
    const uint32_t index = Register(program);
    const int64_t offset =
        is_signed ? program.TakeSleb() : static_cast<int64_t>(program.TakeUleb());
    Set(index, kind, offset * cie_.data_align);
    return true;
  }
  // Vector registers have numbers too; nobody asks for them.
  void Set(uint32_t index, FrameRules::Kind kind, int64_t offset) {
    if (index < Registers::kCount) rules_.rules[index] = {kind, static_cast<int32_t>(offset)};
  }
  void Restore(uint32_t index) {
    if (index < Registers::kCount) rules_.rules[index] = initial_.rules[index];
  }
  bool Remember() {
    if (remembered_count_ == kMaxRemembered) return false;
    remembered_[remembered_count_++] = rules_;
    return true;
  }
  bool Recall() {
    if (remembered_count_ == 0) return false;
    rules_ = remembered_[--remembered_count_];
    return true;
  }

  const Cie& cie_;
  FrameRules& rules_;
  uint64_t place_ = 0;
  FrameRules initial_;
  FrameRules remembered_[kMaxRemembered];
  uint32_t remembered_count_ = 0;
};

}  // namespace

bool FindFrameRules(const LoadedModule& module, uint64_t pc, FrameRules& rules) {
  rules = {};
  uint64_t fde = 0;
  if (!FindFde(module, pc, fde)) return false;
  CodeBytes section = SegmentFrom(module, fde);
  const auto length = section.Take<uint32_t>();
  if (!section.good() || length == 0 || length == UINT32_MAX) return false;
  CodeBytes bytes = section.Part(length);
  const uint64_t cie_field = bytes.at();
  const auto back = bytes.Take<uint32_t>();
  Cie cie;
  if (!bytes.good() || back == 0 || !ReadCie(module, cie_field - back, cie, rules)) return false;
  const uint64_t begin = bytes.TakePointer(cie.fde_encoding);
  const uint64_t size = bytes.TakePointer(cie.fde_encoding & 0x0f);
  if (cie.has_augmentation) bytes.Skip(bytes.TakeUleb());
  if (!bytes.good() || pc < begin || pc - begin >= size) return false;
  rules.function = begin;
  RuleProgram program(cie, rules);
  if (!program.Run(cie.program, 0, 0)) return false;
  program.KeepInitial();
  return program.Run(bytes, begin, pc) && rules.cfa_register < Registers::kCount;
}

}  // namespace culprit::guard::runtime
