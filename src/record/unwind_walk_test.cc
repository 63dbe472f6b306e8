// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_walk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace culprit::record::TEST_FILE {
namespace {

constexpr uint64_t kStack = 0x7ffe0000;

// Words of memory and rules by address, as a test lays them out.
struct Planted {
  std::map<uint64_t, uint64_t> words;
  std::map<uint64_t, UnwindRule> rules;
  uint64_t asked = 0;

  WalkedStack Walk(const UnwindRegisters& registers, UnwindMachine machine) {
    return WalkStack(registers, {.machine = machine,
                                 .rule =
                                     [this](uint64_t address) {
                                       ++asked;
                                       const auto it = rules.find(address);
                                       return it == rules.end() ? UnwindRule{} : it->second;
                                     },
                                 .read =
                                     [this](uint64_t address, void* to, size_t bytes) {
                                       const auto it = words.find(address);
                                       if (it == words.end() || bytes != 8) return false;
                                       memcpy(to, &it->second, 8);
                                       return true;
                                     }});
  }
};

constexpr UnwindRule kEnd = {.cfa = kCfaStack, .return_place = kPlaceEnd};

TEST(UnwindWalk, ALeafReturnsByItsLinkRegister) {
  Planted planted;
  planted.rules[0x100] = {.cfa = kCfaStack, .return_place = kPlaceSame};
  // The call stands before the address it returns to.
  planted.rules[0x1ff] = {.cfa = kCfaStack,
                          .return_place = kPlaceCfa,
                          .frame_place = kPlaceCfa,
                          .cfa_offset = 32,
                          .return_offset = -24,
                          .frame_offset = -32};
  planted.rules[0x2ff] = kEnd;
  planted.words = {{kStack, 0x7ffe0900}, {kStack + 8, 0x5a00'0000'0000'0300}};
  const WalkedStack stack =
      planted.Walk({.program_counter = 0x100, .stack_pointer = kStack, .link_register = 0x200},
                   UnwindMachine::kArm64);
  // The signature of the last return address is cut off.
  EXPECT_EQ(stack.addresses, (std::vector<uint64_t>{0x100, 0x200, 0x300}));
  EXPECT_TRUE(stack.complete);
}

TEST(UnwindWalk, WithoutALinkRegisterOnlyALeafCanReturnByIt) {
  Planted planted;
  planted.rules[0x100] = {.cfa = kCfaStack, .return_place = kPlaceSame};
  planted.rules[0x1ff] = {.cfa = kCfaStack, .return_place = kPlaceSame};
  const WalkedStack stack =
      planted.Walk({.program_counter = 0x100, .stack_pointer = kStack, .link_register = 0x200},
                   UnwindMachine::kArm64);
  EXPECT_EQ(stack.addresses, (std::vector<uint64_t>{0x100, 0x200}));
  EXPECT_FALSE(stack.complete);
}

TEST(UnwindWalk, ALinkageTableHasPushedAWordInItsSecondHalf) {
  for (const uint64_t counter : {0x10au, 0x10bu}) {
    Planted planted;
    planted.rules[counter] = {.cfa = kCfaPlt,
                              .return_place = kPlaceCfa,
                              .extra = 11,
                              .cfa_offset = 8,
                              .return_offset = -8};
    planted.rules[0x1ff] = kEnd;
    planted.words = {{kStack + (counter == 0x10b ? 8 : 0), 0x200}};
    const WalkedStack stack =
        planted.Walk({.program_counter = counter, .stack_pointer = kStack}, UnwindMachine::kX86_64);
    EXPECT_EQ(stack.addresses, (std::vector<uint64_t>{counter, 0x200}));
    EXPECT_TRUE(stack.complete);
  }
}

TEST(UnwindWalk, AStackThatWasAlignedIsFoundByTheWordThatSaysWhereItWas) {
  Planted planted;
  planted.rules[0x100] = {.cfa = kCfaFrameDeref,
                          .return_place = kPlaceCfa,
                          .frame_place = kPlaceFrame,
                          .cfa_offset = -8,
                          .return_offset = -8};
  planted.rules[0x1ff] = kEnd;
  planted.words = {{kStack + 56, kStack + 200}, {kStack + 192, 0x200}, {kStack + 64, 0x7ffe0900}};
  const WalkedStack stack = planted.Walk(
      {.program_counter = 0x100, .stack_pointer = kStack, .frame_pointer = kStack + 64},
      UnwindMachine::kX86_64);
  EXPECT_EQ(stack.addresses, (std::vector<uint64_t>{0x100, 0x200}));
  EXPECT_TRUE(stack.complete);
}

// On arm64 the stack pointer is lost with the first step by a frame pointer, and a
// rule that needs it is of no use any more; on x86-64 it is known.
TEST(UnwindWalk, FramePointersLeadOnWhereThereIsNoRule) {
  Planted planted;
  planted.rules[0x1ff] = {
      .cfa = kCfaStack, .return_place = kPlaceCfa, .cfa_offset = 16, .return_offset = -8};
  planted.rules[0x2ff] = kEnd;
  planted.rules[0x3ff] = kEnd;
  planted.words = {{kStack + 32, kStack + 96},
                   {kStack + 40, 0x200},
                   {kStack + 56, 0x300},
                   {kStack + 96, kStack + 128},
                   {kStack + 104, 0x400}};
  const UnwindRegisters registers = {
      .program_counter = 0x100, .stack_pointer = kStack, .frame_pointer = kStack + 32};
  EXPECT_EQ(planted.Walk(registers, UnwindMachine::kX86_64).addresses,
            (std::vector<uint64_t>{0x100, 0x200, 0x300}));
  EXPECT_EQ(planted.Walk(registers, UnwindMachine::kArm64).addresses,
            (std::vector<uint64_t>{0x100, 0x200, 0x400}));
}

TEST(UnwindWalk, WhatDoesNotLeadUpTheStackIsNoFramePointer) {
  for (const uint64_t frame : {kStack - 16, kStack + 33}) {
    Planted planted;
    planted.words = {{frame, 0}, {frame + 8, 0x200}};
    const WalkedStack stack =
        planted.Walk({.program_counter = 0x100, .stack_pointer = kStack, .frame_pointer = frame},
                     UnwindMachine::kX86_64);
    EXPECT_EQ(stack.addresses, (std::vector<uint64_t>{0x100}));
    EXPECT_FALSE(stack.complete);
  }
}

TEST(UnwindWalk, ASignalHandlerIsLeftByTheRegistersThatTheKernelSaved) {
  Planted planted;
  planted.rules[0x100] = {.cfa = kCfaSignal};
  // Where it was interrupted, not behind a call.
  planted.rules[0x500] = kEnd;
  planted.words = {
      {kStack + 120, 1}, {kStack + 160, kStack + 0x1000}, {kStack + 168, 0x500}, {kStack + 544, 1},
      {kStack + 552, 2}, {kStack + 560, kStack + 0x1000}, {kStack + 568, 0x500}};
  for (const UnwindMachine machine : {UnwindMachine::kX86_64, UnwindMachine::kArm64}) {
    const WalkedStack stack =
        planted.Walk({.program_counter = 0x100, .stack_pointer = kStack}, machine);
    EXPECT_EQ(stack.addresses, (std::vector<uint64_t>{0x100, 0x500}));
    EXPECT_TRUE(stack.complete);
  }
}

TEST(UnwindWalk, ACircleEnds) {
  Planted planted;
  planted.rules[0x100] = {.cfa = kCfaStack, .return_place = kPlaceCfa};
  planted.rules[0xff] = planted.rules[0x100];
  planted.words = {{kStack, 0x100}};
  const WalkedStack stack =
      planted.Walk({.program_counter = 0x100, .stack_pointer = kStack}, UnwindMachine::kX86_64);
  EXPECT_EQ(stack.addresses.size(), 127u);
  EXPECT_FALSE(stack.complete);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
