// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_cfi.h"

#include <unordered_map>

#include "record/unwind_cursor.h"

namespace culprit::record {
namespace {

constexpr uint8_t kOmittedPointer = 0xff;
constexpr size_t kMaxRemembered = 64;

// DW_CFA_*
enum CfaInstruction : uint8_t {
  kAdvanceLoc = 0x40,  // in the two highest bits; the rest is its operand
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kNegateRaStateWithPc = 0x2c,  // arm64
  kNegateRaState = 0x2d,        // arm64: return addresses are signed from here on
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffset = 0x2f,
};

// DW_OP_*
enum Operation : uint8_t {
  kOpDeref = 0x06,
  kOpAnd = 0x1a,
  kOpPlus = 0x22,
  kOpPlusUconst = 0x23,
  kOpShl = 0x24,
  kOpGe = 0x2a,
  kOpLit0 = 0x30,
  kOpLit3 = 0x33,
  kOpLit15 = 0x3f,
  kOpBreg0 = 0x70,
  kOpBreg31 = 0x8f,
};

struct RegisterNumbers {
  uint64_t stack;
  uint64_t frame;
  uint64_t program_counter;  // as expressions name it
};

RegisterNumbers NumbersOf(UnwindMachine machine) {
  if (machine == UnwindMachine::kArm64) return {.stack = 31, .frame = 29, .program_counter = 32};
  return {.stack = 7, .frame = 6, .program_counter = 16};
}

struct Place {
  UnwindPlace kind = kPlaceSame;
  int64_t offset = 0;
};

// What the instructions so far add up to.
struct CfiState {
  std::optional<UnwindRule> cfa_expression = {};  // only its cfa fields
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  Place return_address = {};
  Place frame = {};
};

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint64_t return_register = 0;
  uint8_t encoding = 0;
  bool augmented = false;
  bool is_signal_frame = false;
  CfiState initial = {};
};

bool Fits(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

struct BaseRegister {
  uint64_t number = 0;
  int64_t offset = 0;
};

std::optional<BaseRegister> ReadBaseRegister(UnwindCursor& in) {
  const uint8_t operation = in.U8();
  if (operation < kOpBreg0 || operation > kOpBreg31) return std::nullopt;
  return BaseRegister{.number = static_cast<uint64_t>(operation) - kOpBreg0, .offset = in.Signed()};
}

// What linkers write for the entries of a procedure linkage table: each is 16 bytes
// and pushes a word on its way.
bool IsPltTail(UnwindCursor& in, uint64_t program_counter, uint8_t& from) {
  const std::optional<BaseRegister> counter = ReadBaseRegister(in);
  if (!counter || counter->number != program_counter || counter->offset != 0) return false;
  if (in.U8() != kOpLit15 || in.U8() != kOpAnd) return false;
  from = static_cast<uint8_t>(in.U8() - kOpLit0);
  return from <= 15 && in.U8() == kOpGe && in.U8() == kOpLit3 && in.U8() == kOpShl &&
         in.U8() == kOpPlus && in.at_end() && !in.failed();
}

// Only the forms that compilers and linkers write.
UnwindRule CfaExpression(std::string_view bytes, const RegisterNumbers& numbers) {
  const UnwindRule unknown = {};
  UnwindCursor in(bytes, 0);
  const std::optional<BaseRegister> base = ReadBaseRegister(in);
  if (!base || !Fits(base->offset)) return unknown;
  const bool is_stack = base->number == numbers.stack;
  if (!is_stack && base->number != numbers.frame) return unknown;
  UnwindRule rule = {};
  rule.cfa_offset = static_cast<int32_t>(base->offset);
  if (in.at_end()) {
    rule.cfa = is_stack ? kCfaStack : kCfaFrame;
    return in.failed() ? unknown : rule;
  }
  UnwindCursor rest = in;
  if (rest.U8() == kOpDeref) {
    uint64_t extra = 0;
    if (!rest.at_end()) extra = rest.U8() == kOpPlusUconst ? rest.Unsigned() : UINT64_MAX;
    if (!rest.at_end() || rest.failed() || extra > UINT8_MAX) return unknown;
    rule.cfa = is_stack ? kCfaStackDeref : kCfaFrameDeref;
    rule.extra = static_cast<uint8_t>(extra);
    return rule;
  }
  rule.cfa = kCfaPlt;
  return is_stack && IsPltTail(in, numbers.program_counter, rule.extra) ? rule : unknown;
}

Place PlaceExpression(std::string_view bytes, const RegisterNumbers& numbers) {
  UnwindCursor in(bytes, 0);
  const std::optional<BaseRegister> base = ReadBaseRegister(in);
  if (!base || base->number != numbers.frame || !in.at_end() || in.failed()) {
    return {.kind = kPlaceUnknown};
  }
  return {.kind = kPlaceFrame, .offset = base->offset};
}

// Runs the instructions of a CIE or an FDE.
class CfiMachine {
 public:
  CfiMachine(const Cie& cie, UnwindMachine machine, CfiFunction* function)
      : cie_(cie), machine_(machine), numbers_(NumbersOf(machine)), function_(function) {
    state_ = cie.initial;
    if (function != nullptr) location_ = function->start;
  }

  bool Run(UnwindCursor in) {
    while (!in.at_end()) {
      const uint8_t instruction = in.U8();
      const uint8_t operand = instruction & 0x3f;
      switch (instruction & 0xc0) {
        case kAdvanceLoc:
          Advance(operand);
          break;
        case kOffset:
          SetOffset(operand, Scaled(in.Unsigned()));
          break;
        case kRestore:
          Restore(operand);
          break;
        default:
          if (!Extended(instruction, in)) return false;
      }
    }
    if (in.failed()) return false;
    if (function_ != nullptr) AddRow();
    return true;
  }

  const CfiState& state() const { return state_; }

 private:
  int64_t Scaled(uint64_t value) const {
    return static_cast<int64_t>(value * static_cast<uint64_t>(cie_.data_align));
  }
  Place* PlaceOf(uint64_t number) {
    if (number == cie_.return_register) return &state_.return_address;
    if (number == numbers_.frame) return &state_.frame;
    return nullptr;  // of no interest
  }
  void Set(uint64_t number, UnwindPlace kind, int64_t offset = 0) {
    if (Place* place = PlaceOf(number)) *place = {.kind = kind, .offset = offset};
  }
  void SetOffset(uint64_t number, int64_t offset) { Set(number, kPlaceCfa, offset); }
  void Restore(uint64_t number) {
    if (number == cie_.return_register) state_.return_address = cie_.initial.return_address;
    if (number == numbers_.frame) state_.frame = cie_.initial.frame;
  }
  void DefineCfa(uint64_t number, int64_t offset) {
    state_.cfa_expression.reset();
    state_.cfa_register = number;
    state_.cfa_offset = offset;
  }
  void Advance(uint64_t delta) {
    if (function_ == nullptr) return;
    AddRow();
    location_ += delta * cie_.code_align;
  }
  void SetLocation(uint64_t address) {
    if (function_ == nullptr) return;
    AddRow();
    location_ = address;
  }
  void AddRow();
  UnwindRule Rule() const;
  bool Extended(uint8_t instruction, UnwindCursor& in);
  bool OfRegisters(uint8_t instruction, UnwindCursor& in);

  const Cie& cie_;
  UnwindMachine machine_;
  RegisterNumbers numbers_;
  CfiFunction* function_;
  CfiState state_;
  std::vector<CfiState> remembered_;
  uint64_t location_ = 0;
};

UnwindRule CfiMachine::Rule() const {
  UnwindRule rule = {};
  if (cie_.is_signal_frame) {
    rule.cfa = kCfaSignal;
    return rule;
  }
  if (state_.return_address.kind == kPlaceCfa || state_.return_address.kind == kPlaceFrame) {
    if (!Fits(state_.return_address.offset)) return {};
    rule.return_offset = static_cast<int32_t>(state_.return_address.offset);
  }
  rule.return_place = state_.return_address.kind;
  // The outermost frame has no caller, whatever else is said about it.
  if (rule.return_place == kPlaceEnd) return {.cfa = kCfaStack, .return_place = kPlaceEnd};
  if (state_.cfa_expression) {
    rule.cfa = state_.cfa_expression->cfa;
    rule.cfa_offset = state_.cfa_expression->cfa_offset;
    rule.extra = state_.cfa_expression->extra;
  } else if (Fits(state_.cfa_offset)) {
    if (state_.cfa_register == numbers_.stack) rule.cfa = kCfaStack;
    if (state_.cfa_register == numbers_.frame) rule.cfa = kCfaFrame;
    rule.cfa_offset = static_cast<int32_t>(state_.cfa_offset);
  }
  // x86-64 has no register for it.
  const bool lost = rule.return_place == kPlaceUnknown ||
                    (rule.return_place == kPlaceSame && machine_ == UnwindMachine::kX86_64);
  if (lost || rule.cfa == kCfaUnknown) return {};
  rule.frame_place = state_.frame.kind;
  if (state_.frame.kind == kPlaceCfa || state_.frame.kind == kPlaceFrame) {
    if (Fits(state_.frame.offset)) {
      rule.frame_offset = static_cast<int32_t>(state_.frame.offset);
    } else {
      rule.frame_place = kPlaceUnknown;
    }
  }
  return rule;
}

void CfiMachine::AddRow() {
  if (location_ >= function_->end || location_ < function_->start) return;
  std::vector<CfiRow>& rows = function_->rows;
  const UnwindRule rule = Rule();
  if (!rows.empty() && rows.back().address == location_) {
    rows.back().rule = rule;
  } else if (rows.empty() || location_ > rows.back().address) {
    rows.push_back({.address = location_, .rule = rule});
  }
}

// False if the rest cannot be understood.
bool CfiMachine::Extended(uint8_t instruction, UnwindCursor& in) {
  switch (instruction) {
    case kNop:
    case kNegateRaState:
    case kNegateRaStateWithPc:
      return true;
    case kSetLoc:
      SetLocation(in.Pointer(cie_.encoding));
      return true;
    case kAdvanceLoc1:
      Advance(in.U8());
      return true;
    case kAdvanceLoc2:
      Advance(in.U16());
      return true;
    case kAdvanceLoc4:
      Advance(in.U32());
      return true;
    case kRememberState:
      if (remembered_.size() >= kMaxRemembered) return false;
      remembered_.push_back(state_);
      return true;
    case kRestoreState:
      if (remembered_.empty()) return false;
      state_ = remembered_.back();
      remembered_.pop_back();
      return true;
    case kDefCfa: {
      const uint64_t number = in.Unsigned();
      DefineCfa(number, static_cast<int64_t>(in.Unsigned()));
      return true;
    }
    case kDefCfaSf: {
      const uint64_t number = in.Unsigned();
      DefineCfa(number, Scaled(static_cast<uint64_t>(in.Signed())));
      return true;
    }
    case kDefCfaRegister:
      DefineCfa(in.Unsigned(), state_.cfa_offset);
      return true;
    case kDefCfaOffset:
      DefineCfa(state_.cfa_register, static_cast<int64_t>(in.Unsigned()));
      return true;
    case kDefCfaOffsetSf:
      DefineCfa(state_.cfa_register, Scaled(static_cast<uint64_t>(in.Signed())));
      return true;
    case kDefCfaExpression:
      state_.cfa_expression = CfaExpression(in.Bytes(in.Unsigned()), numbers_);
      return true;
    case kGnuArgsSize:
      in.Unsigned();
      return true;
    default:
      return OfRegisters(instruction, in);
  }
}

bool CfiMachine::OfRegisters(uint8_t instruction, UnwindCursor& in) {
  if (instruction > kValExpression && instruction != kGnuNegativeOffset) return false;
  const uint64_t number = in.Unsigned();
  switch (instruction) {
    case kOffsetExtended:
      SetOffset(number, Scaled(in.Unsigned()));
      return true;
    case kOffsetExtendedSf:
      SetOffset(number, Scaled(static_cast<uint64_t>(in.Signed())));
      return true;
    case kGnuNegativeOffset:
      SetOffset(number, -Scaled(in.Unsigned()));
      return true;
    case kRestoreExtended:
      Restore(number);
      return true;
    case kUndefined:
      // An undefined frame pointer is one that nobody needs.
      Set(number, number == cie_.return_register ? kPlaceEnd : kPlaceSame);
      return true;
    case kSameValue:
      Set(number, kPlaceSame);
      return true;
    case kRegister:
    case kValOffset:
    case kValOffsetSf:
      in.Unsigned();
      Set(number, kPlaceUnknown);
      return true;
    case kExpression: {
      const Place place = PlaceExpression(in.Bytes(in.Unsigned()), numbers_);
      Set(number, place.kind, place.offset);
      return true;
    }
    case kValExpression:
      in.Bytes(in.Unsigned());
      Set(number, kPlaceUnknown);
      return true;
    default:
      return false;
  }
}

bool ReadAugmentation(UnwindCursor& in, std::string_view letters, Cie& cie) {
  UnwindCursor data(in.Bytes(in.Unsigned()), 0);
  for (const char letter : letters.substr(1)) {
    switch (letter) {
      case 'R':
        cie.encoding = data.U8();
        break;
      case 'L':
        data.U8();
        break;
      case 'P': {
        const uint8_t encoding = data.U8();
        if (encoding != kOmittedPointer) data.Value(encoding);
        break;
      }
      case 'S':
        cie.is_signal_frame = true;
        break;
      case 'B':  // arm64: signed with the other key
      case 'G':  // arm64: tagged memory
        break;
      default:
        return false;
    }
  }
  return !data.failed() && cie.encoding != kOmittedPointer;
}

// `in` stands behind the id.
std::optional<Cie> ReadCie(UnwindCursor in, UnwindMachine machine) {
  Cie cie;
  const uint8_t version = in.U8();
  const std::string_view letters = in.CString();
  if (version != 1 && version != 3 && version != 4) return std::nullopt;
  if (version == 4) in.Bytes(2);
  cie.code_align = in.Unsigned();
  cie.data_align = in.Signed();
  cie.return_register = version == 1 ? in.U8() : in.Unsigned();
  cie.augmented = letters.starts_with('z');
  if (cie.augmented && !ReadAugmentation(in, letters, cie)) return std::nullopt;
  if (in.failed() || (!cie.augmented && !letters.empty())) return std::nullopt;
  CfiMachine run(cie, machine, nullptr);
  if (!run.Run(in)) return std::nullopt;
  cie.initial = run.state();
  return cie;
}

bool ReadFde(UnwindCursor in, const Cie& cie, UnwindMachine machine, CfiFunction& function) {
  function.rows.clear();
  function.start = in.Pointer(cie.encoding);
  const uint64_t size = in.Value(cie.encoding);
  if (cie.augmented) in.Bytes(in.Unsigned());
  function.end = function.start + size;
  if (in.failed() || size == 0 || function.end < function.start) return false;
  CfiMachine run(cie, machine, &function);
  return run.Run(in) && !function.rows.empty() && function.rows.front().address == function.start;
}

}  // namespace

std::optional<UnwindMachine> OwnUnwindMachine() {
#if defined(__aarch64__)
  return UnwindMachine::kArm64;
#elif defined(__x86_64__)
  return UnwindMachine::kX86_64;
#else
  return std::nullopt;
#endif
}

uint64_t ReadCfi(const CfiSection& section,
                 const std::function<void(const CfiFunction&)>& visitor) {
  std::unordered_map<uint64_t, std::optional<Cie>> cies;  // by address of the entry
  CfiFunction function;
  uint64_t bad = 0;
  UnwindCursor in(section.bytes, section.address);
  while (!in.at_end()) {
    const uint64_t entry = in.address();
    uint64_t length = in.U32();
    if (length == 0) break;
    if (length == UINT32_MAX) length = in.U64();
    const uint64_t address = in.address();
    const std::string_view bytes = in.Bytes(length);
    // Without a length there is no next entry.
    if (in.failed()) return bad + 1;
    UnwindCursor body(bytes, address);
    const uint32_t back = body.U32();
    if (back == 0) {
      cies[entry] = ReadCie(body, section.machine);
      continue;
    }
    const auto cie = cies.find(address - back);
    if (cie == cies.end() || !cie->second ||
        !ReadFde(body, *cie->second, section.machine, function)) {
      ++bad;
      continue;
    }
    // Linkers leave entries of functions that they dropped, at address 0.
    if (function.start != 0) visitor(function);
  }
  return bad;
}

}  // namespace culprit::record
