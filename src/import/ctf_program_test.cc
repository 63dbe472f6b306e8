// SPDX-License-Identifier: Apache-2.0
// Decoding against naive ones: bit by bit, field by field.
#include "import/ctf_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "import/ctf_compiler.h"

namespace culprit::import_::TEST_FILE {
namespace {

uint64_t NaiveBits(const std::vector<uint8_t>& data, uint64_t position, uint32_t bits, bool big) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < bits; ++i) {
    const uint64_t at = position + i;
    const uint64_t bit = (data[at / 8] >> (big ? 7 - at % 8 : at % 8)) & 1;
    value |= bit << (big ? bits - 1 - i : i);
  }
  return value;
}

TEST(CtfBits, AgreeWithOneBitAtATime) {
  std::mt19937 random(1);
  std::vector<uint8_t> data(24);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  for (uint64_t position = 0; position < 70; ++position) {
    for (uint32_t bits = 1; bits <= 64; ++bits) {
      for (const bool big : {false, true}) {
        // Whole bytes of little-endian integers are in the same order as their bits.
        ASSERT_EQ(ReadCtfBits(data.data(), position, bits, big),
                  NaiveBits(data, position, bits, big))
            << position << " " << bits << " " << big;
      }
    }
  }
}

struct Small {
  CtfSchema schema;
  uint32_t Int(uint32_t bits, uint32_t align, bool is_signed = false) {
    return schema.Add(
        {.order = CtfOrder::kLittle, .is_signed = is_signed, .bits = bits, .align = align});
  }
  uint32_t Struct(std::vector<CtfMember> members) {
    CtfField field = {.kind = CtfKind::kStruct, .members = std::move(members)};
    for (const CtfMember& member : field.members) {
      field.align = std::max(field.align, schema.fields[member.field].align);
    }
    return schema.Add(std::move(field));
  }
  CtfProgram Compile(uint32_t payload, std::span<const CtfWant> wants) {
    schema.streams.resize(1);
    compiler = std::make_unique<CtfCompiler>(schema, schema.streams[0]);
    compiler->PacketHeader();
    compiler->PacketContext();
    compiler->EventHeader();
    const CtfEventClass event = {.payload = payload};
    return compiler->Event(event, {}, wants);
  }
  CtfOutcome Run(const CtfProgram& program, std::string_view bytes, uint64_t position = 0) {
    machine = {};
    machine.data = reinterpret_cast<const uint8_t*>(bytes.data());
    machine.end = 8 * bytes.size();
    machine.position = position;
    machine.registers.resize(compiler->registers());
    return machine.Run(program);
  }
  const CtfValue& Value(size_t slot) const { return machine.values[kCtfRoles + slot]; }

  std::unique_ptr<CtfCompiler> compiler;
  CtfMachine machine;
};

TEST(CtfProgram, MeltsUnwantedFieldsAndKeepsAlignment) {
  Small small;
  const uint32_t byte = small.Int(8, 8);
  const uint32_t word = small.Int(32, 32, true);
  const uint32_t all = small.Struct({{"a", byte}, {"b", word}, {"c", byte}, {"d", word}});
  const CtfWant wants[] = {{"d", 0}};
  const CtfProgram program = small.Compile(all, wants);
  EXPECT_EQ(program.ops.size(), 3u);  // align, skip a to c with the gaps, read d
  const std::string bytes("\1xxx\2\0\0\0\3xxx\xfe\xff\xff\xff", 16);
  ASSERT_EQ(small.Run(program, bytes), CtfOutcome::kDone);
  EXPECT_EQ(static_cast<int64_t>(small.Value(0).number), -2);
  EXPECT_EQ(small.machine.position, 128u);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(small.Run(program, bytes.substr(0, size)), CtfOutcome::kPastEnd) << size;
  }
}

TEST(CtfProgram, FollowsLengthsSelectorsAndOptions) {
  Small small;
  const uint32_t byte = small.Int(8, 8);
  const uint32_t text = small.schema.Add({.kind = CtfKind::kString, .align = 8});
  const uint32_t pair = small.Struct({{"n", byte}, {"t", text}});
  const uint32_t list = small.schema.Add({.kind = CtfKind::kArray,
                                          .dynamic = true,
                                          .align = 8,
                                          .element = pair,
                                          .reference = {.path = {"n"}}});
  const uint32_t maybe = small.schema.Add(
      {.kind = CtfKind::kOptional, .element = byte, .reference = {.path = {"flag"}}});
  const uint32_t variant =
      small.schema.Add({.kind = CtfKind::kVariant,
                        .reference = {.origin = CtfScope::kPayload, .path = {"flag"}},
                        .members = {{"zero", text, {{0, 0}}}, {"one", byte, {{1, 3}}}}});
  const uint32_t all = small.Struct({{"n", byte},
                                     {"list", list},
                                     {"flag", byte},
                                     {"maybe", maybe},
                                     {"v", variant},
                                     {"last", byte}});
  const CtfWant wants[] = {{"last", 5}, {"maybe", 6}};
  const CtfProgram program = small.Compile(all, wants);
  ASSERT_EQ(small.Run(program, std::string_view("\2\7ab\0\x9\0\0zz\0\x42", 12)), CtfOutcome::kDone);
  EXPECT_EQ(small.Value(5).number, 0x42u);
  ASSERT_EQ(small.Run(program, std::string_view("\0\2\x21\x31\x43", 5)), CtfOutcome::kDone);
  EXPECT_EQ(small.Value(5).number, 0x43u);
  EXPECT_EQ(small.Run(program, std::string_view("\0\4\x21\x31\x43", 5)), CtfOutcome::kNoOption);
}

TEST(CtfProgram, EndsWhereNothingIsTaken) {
  Small small;
  const uint32_t wide = small.Int(64, 8);
  const uint32_t nothing = small.Struct({});
  const uint32_t list = small.schema.Add(
      {.kind = CtfKind::kArray, .dynamic = true, .element = nothing, .reference = {.path = {"n"}}});
  const CtfProgram program = small.Compile(small.Struct({{"n", wide}, {"list", list}}), {});
  EXPECT_EQ(small.Run(program, std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff", 8)),
            CtfOutcome::kDone);
}

TEST(CtfProgram, RefusesWhatExplodes) {
  Small small;
  uint32_t type = small.Int(8, 8);
  for (int level = 0; level < 30; ++level) type = small.Struct({{"a", type}, {"b", type}});
  const CtfWant wants[] = {{"a", 0}};
  const CtfProgram program = small.Compile(type, wants);
  EXPECT_EQ(small.Run(program, std::string(1 << 16, 'x')), CtfOutcome::kNoOption);
}

TEST(CtfProgram, ReadsVariableLengthIntegers) {
  Small small;
  const uint32_t u = small.schema.Add({.kind = CtfKind::kVarint, .align = 8});
  const uint32_t s = small.schema.Add({.kind = CtfKind::kVarint, .is_signed = true, .align = 8});
  const CtfWant wants[] = {{"u", 0}, {"s", 1}};
  const CtfProgram program = small.Compile(small.Struct({{"u", u}, {"s", s}}), wants);
  ASSERT_EQ(small.Run(program, "\xe5\x8e\x26\xc0\xbb\x78"), CtfOutcome::kDone);
  EXPECT_EQ(small.Value(0).number, 624485u);
  EXPECT_EQ(static_cast<int64_t>(small.Value(1).number), -123456);
  EXPECT_EQ(small.Run(program, std::string(11, '\xff')), CtfOutcome::kPastEnd);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
