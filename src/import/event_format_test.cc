// SPDX-License-Identifier: Apache-2.0
#include "import/event_format.h"

#include <gtest/gtest.h>

#include "import/ring_buffer_sample.h"

namespace culprit::import_::TEST_FILE {
namespace {

TEST(EventFormat, ReadsNameIdAndFields) {
  const auto format = ParseEventFormat(RingSample::SwitchFormat(), "sched");
  ASSERT_TRUE(format.has_value());
  EXPECT_EQ(format->name, "sched_switch");
  EXPECT_EQ(format->system, "sched");
  EXPECT_EQ(format->id, RingSample::kSwitchId);
  const EventField* comm = format->Find("prev_comm");
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->type, "char[16]");
  EXPECT_EQ(comm->offset, 8u);
  EXPECT_TRUE(comm->is_array);
  EXPECT_TRUE(format->Find("prev_pid")->is_signed);
  EXPECT_EQ(format->Find("nothing"), nullptr);
}

TEST(EventFormat, ReadsDynamicAndPointerDeclarations) {
  const auto fields = ParseFields(
      "\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
      "\tfield:__rel_loc char[] tail;\toffset:12;\tsize:4;\tsigned:0;\n"
      "\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n"
      "\tfield special:char buf[];\toffset:24;\tsize:0;\tsigned:1;\n"
      "\tfield:no offset here;\n");
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].name, "name");
  EXPECT_EQ(fields[0].place, EventField::Place::kDataLoc);
  EXPECT_EQ(fields[1].place, EventField::Place::kRelative);
  EXPECT_EQ(fields[2].name, "fmt");
  EXPECT_EQ(fields[3].name, "buf");
}

TEST(EventFormat, NeedsNameIdAndAField) {
  EXPECT_FALSE(ParseEventFormat("").has_value());
  EXPECT_FALSE(ParseEventFormat("name: x\nID: 3\n").has_value());
  EXPECT_FALSE(ParseEventFormat("name: x\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\n"));
  EXPECT_FALSE(ParseEventFormat("ID: 99999999999\n").has_value());
}

TEST(EventFormat, ReadsFieldsOfARecord) {
  const EventField number{.name = "n", .offset = 4, .size = 2, .is_signed = true};
  const EventField dynamic{
      .name = "s", .offset = 8, .size = 4, .place = EventField::Place::kDataLoc};
  const EventField relative{
      .name = "r", .offset = 8, .size = 4, .place = EventField::Place::kRelative};
  const std::string little("\0\0\0\0\xfe\xff\0\0\x0c\0\x03\0ab\0", 15);
  const RecordView view(little, ByteOrder::kLittle);
  EXPECT_EQ(view.Signed(&number), -2);
  EXPECT_EQ(view.Unsigned(&number), 0xfffeu);
  EXPECT_EQ(view.Text(&dynamic), "ab");
  EXPECT_EQ(view.Text(&relative), "");  // 12 + 12 is beyond the record
  const std::string big(
      "\0\0\0\0\xff\xfe\0\0\0\x03\0\x0c"
      "cd\0",
      15);
  EXPECT_EQ(RecordView(big, ByteOrder::kBig).Signed(&number), -2);
  EXPECT_EQ(RecordView(big, ByteOrder::kBig).Text(&dynamic), "cd");
}

TEST(EventFormat, FieldsOutsideTheRecordReadAsNothing) {
  const EventField far{.name = "n", .offset = 100, .size = 8};
  const EventField wide{.name = "n", .offset = 0, .size = 9};
  const RecordView view("1234", ByteOrder::kLittle);
  EXPECT_EQ(view.Unsigned(&far), 0u);
  EXPECT_EQ(view.Unsigned(&wide), 0u);
  EXPECT_EQ(view.Signed(nullptr), 0);
  EXPECT_EQ(view.Text(&far), "");
}

TEST(TaskStates, ComeFromThePrintClause) {
  const TaskStates states = TaskStates::FromPrint(
      "REC->prev_state & (4096-1) ? __print_flags(REC->prev_state & (4096-1), \"|\", "
      "{ 1, \"S\"} , { 2, \"D\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, "
      "{ 1024, \"N\" }) : \"R\", REC->prev_state & 4096 ? \"+\" : \"\"");
  EXPECT_EQ(states.blocked, 1u | 2 | 16 | 32 | 64 | 1024);
  EXPECT_EQ(states.dead, 16u | 32 | 64);
  EXPECT_EQ(TaskStates::FromPrint("\"%d\"").blocked, 0xffu);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
