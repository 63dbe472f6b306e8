// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/stored_bytes.h"
#include "import/xperf_csv_line.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

// Header lines as xperf 10 writes them.
const std::string kHeader =
    "BeginHeader\r\n"
    "FirstReliableEventTimeStamp, TimeStamp\r\n"
    "                P-Start,  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID,"
    "          UniqueKey, UserSid, Command Line\r\n"
    "              P-DCStart,  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID,"
    "          UniqueKey, UserSid, Command Line\r\n"
    "                T-Start,  TimeStamp,     Process Name ( PID),   ThreadID,  StackBase\r\n"
    "                  T-End,  TimeStamp,     Process Name ( PID),   ThreadID,  StackBase\r\n"
    "              I-DCStart,  TimeStamp,     Process Name ( PID),        ImageBase,"
    "         EndAddress, CheckSum, TimeDate, DefaultBase, FileName\r\n"
    "                CSwitch,  TimeStamp, New Process Name ( PID),    New TID, NPri, NQnt,"
    " TmSinceLast, WaitTime, Old Process Name ( PID),    Old TID, OPri, OQnt,        OldState,"
    "      Wait Reason, Swapable, InSwitchTime, CPU, IdealProc\r\n"
    "            ReadyThread,  TimeStamp,     Process Name ( PID),   ThreadID,"
    " Rdy Process Name ( PID),    Rdy TID, AdjustReason, AdjustIncrement, InDPC\r\n"
    "         SampledProfile,  TimeStamp,     Process Name ( PID),   ThreadID,"
    "           PrgrmCtr, CPU, ThreadStartImage!Function,            Image!Function, Count,"
    " SampledProfile type\r\n"
    "                  Stack,  TimeStamp,   ThreadID, No.,            Address,"
    "            Image!Function\r\n"
    "    ProfileFreq-DCStart,  TimeStamp,     Process Name ( PID),   ThreadID, Source,"
    " New Interval, Old Interval\r\n"
    "               DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,"
    "             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags,"
    " DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName\r\n"
    "           DiskReadInit,  TimeStamp,     Process Name ( PID),   ThreadID,"
    "             IrpPtr\r\n"
    "              MarkEvent,  TimeStamp,     Type, Text\r\n"
    "EndHeader\r\n"
    "OS Version: 10.0.19043, Trace Size: 20736KB, Events Lost: 3, Buffers lost: 0, Trace Start:"
    " 132675686690347142, Trace Length: 2 sec, PointerSize: 8, Trace Name: t.etl\r\n";

const std::string kLines =
    "P-DCStart, 0, app.exe (100), 1, 1, 0xffff, S-1, \"app.exe\" -a, -b\r\n"
    "I-DCStart, 0, app.exe (100), 0x00400000, 0x00410000, 0, 0, 0, C:\\App.exe\r\n"
    "ProfileFreq-DCStart, 0, app.exe (100), 11, 0, 1221, 10000\r\n"
    "CSwitch, 1000, app.exe (100), 11, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, Executive,"
    " NonSwap, 5, 0, 0\r\n"
    "CSwitch, 1500, app.exe (100), 12, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, Executive,"
    " NonSwap, 5, 1, 0\r\n"
    "CSwitch, 2000, Idle (   0), 0, 0, 0, 0, 0, app.exe (100), 11, 9, 0, Waiting, WrQueue,"
    " Swapable, 5, 0, 0\r\n"
    "ReadyThread, 3000, app.exe (100), 12, app.exe (100), 11, Unwait, 0, 0\r\n"
    "   Stack, 3000, 12, 1, 0xfffff80000001000, ntoskrnl.exe!KeSetEvent\r\n"
    "   Stack, 3000, 12, 2, 0x0000000000400200, app.exe!Queue<Item,0>::Push\r\n"
    "CSwitch, 3400, app.exe (100), 11, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, Executive,"
    " NonSwap, 5, 0, 0\r\n"
    "   Stack, 3400, 11, 1, 0xfffff80000002000, ntoskrnl.exe!KiSwapContext\r\n"
    "   Stack, 3400, 11, 2, 0x0000000000400100, App.exe!0x0000000000400100\r\n"
    "SampledProfile, 3800, app.exe (100), 11, 0x400300, 0, app.exe!main, app.exe!Work, 1,"
    " Unbatched\r\n"
    "   Stack, 3800, 11, 1, 0x0000000000400300, app.exe!Work\r\n"
    "DiskReadInit, 3900, app.exe (100), 11, 0xffffab\r\n"
    "DiskRead, 4100, app.exe (100), 11, 0xffffab, 0x1000, 0x00010000, 200, 2, 0x43, 180, 3,"
    " Original, 0x1, C:\\a,b.txt\r\n"
    "CSwitch, 5000, Idle (   0), 0, 0, 0, 0, 0, app.exe (100), 11, 9, 0, Waiting, WrQueue,"
    " Swapable, 5, 0, 0\r\n"
    "ReadyThread, 5200, app.exe (100), 12, app.exe (100), 11, Unwait, 0, 1\r\n"
    "CSwitch, 5300, app.exe (100), 11, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, Executive,"
    " NonSwap, 5, 0, 0\r\n"
    "MarkEvent, 5400, Mark, x\r\n"
    "Unheard/Of, 5400, 1\r\n";

