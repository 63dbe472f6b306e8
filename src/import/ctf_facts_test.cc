// SPDX-License-Identifier: Apache-2.0
// What events mean, one small trace each: a header of a byte for the id and
// eight for the time, no packets, everything little-endian.
#include "import/ctf_facts.h"

#include <gtest/gtest.h>

#include "import/importers.h"
#include "import/stored_bytes.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::import_::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

class Story {
 public:
  explicit Story(const std::string& environment, const std::string& context = {}) {
    metadata_ = R"(
trace { byte_order = le; };
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; } := u64;
clock { name = c; freq = 1000; };
env { )" + environment +
                R"( };
stream { event.header := struct { u8 id; u64 timestamp; };)" +
                (context.empty() ? "" : "event.context := struct {" + context + "};") + "};\n";
  }

  void Class(int id, const std::string& name, const std::string& fields) {
    metadata_ += "event { id = " + std::to_string(id) + "; name = \"" + name +
                 "\"; fields := struct {" + fields + "}; };\n";
  }
  Story& At(uint64_t ms, int id) { return Put(static_cast<uint64_t>(id), 1).Put(ms, 8); }
  Story& Put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) stream_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  Story& Text(const std::string& text) {
    stream_ += text + '\0';
    return *this;
  }

  trace::Trace Import() {
    const Source source("story", {{"metadata", std::make_shared<MemoryBytes>(metadata_)},
                                  {"stream", std::make_shared<MemoryBytes>(stream_)}});
    std::string bytes;
    trace::TraceWriter writer([&](std::string_view piece) {
      bytes += piece;
      return Status();
    });
    const Status status = CtfImporter().read(source, {.symbols = false}, writer, diagnostics);
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_TRUE(writer.Finish().ok());
    auto trace = std::move(trace::TraceReader::FromBytes(bytes, "story").value()).ReadAll();
    EXPECT_TRUE(trace::CheckConservation(trace).ok());
    return trace;
  }

  Diagnostics diagnostics;

 private:
  std::string metadata_;
  std::string stream_;
};

std::vector<Event> Of(const trace::Trace& trace, EventKind kind) {
  std::vector<Event> found;
  for (const Event& event : trace.events) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

constexpr const char* kPerf = "i32 perf_tid; i32 perf_pid; i32 perf_cpu; i32 common_flags; ";

TEST(CtfFacts, ReadsPerfsNamesAndItsInterruptFlags) {
  Story story("machine = \"x86_64\"; release = \"5.10.0\";");
  story.Class(0, "sched:sched_switch",
              std::string(kPerf) +
                  "string prev_comm; i32 prev_pid; i32 prev_state; string "
                  "next_comm; i32 next_pid;");
  story.Class(1, "sched:sched_wakeup", std::string(kPerf) + "string comm; i32 pid;");
  story.Class(2, "raw_syscalls:sys_enter", std::string(kPerf) + "u64 id;");
  story.Class(3, "raw_syscalls:sys_exit", std::string(kPerf) + "u64 id; u64 ret;");
  const auto head = [&](uint64_t ms, int id, uint64_t tid, uint64_t flags) -> Story& {
    return story.At(ms, id).Put(tid, 4).Put(tid, 4).Put(0, 4).Put(flags, 4);
  };
  head(10, 2, 7, 0).Put(1, 8);
  head(20, 0, 7, 0).Text("seven").Put(7, 4).Put(1, 4).Text("eight").Put(8, 4);
  head(30, 1, 8, 0x8).Text("seven").Put(7, 4);  // in an interrupt
  head(40, 0, 8, 0).Text("eight").Put(8, 4).Put(256, 4).Text("seven").Put(7, 4);
  head(50, 3, 7, 0).Put(1, 8).Put(9, 8);
  const trace::Trace trace = story.Import();
  const auto waits = Of(trace, EventKind::kWait);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].dur_ns, 10'000'000);
  EXPECT_EQ(trace.dictionary.threads()[waits[0].peer.value].kind, trace::ThreadKind::kDevice);
  const auto calls = Of(trace, EventKind::kSyscall);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].arg0, 1);
  EXPECT_EQ(calls[0].arg1, 9);
  EXPECT_EQ(calls[0].dur_ns, 40'000'000);
  EXPECT_EQ(trace.metadata.arch, "x86_64");
  EXPECT_EQ(trace.metadata.wall_start_ns, 0);  // a clock that counts from boot
}

