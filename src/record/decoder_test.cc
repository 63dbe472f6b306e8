// SPDX-License-Identifier: Apache-2.0
#include "record/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "trace/conservation.h"

namespace culprit::record::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

// Threads that no /proc knows.
constexpr uint32_t kTid = 0x3ffffff0;
constexpr uint32_t kOther = 0x3ffffff1;
constexpr char kKallsyms[] =
    "ffff000010000000 T __schedule\nffff000010000100 T schedule\n"
    "ffff000010000200 T __traceiter_sched_switch\nffff000010000300 T futex_wait\n"
    "ffff000010000400 T gic_handle_irq\nffff000010000500 T hrtimer_interrupt\n"
    "ffff000010000600 T last\n";

class MemoryTarget final : public assemble::EventTarget {
 public:
  Status Add(const Event& event) override {
    trace.events.push_back(event);
    return {};
  }
  void AddInstance(const trace::Instance& instance) override {
    trace.instances.push_back(instance);
  }
  trace::Dictionary& dictionary() override { return trace.dictionary; }
  trace::Metadata& metadata() override { return trace.metadata; }

  trace::Trace trace;
};

class DecoderTest : public testing::Test {
 protected:
  template <class T>
  void Put(const T& record, size_t size = sizeof(T)) {
    const auto length = static_cast<uint32_t>(size);
    batch_.append(reinterpret_cast<const char*>(&length), sizeof(length));
    batch_.append(reinterpret_cast<const char*>(&record), size);
  }
  void PutStack(uint64_t id, uint32_t tgid, std::vector<uint64_t> addresses) {
    StackRecord record = {};
    record.head.type = kStackRecord;
    record.id = id;
    record.tgid = tgid;
    record.count = static_cast<uint32_t>(addresses.size());
    std::copy(addresses.begin(), addresses.end(), record.addresses);
    Put(record, offsetof(StackRecord, addresses) + addresses.size() * sizeof(uint64_t));
  }
  static WaitRecord Wait(uint64_t out_ns, uint64_t wake_ns, uint64_t in_ns) {
    WaitRecord record = {};
    record.head = {.time_ns = in_ns, .tid = kTid, .type = kWaitRecord, .flags = 0, .cpu = 0};
    record.out_ns = out_ns;
    record.wake_ns = wake_ns;
    record.waker_tid = kOther;
    return record;
  }
  // Of a file, from 0x1000 to 0x2000.
  static LifeEvent Mapping(int64_t time_ns, const char* path) {
    return {.kind = LifeEvent::Kind::kMap,
            .time_ns = time_ns,
            .pid = kTid,
            .tid = kTid,
            .start = 0x1000,
            .size = 0x1000,
            .text = path};
  }
  void Feed(const std::vector<LifeEvent>& life = {}) {
    ASSERT_TRUE(decoder_.Feed(batch_, life).ok());
    batch_.clear();
  }
  std::vector<Event> Of(EventKind kind) const {
    std::vector<Event> events;
    for (const Event& event : target_.trace.events) {
      if (event.kind == kind) events.push_back(event);
    }
    return events;
  }
  std::string Text(trace::StackId stack) const { return target_.trace.dictionary.StackText(stack); }

  MemoryTarget target_;
  assemble::FusedAssembler assembler_{target_, 1000};
  StackTable stacks_{kKallsyms, target_.dictionary()};
  Diagnostics diagnostics_;
  Decoder decoder_{assembler_, stacks_, diagnostics_};
  std::string batch_;
};

TEST_F(DecoderTest, AWaitHasItsStackWithoutTheTracersFrames) {
  PutStack(5, 0,
           {0xffff000020000000, 0xffff000010000210, 0xffff000010000010, 0xffff000010000110,
            0xffff000010000310});
  WaitRecord wait = Wait(2000, 3000, 3500);
  wait.kernel_stack = 5;
  Put(wait);
  Feed();
  ASSERT_TRUE(decoder_.Finish(4000).ok());
  ASSERT_EQ(Of(EventKind::kWait).size(), 1u);
  EXPECT_EQ(Text(Of(EventKind::kWait)[0].stack),
            "[kernel]!futex_wait;[kernel]!schedule;[kernel]!__schedule");
  EXPECT_TRUE(trace::CheckConservation(target_.trace).ok());
}

TEST_F(DecoderTest, AnInterruptIsNamedByItsOwnFrames) {
  PutStack(6, 0, {0xffff000010000510, 0xffff000010000410});
  WaitRecord wait = Wait(2000, 3000, 3500);
  wait.head.flags = kWakeHardIrq;
  wait.waker_kernel_stack = 6;
  Put(wait);
  Feed();
  ASSERT_TRUE(decoder_.Finish(4000).ok());
  ASSERT_EQ(Of(EventKind::kUnwait).size(), 1u);
  const Event unwait = Of(EventKind::kUnwait)[0];
  EXPECT_EQ(target_.trace.dictionary.ThreadLabel(unwait.thread), "[timer]");
  EXPECT_EQ(Text(unwait.stack), "[kernel]!gic_handle_irq;[kernel]!hrtimer_interrupt");
}

