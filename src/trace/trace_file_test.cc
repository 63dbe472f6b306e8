// SPDX-License-Identifier: Apache-2.0
// The native file, from whole to badly damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/bytes.h"
#include "trace/column_codec.h"
#include "trace/event_codec.h"
#include "trace/file_layout.h"
#include "trace/owner_state.h"
#include "trace/random_trace.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::trace::TEST_FILE {
namespace {

Trace Reread(std::string bytes) {
  auto reader = TraceReader::FromBytes(std::move(bytes), "memory");
  EXPECT_TRUE(reader.ok()) << reader.error().ToString();
  return std::move(reader.value()).ReadAll();
}

void ExpectSame(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(a.dictionary.processes(), b.dictionary.processes());
  EXPECT_EQ(a.dictionary.threads(), b.dictionary.threads());
  EXPECT_EQ(a.dictionary.modules(), b.dictionary.modules());
  EXPECT_EQ(a.dictionary.frames(), b.dictionary.frames());
  ASSERT_EQ(a.dictionary.stacks().size(), b.dictionary.stacks().size());
  for (size_t i = 0; i < a.dictionary.stacks().size(); ++i) {
    ASSERT_EQ(a.dictionary.StackText(StackId(i)), b.dictionary.StackText(StackId(i)));
  }
  EXPECT_EQ(a.instances, b.instances);
  ASSERT_EQ(a.events.size(), b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) {
    ASSERT_EQ(a.events[i], b.events[i]) << "event " << i;
  }
}

TEST(TraceFile, GivesBackWhatWasWritten) {
  for (size_t events : {0, 1, 2, 1000, 70'000}) {
    const Trace trace = RandomTrace({.seed = events + 1, .events = events});
    const Trace read = Reread(EncodeTrace(trace));
    ExpectSame(trace, read);
    EXPECT_TRUE(read.diagnostics.empty());
  }
}

TEST(TraceFile, GivesBackExtremeValues) {
  const Trace trace = RandomTrace({.seed = 5, .events = 5000, .wild = true});
  ExpectSame(trace, Reread(EncodeTrace(trace, {.block_events = 300})));
}

TEST(TraceFile, GivesBackWhatWasWrittenWithoutCompression) {
  const Trace trace = RandomTrace({.seed = 6, .events = 5000, .wild = true});
  const std::string bytes = EncodeTrace(trace, {.block_events = 300, .zstd_level = kNoCompression});
  ExpectSame(trace, Reread(bytes));
  EXPECT_GT(bytes.size(), EncodeTrace(trace, {.block_events = 300}).size());
}

TEST(TraceFile, CallsWithoutOperationsAreGivenBack) {
  Trace trace = RandomTrace({.seed = 9, .events = 2000});
  for (Event& event : trace.events) {
    if (event.kind == EventKind::kSyscall) event.arg0 = CallNumber(event.arg0);
  }
  ExpectSame(trace, Reread(EncodeTrace(trace)));
}

TEST(TraceFile, AnOperationAddsAColumnAndNothingElse) {
  Trace plain = RandomTrace({.seed = 9, .events = 2000});
  for (Event& event : plain.events) {
    if (event.kind == EventKind::kSyscall) event.arg0 = CallNumber(event.arg0);
  }
  Trace with = RandomTrace({.seed = 9, .events = 2000});
  for (Event& event : with.events) {
    if (event.kind == EventKind::kSyscall) event.arg0 = PackCall(CallNumber(event.arg0), 7);
  }
  // One value for all events of the block: a constant plane.
  EXPECT_LT(EncodeTrace(with).size(), EncodeTrace(plain).size() + 16);
  ExpectSame(with, Reread(EncodeTrace(with)));
}

TEST(TraceFile, BlockSizeDoesNotChangeTheContent) {
  const Trace trace = RandomTrace({.seed = 2, .events = 3000});
  for (size_t block : {1, 7, 1000, 4096}) {
    ExpectSame(trace, Reread(EncodeTrace(trace, {.block_events = block})));
  }
}

// Reads the bytes in both orders and holds one against the other.
void ExpectSameInBothOrders(const std::string& bytes) {
  auto by_time = TraceReader::FromBytes(bytes, "memory");
  auto by_thread = TraceReader::FromBytes(bytes, "memory");
  ASSERT_EQ(by_time.ok(), by_thread.ok());
  if (!by_time.ok()) return;
  const Trace expected = std::move(by_time.value()).ReadAll();
  Trace trace = std::move(by_thread.value()).ReadAll(EventOrder::kByThread);
  EXPECT_TRUE(std::ranges::is_sorted(trace.events, {},
                                     [](const Event& e) { return OwnerOf(e).value + 1; }));
  EXPECT_EQ(trace.diagnostics.total(), expected.diagnostics.total());
  SortByTime(trace.events);
  ExpectSame(expected, trace);
}

TEST(TraceFile, WhatWasFlushedCanBeReadBeforeTheEnd) {
  const Trace trace = RandomTrace({.seed = 11, .events = 100});
  std::string bytes;
  TraceWriter writer([&](std::string_view piece) {
    bytes.append(piece);
    return Status();
  });
  writer.metadata() = trace.metadata;
  CopyDictionary(trace.dictionary, writer.dictionary());
  for (const Instance& instance : trace.instances) writer.AddInstance(instance);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    ASSERT_TRUE(writer.Add(trace.events[i]).ok());
    if (i % 7 != 0) continue;
    ASSERT_TRUE(writer.Flush().ok());
    EXPECT_EQ(Reread(bytes).events.size(), i + 1);
    const size_t before = bytes.size();
    ASSERT_TRUE(writer.Flush().ok());
    EXPECT_EQ(bytes.size(), before) << "nothing has come";
  }
  ASSERT_TRUE(writer.Finish().ok());
  ExpectSame(trace, Reread(bytes));
}

TEST(TraceFile, ByThreadAreTheSameEvents) {
  for (size_t events : {0, 1, 2, 1000, 5000}) {
    const Trace trace = RandomTrace({.seed = events + 1, .events = events, .wild = events == 1000});
    for (size_t block : {1, 7, 300, 1 << 16}) {
      ExpectSameInBothOrders(EncodeTrace(trace, {.block_events = block}));
    }
  }
}

TEST(TraceFile, ByThreadAreTheSameEventsOfADamagedFile) {
  const Trace trace = RandomTrace({.seed = 3, .events = 400});
  const std::string whole = EncodeTrace(trace, {.block_events = 50});
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x20);
    ExpectSameInBothOrders(bytes);
    if (i > 16) ExpectSameInBothOrders(whole.substr(0, i));
  }
}

