// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "import/import_run.h"
#include "import/imported_trace.h"
#include "import/importers.h"
#include "import/scap_builder.h"
#include "import/scap_events.h"
#include "import/scap_process.h"
#include "import/stored_bytes.h"
#include "trace/syscall_table.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

ImportedTrace FromBytes(const std::string& bytes) {
  return ImportTrace(ScapImporter(), MemorySource("t.scap", bytes));
}

// One line an event: kind, thread, begin, duration, number or flags.
std::string Summary(const ImportedTrace& imported) {
  std::vector<Event> events = imported.trace.events;
  trace::SortByTime(events);
  std::string text;
  for (const Event& event : events) {
    text += std::string(trace::Name(event.kind)) + " " + imported.Thread(event.thread) + " " +
            std::to_string(event.time_ns) + "+" + std::to_string(event.dur_ns);
    if (event.kind == EventKind::kSyscall) {
      text += " " + std::to_string(event.arg0) + "=" + std::to_string(event.arg1);
    }
    text += "\n";
  }
  return text;
}

TEST(Scap, EveryLayoutAndByteOrderTellsTheSame) {
  const ImportedTrace first = FromBytes(SmallScap(false, kScapEventV2));
  ASSERT_TRUE(first.status.ok());
  EXPECT_EQ(first.Problem(), "");
  EXPECT_EQ(Summary(first),
            "syscall app/app (10) 1000+700 0=-11\n"
            "running app/worker (11) 1200+300\n"
            "wait app/app (10) 1200+300\n"
            "syscall app/worker (11) 1300+50 14=0\n"
            "running app/app (10) 1500+490\n"
            "ready app/worker (11) 1500+490\n"
            "syscall app/app (10) 1750+100 56=5\n"
            "running ls/ls (12) 1900+90\n"
            "syscall ls/ls (12) 1900+50 59=0\n");
  for (const bool big : {false, true}) {
    for (const uint32_t block : {kScapEvent, kScapEventFlags, kScapEventV2, kScapEventFlagsV2,
                                 kScapEventLarge, kScapEventFlagsLarge}) {
      const ImportedTrace other = FromBytes(SmallScap(big, block));
      ASSERT_TRUE(other.status.ok()) << big << " " << block;
      EXPECT_EQ(Summary(other), Summary(first)) << big << " " << block;
    }
  }
}

TEST(Scap, NamesThreadsProcessesAndContainers) {
  const ImportedTrace imported = FromBytes(SmallScap(false, kScapEventV2));
  const trace::Dictionary& dictionary = imported.trace.dictionary;
  std::string processes;
  for (const trace::Process& process : dictionary.processes()) {
    processes += std::to_string(process.pid) + " " + std::string(dictionary.Text(process.name)) +
                 " '" + std::string(dictionary.Text(process.command_line)) + "' " +
                 std::string(dictionary.Text(process.cgroup)) + "\n";
  }
  EXPECT_EQ(processes, "10 app '/bin/app -a -b' /docker/abc\n12 ls '/bin/ls -l /tmp' /x\n");
  const trace::Metadata& metadata = imported.trace.metadata;
  EXPECT_EQ(metadata.machine, "host-a");
  EXPECT_EQ(metadata.arch, "x86_64");
  EXPECT_EQ(metadata.cpus, 4u);
  EXPECT_TRUE(metadata.has_switches);
  EXPECT_FALSE(metadata.has_wakers);
  EXPECT_EQ(metadata.properties.at("container.abc"), "web, image nginx");
  EXPECT_EQ(metadata.properties.at("scap.events"), "16");
  EXPECT_EQ(imported.Counted("event of a type newer than this program"), 1u);
}

TEST(Scap, EveryVersionOfTheProcessListIsRead) {
  for (int version = 1; version <= 9; ++version) {
    ScapBuilder scap;
    scap.Process(version, 77, 77, "daemon", std::string_view("cpu=/a/b\0pids=/a\0", 17));
    scap.Event({1000, 77, 0}, 6, {scap.I64(3)});
    scap.Event({1100, 77, 0}, 7, {scap.I64(1)});
    const ImportedTrace imported = FromBytes(scap.bytes());
    ASSERT_TRUE(imported.status.ok()) << version;
    EXPECT_TRUE(imported.diagnostics.empty()) << version;
    ASSERT_EQ(imported.trace.dictionary.processes().size(), 1u) << version;
    const trace::Process& process = imported.trace.dictionary.processes().front();
    EXPECT_EQ(imported.trace.dictionary.Text(process.name), "daemon");
    EXPECT_EQ(imported.trace.dictionary.Text(process.command_line), "/bin/daemon -a -b");
    EXPECT_EQ(imported.trace.dictionary.Text(process.cgroup), version >= 4 ? "/a/b" : "");
  }
}