TEST_F(DecoderTest, AThreadThatSleepsElsewhereTheNextTimeHasAnotherStack) {
  Feed({Mapping(1, "/a")});
  uint64_t place = 0;
  decoder_.WalkSleepersBy([&](const OpenRecord&) { return std::vector<uint64_t>{place}; });
  const auto stack_at = [&](uint64_t address) {
    place = address;
    OpenRecord record = {};
    record.wait = Wait(2000, 3000, 0);
    record.wait.head.type = kOpenRecord;
    record.tgid = kTid;
    record.program_counter = address;
    Put(record);
    Feed();
    const std::vector<Event> tiles = decoder_.OpenTiles(4000);
    decoder_.ForgetOpen();
    const auto wait = std::find_if(tiles.begin(), tiles.end(),
                                   [](const Event& tile) { return tile.kind == EventKind::kWait; });
    return wait == tiles.end() ? "no wait" : Text(wait->stack);
  };
  EXPECT_EQ(stack_at(0x1100), "a!+0x100");
  EXPECT_EQ(stack_at(0x1200), "a!+0x200");
  EXPECT_EQ(stack_at(0x1100), "a!+0x100");
}

TEST_F(DecoderTest, AStackIsNamedByTheProgramThatRanThen) {
  const LifeEvent exec = {
      .kind = LifeEvent::Kind::kExec, .time_ns = 1500, .pid = kTid, .tid = kTid, .text = "b"};
  const LifeEvent first = {
      .kind = LifeEvent::Kind::kExec, .time_ns = 1, .pid = kTid, .tid = kTid, .text = "a"};
  StackRecord stack = {};
  stack.head = {.time_ns = 1400, .tid = kTid, .type = kStackRecord, .flags = 0, .cpu = 0};
  stack.id = 8;
  stack.tgid = kTid;
  stack.count = 1;
  stack.addresses[0] = 0x1100;
  Put(stack, offsetof(StackRecord, addresses) + 8);
  WaitRecord wait = Wait(1400, 1600, 1700);
  wait.user_stack = 8;
  Put(wait);
  Feed({first, Mapping(2, "/x/a"), exec, Mapping(1501, "/x/b")});
  ASSERT_TRUE(decoder_.Finish(4000).ok());
  ASSERT_EQ(Of(EventKind::kWait).size(), 1u);
  EXPECT_EQ(Text(Of(EventKind::kWait)[0].stack), "a!+0x100");
}

// The callers once, and then any leaf below them.
TEST_F(DecoderTest, WhoIsInterruptedIsToldByCallersAndALeaf) {
  const LifeEvent map = {.kind = LifeEvent::Kind::kMap,
                         .time_ns = 0,
                         .pid = kTid,
                         .tid = kTid,
                         .start = 0x1000,
                         .size = 0x1000,
                         .text = "/x/a"};
  const LifeEvent exec = {
      .kind = LifeEvent::Kind::kExec, .time_ns = 0, .pid = kTid, .tid = kTid, .text = "a"};
  PutStack(8, kTid, {0, 0x1101});
  SampleRecord sample = {};
  sample.head = {.time_ns = 1300, .tid = kTid, .type = kSampleRecord, .flags = 0, .cpu = 0};
  sample.user_callers = 8;
  sample.user_leaf = 0x1200;
  Put(sample);
  WaitRecord wait = Wait(1400, 0, 1700);
  wait.head.flags = kWasRunnable | kLeafApart;
  wait.user_stack = 8;
  wait.user_leaf = 0x1300;
  Put(wait);
  Feed({exec, map});
  ASSERT_TRUE(decoder_.Finish(4000).ok());
  ASSERT_EQ(Of(EventKind::kReady).size(), 1u);
  EXPECT_EQ(Text(Of(EventKind::kReady)[0].stack), "a!+0x100;a!+0x300");
  std::vector<std::string> running;
  for (const trace::Event& event : Of(EventKind::kRunning)) running.push_back(Text(event.stack));
  EXPECT_NE(std::find(running.begin(), running.end(), "a!+0x100;a!+0x200"), running.end());
}

TEST_F(DecoderTest, MarksBecomeSlicesAndInstances) {
  ASSERT_TRUE(decoder_.Mark(1100, kTid, kTid, "B|1073741808|outer\n").ok());
  ASSERT_TRUE(decoder_.Mark(1200, kTid, kTid, "S|1073741808|job|1").ok());
  ASSERT_TRUE(decoder_.Mark(1300, kTid, kTid, "E|1073741808").ok());
  ASSERT_TRUE(decoder_.Mark(1500, kOther, kOther, "F|1073741808|job|1").ok());
  ASSERT_TRUE(decoder_.Mark(1600, kTid, kTid, "no mark").ok());
  EXPECT_EQ(decoder_.TakeSeen().marks, std::vector<std::string>({"outer", "job", "", "job"}));
  ASSERT_TRUE(decoder_.Finish(4000).ok());
  ASSERT_EQ(target_.trace.instances.size(), 2u);
  EXPECT_EQ(target_.trace.instances[0].dur_ns(), 200);
  EXPECT_EQ(target_.trace.instances[1].dur_ns(), 300);
}

TEST_F(DecoderTest, DamagedRecordsDoNoHarm) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes.size() > 13) bytes[12] = static_cast<char>(random() % 12);
    const auto length = static_cast<uint32_t>(bytes.size());
    batch_.append(reinterpret_cast<const char*>(&length), sizeof(length));
    batch_.append(bytes);
  }
  batch_.append("\x10");
  Feed();
  ASSERT_TRUE(decoder_.Finish(INT64_MAX / 4).ok());
  const auto report = trace::CheckConservation(target_.trace);
  EXPECT_EQ(report.gaps, 0u) << report.first_problem;
  EXPECT_EQ(report.overlaps, 0u) << report.first_problem;
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