TEST(TraceFile, SortingByTimeIsStableAndCanonical) {
  std::vector<Event> events;
  for (int64_t i = 0; i < 4000; ++i) {
    const auto number = static_cast<uint32_t>(i * 7919 % 4001);
    events.push_back({.time_ns = number % 50,
                      .dur_ns = number % 3,
                      .thread = ThreadId(number % 2),
                      .kind = static_cast<EventKind>(number % 4),
                      .arg0 = i});
  }
  std::vector<Event> expected = events;
  std::stable_sort(expected.begin(), expected.end(), ComesBefore);
  SortByTime(events);
  EXPECT_EQ(events, expected);
}

TEST(TraceFile, IsTheSameBytesEveryTime) {
  const Trace trace = RandomTrace({.seed = 2, .events = 3000});
  EXPECT_EQ(EncodeTrace(trace), EncodeTrace(trace));
}

TEST(TraceFile, AddRefusesImpossibleTimes) {
  TraceWriter writer([](std::string_view) { return Status(); });
  EXPECT_FALSE(writer.Add({.time_ns = 0, .dur_ns = -1}).ok());
  EXPECT_FALSE(writer.Add({.time_ns = INT64_MAX, .dur_ns = 0}).ok());
  EXPECT_FALSE(writer.Add({.time_ns = kMaxTimeNs, .dur_ns = 1}).ok());
  EXPECT_FALSE(writer.Add({.time_ns = INT64_MIN, .dur_ns = 0}).ok());
  EXPECT_TRUE(writer.Add({.time_ns = kMaxTimeNs, .dur_ns = 0}).ok());
}