ImportedTrace Import(const std::string& text) {
  return ImportTrace(XperfCsvImporter(), MemorySource("t.txt", text));
}

std::vector<Event> EventsOf(const ImportedTrace& imported, EventKind kind) {
  std::vector<Event> events;
  for (const Event& event : imported.trace.events) {
    if (event.kind == kind) events.push_back(event);
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  return events;
}

TEST(XperfCsv, WaitsHaveTheirWakersAndTheStackOfTheSwitchIn) {
  const ImportedTrace imported = Import(kHeader + kLines);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  const std::vector<Event> waits = EventsOf(imported, EventKind::kWait);
  ASSERT_GE(waits.size(), 2u);
  EXPECT_EQ(waits[0].time_ns, 2'000'000);
  EXPECT_EQ(waits[0].dur_ns, 1'000'000);
  EXPECT_EQ(imported.Thread(waits[0].peer), "app.exe/app.exe (12)");
  // The unnamed frame is its place in the image.
  EXPECT_EQ(imported.Stack(waits[0].stack), "app.exe!+0x100;ntoskrnl.exe!KiSwapContext");
  EXPECT_EQ(imported.Thread(waits[1].peer), "[interrupt]");
  const std::vector<Event> unwaits = EventsOf(imported, EventKind::kUnwait);
  ASSERT_EQ(unwaits.size(), 2u);
  EXPECT_EQ(imported.Stack(unwaits[0].stack),
            "app.exe!Queue<Item,0>::Push;ntoskrnl.exe!KeSetEvent");
}

TEST(XperfCsv, SamplesShareTheSpansAndRequestsAreJoined) {
  const ImportedTrace imported = Import(kHeader + kLines);
  EXPECT_EQ(imported.trace.metadata.sample_period_ns, 122'100);
  ASSERT_EQ(imported.CountStacked(EventKind::kRunning), 1u);
  const std::vector<Event> requests = EventsOf(imported, EventKind::kHardware);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(imported.Thread(requests[0].thread), "[disk 2]");
  EXPECT_EQ(requests[0].time_ns, 3'900'000);
  EXPECT_EQ(requests[0].dur_ns, 200'000);
  EXPECT_EQ(requests[0].arg0, 65'536);
}

TEST(XperfCsv, TheRecorderIsKnown) {
  const ImportedTrace imported = Import(kHeader + kLines);
  EXPECT_EQ(imported.trace.metadata.os, "Windows 10.0.19043");
  EXPECT_EQ(
      imported.trace.metadata.wall_start_ns,
      (132'675'686'690'347'142 - 116'444'736'000'000'000) * 100 + imported.trace.metadata.begin_ns);
  EXPECT_EQ(imported.Counted("event that the recorder lost"), 3u);
  EXPECT_EQ(imported.Counted("line of another event, left out"), 2u);
  const trace::Dictionary& dictionary = imported.trace.dictionary;
  EXPECT_EQ(dictionary.Text(dictionary.processes().front().command_line), "\"app.exe\" -a, -b");
}

TEST(XperfCsv, ColumnsAreWhereTheHeaderSays) {
  const std::string text =
      "BeginHeader\n"
      "CSwitch, TimeStamp, CPU, Old TID, New TID, OldState\n"
      "EndHeader\n"
      "CSwitch, 10, 3, 0, 7, Running\n"
      "CSwitch, 25, 3, 7, 0, Standby\n";
  const ImportedTrace imported = Import(text);
  const std::vector<Event> running = EventsOf(imported, EventKind::kRunning);
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].dur_ns, 15'000);
  EXPECT_EQ(running[0].cpu, 3);
  EXPECT_EQ(imported.Count(EventKind::kWait), 0u);
}

TEST(XperfCsv, WithoutStackLinesSamplesSayWhereTheyWere) {
  const std::string sample =
      "SampledProfile, 10, app.exe (100), 11, 0x400300, 0, app.exe!main, app.exe!Work, 1, x\n";
  ImportedTrace imported = Import(kHeader + sample);
  ASSERT_EQ(imported.CountStacked(EventKind::kRunning), 1u);
  EXPECT_EQ(imported.Stack(imported.trace.events.front().stack), "app.exe!Work");
  imported = Import(kHeader + sample + "Stack, 20, 12, 1, 0x400100, app.exe!other\n");
  EXPECT_EQ(imported.Stack(imported.trace.events.front().stack), "[truncated];app.exe!Work");
}

TEST(XperfCsv, InterruptsAreTheTimersOrTheDrivers) {
  const auto lines = [](const std::string& reason) {
    return "CSwitch, 5000, Idle (   0), 0, 0, 0, 0, 0, app.exe (100), 11, 9, 0, Waiting, " +
           reason +
           ", Swapable, 5, 0, 0\n"
           "ReadyThread, 5200, app.exe (100), 12, app.exe (100), 11, Unwait, 0, 1\n"
           "Stack, 5200, 12, 1, 0xfffff80000001000, ntoskrnl.exe!KeSetEvent\n"
           "Stack, 5200, 12, 2, 0xfffff80000008000, storport.sys!RaidUnitCompleteRequest\n"
           "CSwitch, 5300, app.exe (100), 11, 9, 0, 0, 0, Idle (   0), 0, 0, 0, Running, x,"
           " NonSwap, 5, 0, 0\n";
  };
  const ImportedTrace disk = Import(kHeader + lines("Executive"));
  EXPECT_EQ(disk.Thread(EventsOf(disk, EventKind::kWait)[0].peer), "[disk]");
  const ImportedTrace timer = Import(kHeader + lines("DelayExecution"));
  EXPECT_EQ(timer.Thread(EventsOf(timer, EventKind::kWait)[0].peer), "[timer]");
}

TEST(XperfCsv, EveryCutIsReadAsFarAsItGoes) {
  const std::string text = kHeader + kLines;
  for (size_t size = 0; size <= text.size(); ++size) {
    const ImportedTrace imported = Import(text.substr(0, size));
    if (!imported.status.ok()) {
      EXPECT_LT(size, kHeader.size());
      continue;
    }
    EXPECT_EQ(imported.Problem(), "") << size;
  }
}

TEST(XperfCsv, BadFieldsDoNotStopTheRest) {
  const ImportedTrace imported = Import(kHeader +
                                        "CSwitch, soon, x\nCSwitch\nReadyThread, 5\n"
                                        "Stack, 5, , 1\nDiskRead, 6, app.exe (1), 1, zz\n"
                                        "CSwitch, -4, app.exe (1), 1\n" +
                                        kLines);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  EXPECT_EQ(imported.Counted("line without a time"), 3u);
  EXPECT_GE(imported.Count(EventKind::kWait), 2u);
}

TEST(XperfCsv, OtherTextIsNotTaken) {
  const Importer importer = XperfCsvImporter();
  const Source source = MemorySource("x", "");
  EXPECT_EQ(importer.sniff(source, kHeader), Match::kCertain);
  EXPECT_EQ(importer.sniff(source, "BeginHeader"), Match::kNo);
  EXPECT_EQ(importer.sniff(source, "main;f 3\n"), Match::kNo);
}

TEST(XperfCsvLine, ProcessesAreNameAndNumber) {
  EXPECT_EQ(ParseXperfProcess("System (   4)")->pid, 4);
  EXPECT_EQ(ParseXperfProcess("a (b) c.exe (77)")->name, "a (b) c.exe");
  EXPECT_FALSE(ParseXperfProcess("app.exe"));
  EXPECT_FALSE(ParseXperfProcess("app.exe (x)"));
  EXPECT_FALSE(ParseXperfProcess(")("));
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