TEST(Scap, TellsTheMachineByTheNumbersOfItsCalls) {
  EXPECT_EQ(ScapArchOf(108, 14), trace::SyscallAbi::kX86_64);
  EXPECT_EQ(ScapArchOf(108, 135), trace::SyscallAbi::kArm64);
  EXPECT_EQ(ScapArchOf(108, 999), std::nullopt);
  EXPECT_EQ(ScapArchOf("open"), trace::SyscallAbi::kX86_64);
  EXPECT_EQ(ScapArchOf("pipe"), std::nullopt);  // may stand for pipe2
  ScapBuilder scap;
  scap.Event({1000, 5, 0}, 0, {scap.U16(108), scap.U16(135)});
  scap.Event({1010, 5, 0}, 1, {scap.U16(108)});
  scap.Event({1020, 5, 0}, 6, {scap.I64(3)});
  scap.Event({1030, 5, 0}, 7, {scap.I64(1)});
  const ImportedTrace imported = FromBytes(scap.bytes());
  EXPECT_EQ(imported.trace.metadata.arch, "aarch64");
  EXPECT_EQ(Summary(imported), "syscall / (5) 1000+10 135=0\nsyscall / (5) 1020+10 63=1\n");
}

TEST(Scap, EveryCallOfTheTableHasANumber) {
  for (uint16_t type = 0; type < 426; type += 2) {
    const ScapEventRow row = ScapEventOf(type);
    EXPECT_NE(row.meaning, ScapMeaning::kUnknown) << type;
    if (row.name.empty()) continue;
    EXPECT_NE(ScapSyscallNumber(row.name, trace::SyscallAbi::kX86_64), trace::kNoSyscall)
        << row.name;
  }
  EXPECT_EQ(ScapEventOf(426).meaning, ScapMeaning::kUnknown);
}

TEST(Scap, CallsWithoutEntriesHaveNoDuration) {
  ScapBuilder scap;
  for (int64_t i = 0; i < 20; ++i) scap.Event({1000 + i, 5, 0}, 7, {scap.I64(i)});
  const ImportedTrace imported = FromBytes(scap.bytes());
  EXPECT_EQ(imported.Count(EventKind::kSyscall), 20u);
  EXPECT_EQ(imported.Counted("system call without a duration (its recorder writes only exits)"),
            20u);
}

TEST(Scap, DamageIsCountedAndNotFatal) {
  const std::string whole = SmallScap(false, kScapEventV2);
  for (size_t size = 0; size <= whole.size(); ++size) {
    const ImportedTrace imported = FromBytes(whole.substr(0, size));
    if (imported.status.ok()) {
      EXPECT_EQ(imported.Problem(), "") << size;
    }
  }
  EXPECT_EQ(FromBytes(whole.substr(0, whole.size() - 3)).Counted("file ends inside a block"), 1u);
  std::string bad = whole;
  bad.replace(bad.size() - 8, 4, 4, '\xff');
  EXPECT_EQ(FromBytes(bad).status.ok(), true);
  EXPECT_FALSE(FromBytes("").status.ok());
}

TEST(Scap, IsNotACaptureOfPackets) {
  const std::string scap = SmallScap(true, kScapEventV2);
  const Source source = MemorySource("t", scap);
  EXPECT_EQ(ScapImporter().sniff(source, scap), Match::kCertain);
  std::string packets = scap;
  packets.replace(28, 4, std::string("\0\0\0\1", 4));  // an interface description
  EXPECT_EQ(ScapImporter().sniff(source, packets), Match::kNo);
}

// falco's capture of a container that runs ls. The counts are those of a script
// that walks the blocks and pairs entries with exits by thread.
TEST(Scap, ReadsAContainersCapture) {
  const std::string path = CULPRIT_SOURCE_DIR "/../shared/data/syscalls/falco-container.scap";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const auto sources = OpenSources(path);
  ASSERT_EQ(sources.size(), 1u);
  const Source& source = sources.front().value();
  EXPECT_EQ(ChooseImporter(source, "").value()->name, "scap");
  const ImportedTrace imported = ImportTrace(ScapImporter(), source);
  ASSERT_TRUE(imported.status.ok());
  EXPECT_EQ(imported.Problem(), "");
  const trace::Metadata& metadata = imported.trace.metadata;
  EXPECT_EQ(metadata.properties.at("scap.events"), "4143");
  EXPECT_EQ(metadata.machine, "ubuntu");
  EXPECT_EQ(metadata.arch, "x86_64");
  EXPECT_TRUE(metadata.has_switches);
  EXPECT_EQ(metadata.properties.count("switches.inferred"), 0u);
  EXPECT_EQ(imported.Counted("system call entry without its exit"), 13u);  // rt_sigreturn
  EXPECT_EQ(imported.Counted("system call exit without its entry"), 35u);
  EXPECT_EQ(imported.diagnostics.rows().size(), 2u);
  EXPECT_EQ(metadata.properties.at("container.697956520d89"), "hopeful_taussig, image nginx");
  uint64_t finished = 0;
  uint64_t unfinished = 0;  // 36 at the end, 1 exit_group
  uint64_t futexes = 0;
  int64_t futex_ns = 0;
  for (const Event& event : imported.trace.events) {
    if (event.kind != EventKind::kSyscall) continue;
    const bool open = (event.flags & trace::kUnfinished) != 0;
    ++(open ? unfinished : finished);
    if (open || event.arg0 != trace::SyscallNumber("futex", trace::SyscallAbi::kX86_64)) continue;
    ++futexes;
    futex_ns += event.dur_ns;
  }
  EXPECT_EQ(finished, 1307u);
  EXPECT_EQ(unfinished, 37u);
  EXPECT_EQ(futexes, 89u);
  EXPECT_EQ(futex_ns, 21'832'434'584);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