TEST(TraceFile, ThreadChangesAfterTheirFirstBlockAreKept) {
  std::string bytes;
  TraceWriter writer(
      [&](std::string_view part) {
        bytes.append(part);
        return Status();
      },
      {.block_events = 2});
  const ThreadId thread = writer.dictionary().AddThread({.tid = 7});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(writer.Add({.time_ns = i, .thread = thread}).ok());
  writer.dictionary().thread(thread).name = writer.dictionary().Intern("renamed");
  writer.dictionary().thread(thread).end_ns = 4;
  writer.metadata().properties["drops.cpu1"] = "3";
  ASSERT_TRUE(writer.Finish().ok());
  const Trace trace = Reread(bytes);
  EXPECT_EQ(trace.dictionary.ThreadLabel(thread), "renamed (7)");
  EXPECT_EQ(trace.dictionary.threads()[0].end_ns, 4);
  EXPECT_EQ(trace.metadata.properties.at("drops.cpu1"), "3");
  EXPECT_EQ(trace.events.size(), 5u);
}

TEST(TraceFile, TheIndexTellsWhatABlockHolds) {
  const Trace trace = RandomTrace({.seed = 9, .events = 4000});
  auto reader = TraceReader::FromBytes(EncodeTrace(trace, {.block_events = 512}), "memory");
  ASSERT_TRUE(reader.ok());
  ASSERT_GT(reader.value().blocks().size(), 5u);
  std::vector<Event> events;
  for (size_t i = 0; i < reader.value().blocks().size(); ++i) {
    const BlockInfo& block = reader.value().blocks()[i];
    ASSERT_TRUE(reader.value().ReadBlock(i, events).ok());
    EXPECT_EQ(events.size(), block.events);
    std::array<uint32_t, kEventKinds> kinds = {};
    for (const Event& event : events) {
      ++kinds[static_cast<size_t>(event.kind)];
      EXPECT_GE(event.time_ns, block.min_time_ns);
      EXPECT_LE(event.end_ns(), block.max_end_ns);
      EXPECT_TRUE(block.HasThread(event.kind == EventKind::kUnwait ? event.peer : event.thread));
    }
    EXPECT_EQ(kinds, block.kind_counts);
    EXPECT_FALSE(block.HasThread(ThreadId(12345)));
  }
}

// Where each section ends, and how many events the whole blocks up to there hold.
struct Boundary {
  uint64_t end;
  uint64_t events;
};

std::vector<Boundary> Boundaries(const std::string& bytes) {
  auto reader = TraceReader::FromBytes(bytes, "memory");
  std::vector<Boundary> boundaries;
  uint64_t events = 0;
  for (const BlockInfo& block : reader.value().blocks()) {
    events += block.events;
    boundaries.push_back({block.offset + block.length, events});
  }
  return boundaries;
}

void ExpectWholeBlocks(const std::string& bytes, size_t cut, const std::vector<Boundary>& bounds) {
  auto reader = TraceReader::FromBytes(bytes.substr(0, cut), "cut");
  if (cut < kFileHeadBytes) {
    EXPECT_FALSE(reader.ok()) << cut;
    return;
  }
  ASSERT_TRUE(reader.ok()) << cut;
  EXPECT_EQ(reader.value().complete(), cut == bytes.size()) << cut;
  EXPECT_EQ(reader.value().diagnostics().empty(), cut == bytes.size()) << cut;
  uint64_t expected = 0;
  for (const Boundary& bound : bounds) {
    if (bound.end <= cut) expected = bound.events;
  }
  uint64_t found = 0;
  std::vector<Event> events;
  for (size_t i = 0; i < reader.value().blocks().size(); ++i) {
    ASSERT_TRUE(reader.value().ReadBlock(i, events).ok()) << cut;
    found += events.size();
  }
  EXPECT_EQ(found, expected) << cut;
}

TEST(TraceFile, CutAtEveryByteOfASmallFileItYieldsAllWholeBlocks) {
  const Trace trace = RandomTrace({.seed = 3, .events = 400, .functions = 10});
  const std::string bytes = EncodeTrace(trace, {.block_events = 64});
  const auto bounds = Boundaries(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) ExpectWholeBlocks(bytes, cut, bounds);
}

