// SPDX-License-Identifier: Apache-2.0
#include "symbol/call_frame_expression.h"

#include <dwarf.h>

#include "symbol/call_frames.h"

namespace culprit::symbol {
namespace {

class CallFrameStack {
 public:
  void Push(uint64_t value) { values_.push_back(value); }
  uint64_t Pop() {
    if (values_.empty()) {
      failed_ = true;
      return 0;
    }
    const uint64_t value = values_.back();
    values_.pop_back();
    return value;
  }
  // The value `depth` below the top.
  uint64_t Peek(uint64_t depth) {
    if (depth >= values_.size()) {
      failed_ = true;
      return 0;
    }
    return values_[values_.size() - 1 - depth];
  }
  void Fail() { failed_ = true; }
  bool failed() const { return failed_; }

 private:
  std::vector<uint64_t> values_;
  bool failed_ = false;
};

// Two operands and their result; false: no such operation.
bool Combine(uint8_t atom, uint64_t left, uint64_t right, uint64_t& out) {
  const auto a = static_cast<int64_t>(left);
  const auto b = static_cast<int64_t>(right);
  switch (atom) {
    case DW_OP_plus:
      out = left + right;
      return true;
    case DW_OP_minus:
      out = left - right;
      return true;
    case DW_OP_mul:
      out = left * right;
      return true;
    case DW_OP_and:
      out = left & right;
      return true;
    case DW_OP_or:
      out = left | right;
      return true;
    case DW_OP_xor:
      out = left ^ right;
      return true;
    case DW_OP_shl:
      out = right < 64 ? left << right : 0;
      return true;
    case DW_OP_shr:
      out = right < 64 ? left >> right : 0;
      return true;
    case DW_OP_eq:
      out = left == right ? 1 : 0;
      return true;
    case DW_OP_ne:
      out = left != right ? 1 : 0;
      return true;
    case DW_OP_ge:
      out = a >= b ? 1 : 0;
      return true;
    case DW_OP_gt:
      out = a > b ? 1 : 0;
      return true;
    case DW_OP_le:
      out = a <= b ? 1 : 0;
      return true;
    case DW_OP_lt:
      out = a < b ? 1 : 0;
      return true;
    default:
      return false;
  }
}

void PushRegister(const CallFrameRegisters& registers, uint64_t number, uint64_t offset,
                  CallFrameStack& stack) {
  if (number >= CallFrameRegisters::kCount || !registers.Has(static_cast<unsigned>(number))) {
    stack.Fail();
    return;
  }
  stack.Push(registers.values[number] + offset);
}

void PushLoaded(std::optional<uint64_t> value, CallFrameStack& stack) {
  if (value) {
    stack.Push(*value);
  } else {
    stack.Fail();
  }
}

// Operations on the stack alone; false: it is another one.
bool Rearrange(const CallFrameOperation& op, CallFrameStack& stack) {
  switch (op.atom) {
    case DW_OP_dup:
      stack.Push(stack.Peek(0));
      return true;
    case DW_OP_over:
      stack.Push(stack.Peek(1));
      return true;
    case DW_OP_pick:
      stack.Push(stack.Peek(op.number));
      return true;
    case DW_OP_drop:
      stack.Pop();
      return true;
    case DW_OP_swap: {
      const uint64_t top = stack.Pop();
      const uint64_t below = stack.Pop();
      stack.Push(top);
      stack.Push(below);
      return true;
    }
    case DW_OP_not:
      stack.Push(~stack.Pop());
      return true;
    case DW_OP_neg:
      stack.Push(0 - stack.Pop());
      return true;
    case DW_OP_plus_uconst:
      stack.Push(stack.Pop() + op.number);
      return true;
    case DW_OP_nop:
      return true;
    default:
      return false;
  }
}

bool IsConstant(uint8_t atom) {
  return (atom >= DW_OP_const1u && atom <= DW_OP_consts) || atom == DW_OP_addr;
}

}  // namespace

std::optional<uint64_t> EvaluateCallFrame(const CallFrameExpression& expression,
                                          const CallFrameRegisters& registers,
                                          const CallFrameMemory& memory, uint64_t frame_address) {
  CallFrameStack stack;
  for (const CallFrameOperation& op : expression) {
    uint64_t result = 0;
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
      PushRegister(registers, op.atom - DW_OP_breg0, op.number, stack);
    } else if (op.atom == DW_OP_bregx) {
      PushRegister(registers, op.number, op.number2, stack);
    } else if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
      stack.Push(op.atom - DW_OP_lit0);
    } else if (IsConstant(op.atom)) {
      stack.Push(op.number);
    } else if (op.atom == DW_OP_call_frame_cfa) {
      stack.Push(frame_address);
    } else if (op.atom == DW_OP_deref) {
      PushLoaded(memory.Load(stack.Pop()), stack);
    } else if (op.atom == DW_OP_deref_size) {
      PushLoaded(memory.Load(stack.Pop(), static_cast<unsigned>(op.number & 0xff)), stack);
    } else if (!Rearrange(op, stack)) {
      const uint64_t right = stack.Pop();
      const uint64_t left = stack.Pop();
      if (!Combine(op.atom, left, right, result)) return std::nullopt;
      stack.Push(result);
    }
    if (stack.failed()) return std::nullopt;
  }
  const uint64_t result = stack.Pop();
  if (stack.failed()) return std::nullopt;
  return result;
}

}  // namespace culprit::symbol
