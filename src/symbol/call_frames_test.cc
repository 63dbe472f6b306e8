// SPDX-License-Identifier: Apache-2.0
#include "symbol/call_frames.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <random>

#include "symbol/call_frame_expression.h"

namespace culprit::symbol::TEST_FILE {
namespace {

CallFrameRegisters SomeRegisters() {
  CallFrameRegisters registers;
  registers.Set(CallFrameRegisters::kX86Sp, 0x1000);
  registers.Set(CallFrameRegisters::kX86Pc, 0x400abc);
  return registers;
}

// As linkers describe a procedure linkage table: within the last five bytes of
// an entry one more word is on the stack.
TEST(CallFrameExpression, FindsTheFrameInALinkageTable) {
  const CallFrameExpression table = {{DW_OP_breg7, 8}, {DW_OP_breg16, 0}, {DW_OP_lit15},
                                     {DW_OP_and},      {DW_OP_lit11},     {DW_OP_ge},
                                     {DW_OP_lit3},     {DW_OP_shl},       {DW_OP_plus}};
  CallFrameRegisters registers = SomeRegisters();
  EXPECT_EQ(EvaluateCallFrame(table, registers, {}, 0), 0x1010u);
  registers.Set(CallFrameRegisters::kX86Pc, 0x400ab0);
  EXPECT_EQ(EvaluateCallFrame(table, registers, {}, 0), 0x1008u);
}

TEST(CallFrameExpression, LoadsOnlyFromTheMemoryGiven) {
  const std::string bytes("\x78\x56\x34\x12\0\0\0\0\x01", 9);
  const CallFrameMemory memory = {.start = 0x1000, .bytes = bytes};
  const CallFrameRegisters registers = SomeRegisters();
  const auto load = [&](uint64_t offset) {
    return EvaluateCallFrame({{DW_OP_breg7, offset}, {DW_OP_deref}}, registers, memory, 0);
  };
  EXPECT_EQ(load(0), 0x12345678u);
  EXPECT_EQ(load(1), 0x0100000000123456u);
  EXPECT_EQ(load(2), std::nullopt);
  EXPECT_EQ(load(static_cast<uint64_t>(-1)), std::nullopt);
  EXPECT_EQ(EvaluateCallFrame({{DW_OP_breg7, 8}, {DW_OP_deref_size, 1}}, registers, memory, 0), 1u);
}

TEST(CallFrameExpression, HasNoValueWhereSomethingIsMissing) {
  const CallFrameRegisters registers = SomeRegisters();
  const auto value = [&](const CallFrameExpression& expression) {
    return EvaluateCallFrame(expression, registers, {}, 0x2000);
  };
  EXPECT_EQ(value({{DW_OP_call_frame_cfa}}), 0x2000u);
  EXPECT_EQ(value({}), std::nullopt);
  EXPECT_EQ(value({{DW_OP_plus}}), std::nullopt);
  EXPECT_EQ(value({{DW_OP_breg3, 0}}), std::nullopt) << "a register that is not known";
  EXPECT_EQ(value({{DW_OP_bregx, 4000, 0}}), std::nullopt) << "one that does not exist";
  EXPECT_EQ(value({{DW_OP_lit1}, {DW_OP_skip, 0}}), std::nullopt) << "branches are not followed";
}

TEST(CallFrameExpression, AnyOperationsEnd) {
  std::mt19937 random(5);
  const CallFrameRegisters registers = SomeRegisters();
  const std::string bytes(64, 'x');
  for (int round = 0; round < 20'000; ++round) {
    CallFrameExpression expression;
    for (size_t i = 0, size = random() % 12; i < size; ++i) {
      expression.push_back({static_cast<uint8_t>(random()), random() % 200, random()});
    }
    (void)EvaluateCallFrame(expression, registers, {.start = 0x1000, .bytes = bytes}, random());
  }
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