TEST(TraceFile, CutAtAThousandRandomBytesOfALargeFileItYieldsAllWholeBlocks) {
  const Trace trace = RandomTrace({.seed = 4, .events = 40'000, .functions = 300});
  const std::string bytes = EncodeTrace(trace, {.block_events = 4096});
  const auto bounds = Boundaries(bytes);
  std::mt19937_64 random(11);
  for (int i = 0; i < 1000; ++i) ExpectWholeBlocks(bytes, random() % bytes.size(), bounds);
}

// Whatever is done to the bytes, every event that is read was written.
void ExpectOnlyTrueEvents(const std::string& bytes, const std::vector<Event>& sorted,
                          const std::string& what) {
  auto reader = TraceReader::FromBytes(bytes, "damaged");
  if (!reader.ok()) return;
  std::vector<Event> events;
  for (size_t i = 0; i < reader.value().blocks().size(); ++i) {
    if (!reader.value().ReadBlock(i, events).ok()) continue;
    for (const Event& event : events) {
      const auto same_time =
          std::lower_bound(sorted.begin(), sorted.end(), event.time_ns,
                           [](const Event& e, int64_t time_ns) { return e.time_ns < time_ns; });
      bool known = false;
      for (auto it = same_time; it != sorted.end() && it->time_ns == event.time_ns; ++it) {
        Event expected = *it;
        // Stacks and peers may have been lost with a damaged dictionary piece.
        expected.stack = event.stack;
        if (!event.thread.valid()) expected.thread = {};
        if (!event.peer.valid()) expected.peer = {};
        known |= expected == event;
      }
      ASSERT_TRUE(known) << what << ": an event that nobody wrote";
    }
  }
}

TEST(TraceFile, EveryFlippedBitIsNoticedOrHarmless) {
  const Trace trace = RandomTrace({.seed = 6, .events = 200, .functions = 8});
  const std::string bytes = EncodeTrace(trace, {.block_events = 50});
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    ExpectOnlyTrueEvents(damaged, trace.events, "bit flip at " + std::to_string(i));
  }
}

TEST(TraceFile, ADamagedBlockCostsOnlyItself) {
  const Trace trace = RandomTrace({.seed = 6, .events = 1000});
  std::string bytes = EncodeTrace(trace, {.block_events = 100});
  auto reader = TraceReader::FromBytes(bytes, "whole");
  const BlockInfo block = reader.value().blocks()[4];
  bytes[block.offset + block.length / 2] ^= 0x10;
  const Trace read = Reread(bytes);
  EXPECT_EQ(read.events.size(), 900u);
  EXPECT_EQ(read.diagnostics.rows().at("events lost with a damaged block").count, 100u);
  EXPECT_EQ(*read.diagnostics.rows().at("event block with a wrong checksum").first_offset,
            block.offset);
}

TEST(TraceFile, ADamagedDictionaryPieceKeepsAllEventsAndNamesTheLoss) {
  const Trace trace = RandomTrace({.seed = 8, .events = 1000});
  std::string bytes = EncodeTrace(trace, {.block_events = 100});
  const size_t piece = bytes.find(kDictionaryTag);
  ASSERT_NE(piece, std::string::npos);
  bytes[piece + kSectionHeadBytes + 20] ^= 1;
  const Trace read = Reread(bytes);
  EXPECT_TRUE(read.diagnostics.rows().contains("section DICT with a wrong checksum"));
  EXPECT_EQ(read.diagnostics.rows().at("threads lost with a damaged section").count, 7u);
  ASSERT_EQ(read.events.size(), trace.events.size());
  for (size_t i = 0; i < read.events.size(); ++i) {
    EXPECT_EQ(read.events[i].time_ns, trace.events[i].time_ns);
    if (read.events[i].stack.valid()) {
      EXPECT_EQ(read.dictionary.StackText(read.events[i].stack), "[lost]");
    }
  }
}

TEST(TraceFile, StacksOfALostDictionaryPieceAreCalledLost) {
  std::string bytes;
  TraceWriter writer(
      [&](std::string_view part) {
        bytes.append(part);
        return Status();
      },
      {.block_events = 10});
  Dictionary& d = writer.dictionary();
  const ThreadId thread = d.AddThread({.tid = 1});
  for (int block = 0; block < 3; ++block) {
    const StackId stack = d.InternStack({}, d.InternFrame("m", "f" + std::to_string(block)));
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(writer.Add({.time_ns = block * 10 + i, .thread = thread, .stack = stack}).ok());
    }
  }
  ASSERT_TRUE(writer.Finish().ok());
  // The second piece brings f1.
  size_t piece = bytes.find(kDictionaryTag);
  piece = bytes.find(kDictionaryTag, piece + 1);
  bytes[piece + kSectionHeadBytes + 5] ^= 1;
  const Trace read = Reread(bytes);
  ASSERT_EQ(read.events.size(), 30u);
  EXPECT_EQ(read.dictionary.StackText(read.events[5].stack), "m!f0");
  EXPECT_EQ(read.dictionary.StackText(read.events[15].stack), "[lost]");
  EXPECT_EQ(read.dictionary.StackText(read.events[25].stack), "m!f2");
  EXPECT_GT(read.diagnostics.rows().at("dictionary rows lost with a damaged section").count, 0u);
}