TEST(CtfFacts, KnowsTheNamesOfSamplersAndSystemCalls) {
  for (const char* name : {"cpu-clock", "cpu-clock:u", "cpu-clock/freq=1000/", "cycles:ppp",
                           "cpu/cycles/", "cpu/cycles,period=9/u"}) {
    EXPECT_EQ(MeaningOf(name).kind, CtfEventKind::kSample) << name;
  }
  EXPECT_EQ(MeaningOf("cpu-migrations").kind, CtfEventKind::kUnused);
  EXPECT_EQ(MeaningOf("compat_syscall_exit_open").name, "open");
  EXPECT_EQ(MeaningOf("syscalls:sys_enter_openat").name, "openat");
  EXPECT_EQ(MeaningOf("x86_irq_vectors_local_timer_exit").name, "local_timer");
  CtfSchema schema;
  schema.environment["machine"] = "x86_64";
  const CtfSyscalls syscalls(schema);
  EXPECT_EQ(syscalls.Number("fstat64"), syscalls.Number("fstat"));
  EXPECT_EQ(syscalls.Number("futex_time32"), 202);
  EXPECT_EQ(syscalls.Number("umount"), syscalls.Number("umount2"));
  EXPECT_EQ(syscalls.Number("nonesuch"), trace::kNoSyscall);
}

TEST(CtfFacts, SharesOutTimeBySamplesWithChains) {
  Story story("machine = \"aarch64\"; release = \"6.1.0\";");
  story.Class(0, "cpu-clock/freq=1000/",
              "u64 perf_ip; i32 perf_tid; i32 perf_pid; u64 perf_period; i32 perf_callchain_size; "
              "u64 perf_callchain[perf_callchain_size];");
  story.At(1, 0).Put(0x10, 8).Put(5, 4).Put(5, 4).Put(1'000'000, 8).Put(5, 4);
  story.Put(0 - uint64_t{128}, 8).Put(0xffff800000001000, 8);  // kernel
  story.Put(0 - uint64_t{512}, 8).Put(0x10, 8).Put(0x20, 8);   // user
  const trace::Trace trace = story.Import();
  const auto samples = Of(trace, EventKind::kRunning);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].dur_ns, 1'000'000);
  const auto frames = trace.dictionary.StackFrames(samples[0].stack);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(trace.dictionary.frames()[frames[0].value].offset, 0x20u);
  EXPECT_EQ(trace.dictionary.frames()[frames[2].value].offset, 0xffff800000001000u);
}

constexpr const char* kSwitch = "i32 _prev_tid; u64 _prev_state; i32 _next_tid;";

TEST(CtfFacts, KnowsInterruptsFromTheirEvents) {
  Story story("kernel_release = \"4.19.0\"; domain = \"kernel\";", "i32 _tid;");
  story.Class(0, "sched_switch", kSwitch);
  story.Class(1, "sched_waking", "i32 _tid;");
  story.Class(2, "irq_handler_entry", "i32 _irq; string _name;");
  story.Class(3, "irq_handler_exit", "i32 _irq;");
  story.Class(4, "irq_softirq_raise", "i32 _vec;");
  story.Class(5, "irq_softirq_entry", "i32 _vec;");
  story.Class(6, "irq_softirq_exit", "i32 _vec;");
  story.Class(7, "timer_hrtimer_expire_entry", "u64 _hrtimer;");
  story.Class(8, "timer_hrtimer_expire_exit", "u64 _hrtimer;");
  CtfInterrupts interrupts(true);
  using Kind = CtfEventKind;
  const auto judge = [&] { return interrupts.Judge(0, "worker"); };
  EXPECT_EQ(judge().context, assemble::WakeContext::kThread);
  interrupts.Event(0, Kind::kIrqEntry, "nvme0q1", -1);
  EXPECT_EQ(judge().context, assemble::WakeContext::kInterrupt);
  EXPECT_EQ(judge().device, "disk");
  interrupts.Event(0, Kind::kSoftirqRaise, {}, 3);
  interrupts.Event(0, Kind::kIrqExit, {}, -1);
  interrupts.Event(0, Kind::kSoftirqEntry, {}, 3);
  EXPECT_EQ(judge().device, "net");
  interrupts.Event(0, Kind::kSoftirqExit, {}, 3);
  interrupts.Event(0, Kind::kSoftirqRaise, {}, 3);  // a loopback send
  interrupts.Event(0, Kind::kSoftirqEntry, {}, 3);
  EXPECT_EQ(judge().context, assemble::WakeContext::kThread);
  EXPECT_EQ(interrupts.Judge(0, "ksoftirqd/0").context, assemble::WakeContext::kInterrupt);
  interrupts.Event(0, Kind::kTimerEntry, {}, -1);
  EXPECT_EQ(judge().device, "timer");
  interrupts.Switch(0);  // whatever was lost
  EXPECT_EQ(judge().context, assemble::WakeContext::kThread);
  EXPECT_EQ(CtfInterrupts(false).Judge(0, {}).context, assemble::WakeContext::kUnknown);

  story.At(1, 0).Put(5, 4).Put(5, 4).Put(1, 8).Put(6, 4);
  story.At(2, 1).Put(6, 4).Put(5, 4);
  story.At(3, 0).Put(6, 4).Put(6, 4).Put(0x100, 8).Put(5, 4);
  const trace::Trace trace = story.Import();
  const auto waits = Of(trace, EventKind::kWait);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(trace.dictionary.threads()[waits[0].peer.value].tid, 6);
}

