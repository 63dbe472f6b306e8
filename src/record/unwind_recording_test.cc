// SPDX-License-Identifier: Apache-2.0
//
// The kernel's stack walker on real stacks: against the kernel's own walk by frame
// pointers where those are kept, and against what a program does where they are not.
// Needs root and a kernel with BTF; skipped elsewhere.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test_folder.h"
#include "record/bpf_engine.h"
#include "record/machine.h"
#include "record/recorder.h"
#include "record/unwind_feed.h"
#include "symbol/test_binary.h"
#include "trace/trace_reader.h"

namespace culprit::record::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

#define SKIP_IF_IT_CANNOT_WALK()                                                 \
  if (!BpfEngine::Built() || geteuid() != 0 || !OwnUnwindMachine() ||            \
      access("/sys/kernel/btf/vmlinux", R_OK) != 0) {                            \
    GTEST_SKIP() << "recording needs root, BTF and a build with the BPF engine"; \
  }

// A command in a process group of its own, ended with the test.
class Command {
 public:
  explicit Command(const char* text) : pid_(fork()) {
    if (pid_ != 0) return;
    setpgid(0, 0);
    execl("/bin/bash", "bash", "-c", text, nullptr);
    _exit(127);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

struct Walked {
  UnwindCounters counters = {};
  UnwindStats stats = {};
};

// What is walked in a process and its children until `stacks` are, or time is up.
Walked WalkBoth(pid_t pid, uint64_t stacks) {
  Walked walked;
  Result<std::unique_ptr<BpfEngine>> started =
      BpfEngine::Start({.sample_period_ns = 500'000, .compare_stacks = true});
  EXPECT_TRUE(started.ok()) << started.error().ToString() << " " << started.error().hint;
  if (!started.ok()) return walked;
  BpfEngine& engine = *started.value();
  EXPECT_TRUE(engine.AddTarget(pid).ok());
  Result<std::unique_ptr<UnwindFeed>> feed = UnwindFeed::Start(engine.unwind_maps());
  EXPECT_TRUE(feed.ok());
  if (!feed.ok()) return walked;
  feed.value()->Look({pid});
  feed.value()->Settle(5'000'000'000);
  engine.Begin(MonotonicNs());
  const int64_t begin_ns = MonotonicNs();
  while (MonotonicNs() - begin_ns < 20'000'000'000 && engine.ReadUnwindCounters().walked < stacks) {
    poll(nullptr, 0, 20);
    engine.Drain([](std::string_view) {});
  }
  engine.End(MonotonicNs());
  walked.counters = engine.ReadUnwindCounters();
  walked.stats = feed.value()->Stats();
  return walked;
}

void Tell(const UnwindCounters& c) {
  testing::Test::RecordProperty("walked", static_cast<int>(c.walked));
  testing::Test::RecordProperty("complete", static_cast<int>(c.complete));
  testing::Test::RecordProperty("same", static_cast<int>(c.same));
  testing::Test::RecordProperty("no_caller", static_cast<int>(c.no_caller));
  testing::Test::RecordProperty("cut_short", static_cast<int>(c.cut_short));
  testing::Test::RecordProperty("cut_long", static_cast<int>(c.cut_long));
  testing::Test::RecordProperty("different", static_cast<int>(c.different));
}

// A shell that computes and waits and, now and then, forks and executes (in the middle
// of which a process has no stack). What tables and frame pointers
// disagree about must be stacks that frame pointers have wrong: they never reach
// further than the tables.
TEST(UnwindRecording, TheWalkerAgreesWithFramePointersOrSeesMore) {
  SKIP_IF_IT_CANNOT_WALK();
  const Command shell(
      "exec 3<> <(:); for ((i = 0;; ++i)); do x=$((x * 31 + i)); "
      "(( i % 30000 == 0 )) && ls / > /dev/null; (( i % 500 == 0 )) && read -t 0.0005 -u 3; done");
  const auto [c, stats] = WalkBoth(shell.pid(), 3000);
  Tell(c);
  EXPECT_GE(c.walked, 1000u);
  EXPECT_EQ(c.same + c.no_caller + c.cut_short + c.cut_long + c.different, c.walked);
  EXPECT_GE(c.complete * 100, c.walked * 97);
  EXPECT_LE(c.cut_long * 100, c.walked);
#if defined(__aarch64__)
  // Debian keeps frame pointers here, but for leaves and hand-written code.
  EXPECT_GE((c.same + c.no_caller) * 100, c.walked * 90);
  EXPECT_LE(c.different * 100, c.walked);
#endif
  EXPECT_GT(stats.modules, 3u);
  EXPECT_GT(stats.table_bytes, 10'000u);
  EXPECT_LT(stats.table_bytes, stats.kernel_bytes);
}

// Frames of every shape: recursion, one that moves its stack pointer, a large one, a
// signal handler, a second thread. The last call in Descend is no tail call. It begins
// with a pause in which the recorder gets to know it, however busy the machine is.
constexpr const char* kProgram = R"(
#include <alloca.h>
#include <signal.h>
#include <string.h>
#include <thread>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink = 1;
static void Nap() { const timespec t = {0, 300000}; nanosleep(&t, nullptr); }
static void Spin() { for (int i = 0; i < 300000; ++i) sink = sink * 31 + 7; }
__attribute__((noinline)) void Bottom() { Nap(); Spin(); sink = sink + 1; }
__attribute__((noinline)) LARGE void Large() {
  volatile char room[20000]; room[sink % 20000] = 1; Bottom(); sink = sink + room[sink % 20000];
}
__attribute__((noinline)) void Moving(unsigned long bytes) {
  char* room = static_cast<char*>(alloca(bytes)); memset(room, 1, bytes);
  Large(); sink = sink + room[sink % bytes];
}
__attribute__((noinline)) void Descend(int depth) {
  if (depth == 0) Moving(100 + sink % 1000); else Descend(depth - 1);
  sink = sink + 1;
}
static void InHandler(int) { Nap(); sink = sink + 1; }
__attribute__((noinline)) void Signalled() { raise(SIGUSR1); sink = sink + 1; }
int main() {
  signal(SIGUSR1, &InHandler);
  usleep(200000);
  std::thread other([] { for (int i = 0; i < 150; ++i) { Descend(9); sink = sink + 1; } });
  for (int i = 0; i < 150; ++i) { Descend(20); Signalled(); }
  other.join();
}
)";

bool Has(const std::string& stack, std::string_view part) {
  return stack.find(part) != std::string::npos;
}

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Records the program, compiled so; how many of its stacks were found by frame pointers
// that are proven.
void ExpectStacksAreComplete(const std::string& flags, uint64_t& proven) {
  const symbol::TestBinary folder;
  folder.Write("p.cc", kProgram);
  if (!folder.Works("c++ -std=c++20 -g -O1 " + flags +
                    " -fno-optimize-sibling-calls -pthread p.cc -o p")) {
    GTEST_SKIP() << "no compiler";
  }
  const std::string path = folder.Path("t.ctrace");
  const Result<RecordOutcome> outcome =
      Record({.command = {folder.Path("p")}, .path = path, .budget = 0}, {});
  ASSERT_TRUE(outcome.ok()) << outcome.error().ToString();
  const Result<trace::Trace> trace = trace::ReadTrace(path);
  ASSERT_TRUE(trace.ok());
  uint64_t planted = 0;
  uint64_t whole = 0;
  uint64_t in_handler = 0;
  std::string first_wrong;
  for (const Event& event : trace.value().events) {
    if (event.kind != EventKind::kWait || !event.stack.valid()) continue;
    const std::string stack = trace.value().dictionary.StackText(event.stack);
    if (Has(stack, "InHandler")) {
      in_handler += Has(stack, "Signalled") && Has(stack, "main") ? 1 : 0;
      continue;
    }
    if (!Has(stack, "nanosleep") || !Has(stack, "Nap")) continue;
    ++planted;
    const size_t depth = CountOf(stack, "Descend");
    const bool is_main = Has(stack, "main") && depth == 21;
    const bool is_thread = depth == 10 && (Has(stack, "start_thread") || Has(stack, "clone"));
    const bool is_whole = Has(stack, "Bottom") && Has(stack, "Large") && Has(stack, "Moving") &&
                          (is_main || is_thread);
    whole += is_whole ? 1 : 0;
    if (!is_whole && first_wrong.empty()) first_wrong = stack;
  }
  EXPECT_GE(planted, 250u);
  EXPECT_GE(whole * 100, planted * 99) << first_wrong;
  EXPECT_GE(in_handler, 140u);
  const auto& properties = trace.value().metadata.properties;
  const uint64_t walked = std::stoull(properties.at("unwind.stacks"));
  const uint64_t complete = std::stoull(properties.at("unwind.complete"));
  EXPECT_GE(walked, planted);
  EXPECT_GE(complete * 100, walked * 99);
  EXPECT_GT(std::stoull(properties.at("unwind.table_bytes")), 0u);
  proven = std::stoull(properties.at("unwind.proven"));
}

TEST(UnwindRecording, WithoutFramePointersStacksAreComplete) {
  SKIP_IF_IT_CANNOT_WALK();
  uint64_t proven = 0;
  ExpectStacksAreComplete("-fomit-frame-pointer -DLARGE=", proven);
}

// Most stacks are found by frame pointers, once these are proven.
TEST(UnwindRecording, WithFramePointersStacksAreComplete) {
  SKIP_IF_IT_CANNOT_WALK();
  uint64_t proven = 0;
  ExpectStacksAreComplete("-fno-omit-frame-pointer -DLARGE=", proven);
  if (testing::Test::IsSkipped()) return;
#if defined(__aarch64__)
  EXPECT_GT(proven, 200u);
#endif
}

// One function within every stack has none: what its callee's frame pointer leads to is
// its caller's caller.
TEST(UnwindRecording, WithAFunctionWithoutFramePointerStacksAreComplete) {
  SKIP_IF_IT_CANNOT_WALK();
  uint64_t proven = 0;
  ExpectStacksAreComplete(
      "-fno-omit-frame-pointer -DLARGE='__attribute__((optimize(\"omit-frame-pointer\")))'",
      proven);
}

// Its stack is not the walker's but that of the recorder, from the thread's memory.
TEST(UnwindRecording, AThreadThatOnlySleepsHasItsWholeStack) {
  SKIP_IF_IT_CANNOT_WALK();
  const symbol::TestBinary folder;
  folder.Write("p.cc", R"(
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void Inner() { pause(); sink = sink + 1; }
__attribute__((noinline)) void Outer() { Inner(); sink = sink + 1; }
int main() { for (;;) Outer(); }
)");
  if (!folder.Works("c++ -g -O1 -fomit-frame-pointer p.cc -o p")) GTEST_SKIP() << "no compiler";
  const Command sleeper(("exec " + folder.Path("p")).c_str());
  usleep(200'000);
  const std::string path = folder.Path("t.ctrace");
  const Result<RecordOutcome> outcome =
      Record({.target = {.pids = {sleeper.pid()}}, .path = path, .duration_ns = 200'000'000}, {});
  ASSERT_TRUE(outcome.ok()) << outcome.error().ToString();
  const Result<trace::Trace> trace = trace::ReadTrace(path);
  ASSERT_TRUE(trace.ok());
  uint64_t waits = 0;
  for (const Event& event : trace.value().events) {
    if (event.kind != EventKind::kWait) continue;
    ++waits;
    const std::string stack = trace.value().dictionary.StackText(event.stack);
    EXPECT_TRUE(Has(stack, "Inner") && Has(stack, "Outer") && Has(stack, "main")) << stack;
  }
  EXPECT_EQ(waits, 1u);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