TEST(TraceFile, UnknownSectionsAndColumnsOfALaterVersionAreSkipped) {
  const Trace trace = RandomTrace({.seed = 12, .events = 50});
  const std::string bytes = EncodeTrace(trace);
  auto whole = TraceReader::FromBytes(bytes, "whole");
  const BlockInfo block = whole.value().blocks()[0];
  std::string payload =
      bytes.substr(block.offset + kSectionHeadBytes, block.length - kSectionHeadBytes);
  ByteWriter column;
  column.U8(250);
  column.String("from the future");
  payload += column.bytes();
  std::string later = bytes.substr(0, block.offset);
  later += EncodeSectionHead("ZZZZ", "what is this?") + "what is this?";
  later += EncodeSectionHead(kEventsTag, payload) + payload;
  const Trace read = Reread(later);
  EXPECT_EQ(read.events, trace.events);
  EXPECT_EQ(read.diagnostics.rows().at("section of an unknown kind, skipped").count, 1u);
}

TEST(TraceFile, ReadingGoesOnBehindAStretchOfGarbage) {
  const Trace trace = RandomTrace({.seed = 13, .events = 300});
  const std::string bytes = EncodeTrace(trace, {.block_events = 100});
  auto whole = TraceReader::FromBytes(bytes, "whole");
  const BlockInfo second = whole.value().blocks()[1];
  std::string damaged = bytes.substr(0, second.offset) + std::string(777, 'x') +
                        bytes.substr(second.offset, bytes.size() - second.offset - kTrailerBytes);
  const Trace read = Reread(damaged);
  EXPECT_EQ(read.events, trace.events);
  const auto& row = read.diagnostics.rows().at("stretch of unreadable bytes between sections");
  EXPECT_EQ(*row.first_offset, second.offset);
}

TEST(TraceFile, RefusesWhatIsNoTraceWithAReason) {
  const auto message = [](std::string bytes) {
    auto reader = TraceReader::FromBytes(std::move(bytes), "f");
    return reader.ok() ? "ok" : reader.error().ToString();
  };
  EXPECT_EQ(message(""), "f: is empty: there is no trace in it");
  EXPECT_EQ(message("PERFILE2 and more bytes of it"),
            "f: is not a culprit trace: it does not begin with the magic bytes (at byte 0)");
  EXPECT_EQ(message("CTRACE"), "f: is cut off inside its head, before any data (at byte 6)");
  std::string newer = EncodeFileHead();
  newer[8] = 9;
  EXPECT_EQ(message(newer),
            "f: was written in format version 9; this program reads up to 2 (at byte 8)");
}

TEST(TraceFile, ATraceWithoutEventsIsWhole) {
  Trace trace;
  trace.metadata.app = "nothing";
  auto reader = TraceReader::FromBytes(EncodeTrace(trace), "memory");
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader.value().complete());
  EXPECT_EQ(reader.value().events(), 0u);
  EXPECT_EQ(reader.value().metadata().app, "nothing");
}

TEST(BlockCodec, RefusesIdsBeyondTheTables) {
  const Trace trace = RandomTrace({.seed = 3, .events = 100});
  std::vector<Event> events = trace.events;
  std::string payload;
  BlockInfo info;
  BlockEncoder(3).Encode(events, payload, info);
  BlockDecoder decoder;
  std::vector<Event> read;
  const auto threads = static_cast<uint32_t>(trace.dictionary.threads().size());
  const auto stacks = static_cast<uint32_t>(trace.dictionary.stacks().size());
  EXPECT_TRUE(decoder.Decode(payload, {.threads = threads, .stacks = stacks}, read));
  EXPECT_EQ(read, events);
  EXPECT_FALSE(decoder.Decode(payload, {.threads = threads, .stacks = 1}, read));
  EXPECT_FALSE(decoder.Decode(payload, {.threads = 1, .stacks = stacks}, read));
  EXPECT_TRUE(read.empty());
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