TEST(CtfFacts, TurnsCallstackContextsIntoStacks) {
  Story story("kernel_release = \"5.4.0\";",
              "i32 _tid; i32 __callstack_kernel_length; "
              "u64 _callstack_kernel[ __callstack_kernel_length ];");
  story.Class(0, "sched_switch", kSwitch);
  const uint64_t top = 0xffffffff81000000;
  story.At(1, 0).Put(5, 4).Put(3, 4).Put(top + 1, 8).Put(top + 2, 8).Put(UINT64_MAX, 8);
  story.Put(5, 4).Put(1, 8).Put(6, 4);
  story.At(2, 0).Put(6, 4).Put(0, 4).Put(6, 4).Put(1, 8).Put(5, 4);
  const trace::Trace trace = story.Import();
  bool found = false;
  for (const Event& event : Of(trace, EventKind::kWait)) {
    const auto frames = trace.dictionary.StackFrames(event.stack);
    if (frames.empty()) continue;
    found = true;
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(trace.dictionary.frames()[frames[1].value].offset, top + 1);  // the leaf
  }
  EXPECT_TRUE(found);
}

TEST(CtfFacts, ReadsTheOldNamesOfSystemCalls) {
  Story story("kernel_release = \"3.2.0\";", "i32 _tid;");
  story.Class(0, "sys_open", "string _filename;");
  story.Class(1, "exit_syscall", "u64 _ret;");
  story.Class(2, "sys_nonesuch", "u8 _x;");
  story.Class(3, "syscall_exit_clone", "u64 _ret;");
  story.At(1, 0).Put(4, 4).Text("/etc/passwd");
  story.At(3, 1).Put(4, 4).Put(6, 8);
  story.At(4, 2).Put(4, 4).Put(6, 1);
  story.At(5, 3).Put(9, 4).Put(0, 8);  // a child's first breath
  const trace::Trace trace = story.Import();
  const auto calls = Of(trace, EventKind::kSyscall);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].arg0, 2);
  EXPECT_EQ(calls[0].arg1, 6);
  EXPECT_EQ(calls[0].dur_ns, 2'000'000);
  EXPECT_EQ(calls[1].flags & trace::kUnfinished, trace::kUnfinished);
  EXPECT_TRUE(story.diagnostics.rows().contains("system call whose name has no number: nonesuch"));
  EXPECT_FALSE(story.diagnostics.rows().contains("system call exit without its entry"));
}

TEST(CtfFacts, NestsCallsAndSlicesOfPrograms) {
  Story story("domain = \"ust\";", "i32 _vpid; i32 _vtid;");
  story.Class(0, "lttng_ust_cyg_profile:func_entry", "u64 _addr; u64 _call_site;");
  story.Class(1, "lttng_ust_cyg_profile:func_exit", "u64 _addr; u64 _call_site;");
  story.Class(2, "lttng_ust_statedump:bin_info", "u64 _baddr; u64 _memsz; string _path;");
  story.Class(3, "app:request_begin", "u8 _x;");
  story.Class(4, "app:request_end", "u8 _x;");
  story.Class(5, "app:message", "u8 _x;");
  const auto head = [&](uint64_t ms, int id) -> Story& {
    return story.At(ms, id).Put(50, 4).Put(51, 4);
  };
  head(1, 2).Put(0x1000, 8).Put(0x1000, 8).Text("/opt/app");
  head(2, 3).Put(0, 1);
  head(3, 0).Put(0x1100, 8).Put(0, 8);
  head(4, 0).Put(0x1200, 8).Put(0, 8);
  head(5, 0).Put(0x9999, 8).Put(0, 8);  // its exit is lost
  head(6, 1).Put(0x1200, 8).Put(0, 8);
  head(7, 1).Put(0x4444, 8).Put(0, 8);  // never entered
  head(8, 5).Put(0, 1);
  head(9, 4).Put(0, 1);
  head(10, 1).Put(0x1100, 8).Put(0, 8);
  const trace::Trace trace = story.Import();
  const auto calls = Of(trace, EventKind::kCall);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(trace.dictionary.StackText(calls[0].stack), "app!+0x100");
  EXPECT_EQ(calls[0].dur_ns, 7'000'000);
  EXPECT_EQ(trace.dictionary.StackText(calls[1].stack), "app!+0x100;app!+0x200");
  EXPECT_EQ(trace.dictionary.StackText(calls[2].stack), "app!+0x100;app!+0x200;[unknown]!+0x9999");
  EXPECT_EQ(Of(trace, EventKind::kMarker).size(), 2u);
  const auto& rows = story.diagnostics.rows();
  EXPECT_EQ(rows.at("function entry without its exit").count, 1u);
  EXPECT_EQ(rows.at("function exit without its entry").count, 1u);
  EXPECT_EQ(rows.at("event of a kind that the model has no place for").count, 1u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
