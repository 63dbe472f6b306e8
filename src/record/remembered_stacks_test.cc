// SPDX-License-Identifier: Apache-2.0
//
// Stacks that the kernel programs remember, or find by frame pointers that they have
// proven, against those that they walk: of processes
// that pass a byte to and fro, that come to one place on several paths, or that are
// busy deep down, both ways of recording must name the same places. Needs root and a
// kernel with BTF; skipped elsewhere.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "record/bpf_recording.h"
#include "record/machine.h"
#include "record/program_choice.h"

namespace culprit::record::TEST_FILE {
namespace {

using trace::EventKind;

class KeptEvents final : public assemble::EventTarget {
 public:
  Status Add(const trace::Event& event) override {
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

using Ends = std::pair<int, int>;

Ends UnixSocket() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  return {ends[0], ends[1]};
}

// What is sent over it wakes the other side out of a soft interrupt, within the
// sender's own system call.
Ends LoopbackSocket() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener, any, length), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  EXPECT_EQ(getsockname(listener, any, &length), 0);
  const int near = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(near, any, length), 0);
  const int far = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return {near, far};
}

class Players {
 public:
  explicit Players(Ends ends) {
    for (const int end : {ends.first, ends.second}) {
      const pid_t pid = fork();
      if (pid == 0) Play(end, end == ends.first);
      pids_.push_back(pid);
    }
    close(ends.first);
    close(ends.second);
  }
  explicit Players(void (*play)()) {
    const pid_t pid = fork();
    if (pid == 0) {
      while (true) play();
    }
    pids_.push_back(pid);
  }
  Players(const Players&) = delete;
  Players& operator=(const Players&) = delete;
  ~Players() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  const std::vector<int64_t>& pids() const { return pids_; }

 private:
  [[noreturn]] static void Play(int end, bool begins) {
    char byte = 0;
    if (begins && write(end, &byte, 1) != 1) _exit(1);
    while (read(end, &byte, 1) == 1 && write(end, &byte, 1) == 1) {
    }
    _exit(0);
  }

  std::vector<int64_t> pids_;
};

struct Places {
  std::map<std::string, size_t> waits;    // by stack
  std::map<std::string, size_t> wakings;  // by stack
  size_t count = 0;                       // of either
  std::map<std::string, size_t> samples;  // by the stack of their caller
  size_t sample_count = 0;
  uint64_t recalled = 0;
  UnwindCounters walks = {};
  StackCounts stacks = {};
};

struct Way {
  bool remember = true;
  bool prove = false;  // what frame pointers say
  bool direct_reads = false;
  bool resumes = true;
  uint64_t min_wait_ns = 0;  // user stacks are taken at the end of a switch if it is not 0
  int64_t sample_period_ns = 0;
  size_t max_stacks = StackTable::kMaxStacks;
};

// Until there are enough waits, or samples, or for long enough.
Places Record(const Players& players, const Way& way) {
  Places places;
  KeptEvents kept;
  const BpfRecordingOptions options = {.target = {.pids = players.pids()},
                                       .engine = {.blocks = false,
                                                  .sample_period_ns = way.sample_period_ns,
                                                  .remember_stacks = way.remember,
                                                  .prove_chains = way.prove,
                                                  .direct_reads = way.direct_reads,
                                                  .resumes = way.resumes},
                                       .max_stacks = way.max_stacks,
                                       .warm_up_ns = 20'000'000'000};
  Result<std::unique_ptr<BpfRecording>> made = BpfRecording::Prepare(options, 0, kept);
  EXPECT_TRUE(made.ok()) << made.error().ToString();
  if (!made.ok()) return places;
  BpfRecording& recording = *made.value();
  // A kernel that has something does not refuse it.
  const ProgramChoice best =
      ProgramChoices({.direct_reads = way.direct_reads, .resumes = way.resumes}).front();
  EXPECT_EQ(recording.engine().programs().direct_reads, best.direct_reads);
  EXPECT_EQ(recording.engine().programs().resumes, best.resumes);
  Policy policy = recording.engine().policy();
  policy.min_wait_ns = way.min_wait_ns;
  EXPECT_TRUE(recording.engine().SetPolicy(policy).ok());
  recording.Begin();
  const int64_t begin_ns = MonotonicNs();
  const auto is_enough = [&] {
    if (way.sample_period_ns == 0) return recording.waits() >= 4000;
    return recording.engine().ReadCounters().Runs(kSampleMeter) >= 1500;
  };
  while (!is_enough() && MonotonicNs() - begin_ns < 10'000'000'000) {
    poll(nullptr, 0, 10);
    EXPECT_TRUE(recording.Tick().ok());
  }
  EXPECT_TRUE(recording.End().ok());
  places.recalled = recording.engine().ReadCounters().total.recalled;
  places.walks = recording.engine().ReadUnwindCounters();
  places.stacks = recording.stack_counts();
  const trace::Dictionary& names = kept.trace.dictionary;
  std::set<trace::ThreadId> threads;
  for (const int64_t pid : players.pids()) {
    for (size_t i = 0; i < names.threads().size(); ++i) {
      if (names.threads()[i].tid == pid) threads.insert(trace::ThreadId(i));
    }
  }
  for (const trace::Event& event : kept.trace.events) {
    if (!threads.contains(event.thread)) continue;
    if (event.kind == EventKind::kWait) {
      ++places.waits[names.StackText(event.stack)];
      ++places.count;
    } else if (event.kind == EventKind::kUnwait) {
      ++places.wakings[names.StackText(event.stack)];
    } else if (event.kind == EventKind::kRunning && event.stack.valid()) {
      ++places.samples[names.StackText(names.stacks()[event.stack.value].parent)];
      ++places.sample_count;
    }
  }
  return places;
}

// Those that are met often: others may come and go from one recording to the next.
std::set<std::string> Frequent(const std::map<std::string, size_t>& stacks, size_t count) {
  std::set<std::string> frequent;
  for (const auto& [stack, times] : stacks) {
    if (times * 10 >= count) frequent.insert(stack);
  }
  return frequent;
}

class RememberedStacks : public testing::Test {
 protected:
  void SetUp() override {
    if (!BpfEngine::Built() || geteuid() != 0 || access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
      GTEST_SKIP() << "recording needs root, BTF and a build with the BPF engine";
    }
  }
};

// Which of its stacks a pair meets often may change with the CPUs it runs on, from one
// recording to the next: what is remembered must be what is met in some walk.
void ExpectAreMet(const std::map<std::string, size_t>& remembered, size_t count,
                  const std::map<std::string, size_t>& walked) {
  const std::set<std::string> frequent = Frequent(remembered, count);
  EXPECT_FALSE(frequent.empty());
  for (const std::string& stack : frequent) EXPECT_TRUE(walked.contains(stack)) << stack;
}

void ExpectSamePlaces(Ends (*make_ends)()) {
  const Players players(make_ends());
  Places walked = Record(players, {.remember = false, .resumes = false});
  const Places remembered = Record(players, {.resumes = false});
  const Places direct = Record(players, {.direct_reads = true});
  // On arm64 by frame pointers, in the kernel too.
  const Places proven = Record(players, {.prove = true, .direct_reads = true});
  const Places resumed = Record(players, {.prove = true, .direct_reads = true, .min_wait_ns = 1});
  Places again = Record(players, {.remember = false, .min_wait_ns = 1});
  ASSERT_GT(walked.count, 500u);
  EXPECT_EQ(walked.recalled + again.recalled, 0u);
  walked.waits.merge(again.waits);
  walked.wakings.merge(again.wakings);
  for (const Places* places : {&remembered, &direct, &proven}) {
    ASSERT_GT(places->count, 500u);
    // Of each wait and of each wake-up one.
    EXPECT_GT(places->recalled, places->count);
    ExpectAreMet(places->wakings, places->count, walked.wakings);
    ExpectAreMet(places->waits, places->count, walked.waits);
  }
  ASSERT_GT(resumed.count, 500u);
  // There a wake-up that comes before its wait has no stack.
  EXPECT_GT(resumed.recalled * 10, resumed.count * 9);
  ExpectAreMet(resumed.waits, resumed.count, walked.waits);
}

TEST_F(RememberedStacks, AreThoseOfAWalkInAPlainSystemCall) { ExpectSamePlaces(&UnixSocket); }

TEST_F(RememberedStacks, AreThoseOfAWalkOutOfASoftInterrupt) { ExpectSamePlaces(&LoopbackSocket); }

// Both are at the same places, and their CPU remembers the stacks of either.
TEST_F(RememberedStacks, AreThoseOfTwoProcessesOnOneCpu) {
  cpu_set_t before;
  cpu_set_t one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const Players players(UnixSocket());
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  const Places remembered = Record(players, {.resumes = false});
  ASSERT_GT(remembered.count, 500u);
  EXPECT_GT(remembered.recalled * 10, remembered.count * 18);
}

// Functions that differ in nothing but their address, so that all of them call the next
// one with the same stack pointer.
template <int kPath>
[[gnu::noinline]] void Nap() {
  usleep(20);
  asm volatile("" ::"i"(kPath) : "memory");
}

void NapOnEveryPath() {
  Nap<0>();
  Nap<1>();
  Nap<2>();
  Nap<3>();
  Nap<4>();
  Nap<5>();
}

TEST_F(RememberedStacks, AreToldApartWhereSeveralPathsLeadToOnePlace) {
  const Players players(&NapOnEveryPath);
  const Places walked = Record(players, {.remember = false});
  const Places remembered = Record(players, {});
  ASSERT_GT(walked.count, 500u);
  ASSERT_GT(remembered.count, 500u);
  EXPECT_EQ(walked.walks.recalled, 0u);
  EXPECT_GT(remembered.walks.recalled * 10, remembered.count * 8);
  EXPECT_EQ(Frequent(remembered.waits, remembered.count).size(), 6u);
  EXPECT_EQ(Frequent(remembered.waits, remembered.count), Frequent(walked.waits, walked.count));
}

// Frames of many sizes: what tells a stack is read in several pieces, some of one word.
template <int kDepth>
[[gnu::noinline]] void NapFarDown() {
  constexpr int kBytes = kDepth % 11 == 10 ? 6000 : 8 + 56 * (kDepth % 9);
  volatile char frame[kBytes];
  asm volatile("" ::"r"(frame) : "memory");
  if constexpr (kDepth == 0) {
    usleep(20);
  } else {
    NapFarDown<kDepth - 1>();
  }
  asm volatile("" ::"r"(frame), "i"(kDepth) : "memory");
}
template <int kPath>
[[gnu::noinline]] void NapBelow() {
  NapFarDown<44>();
  asm volatile("" ::"i"(kPath) : "memory");
}
void NapBelowTwo() {
  NapBelow<0>();
  NapBelow<1>();
}

TEST_F(RememberedStacks, AreToldApartByAWordThatIsFarFromTheOthers) {
  const Players players(&NapBelowTwo);
  const Places walked = Record(players, {.remember = false});
  const Places remembered = Record(players, {});
  ASSERT_GT(walked.count, 500u);
  ASSERT_GT(remembered.count, 500u);
  EXPECT_EQ(walked.walks.recalled, 0u);
  EXPECT_GT(remembered.walks.recalled * 10, remembered.count * 8);
  EXPECT_EQ(Frequent(remembered.waits, remembered.count).size(), 2u);
  EXPECT_EQ(Frequent(remembered.waits, remembered.count), Frequent(walked.waits, walked.count));
}

// Again and again there is one too many, so all are forgotten, and none is missing.
TEST_F(RememberedStacks, AreToldAgainWhenTheyWereTooMany) {
  const Players players(&NapOnEveryPath);
  for (const Way& way : {Way{}, Way{.prove = true, .direct_reads = true}, Way{.min_wait_ns = 1}}) {
    Way few = way;
    few.max_stacks = 4;
    const Places places = Record(players, few);
    ASSERT_GT(places.count, 500u);
    EXPECT_EQ(places.stacks.undefined, 0u);
    EXPECT_GT(places.stacks.defined, 100u);
    EXPECT_EQ(Frequent(places.waits, places.count).size(), 6u);
    EXPECT_FALSE(places.wakings.contains(""));
  }
}

void NapBesideASleeper() {
  static const std::thread sleeper([] {
    while (true) usleep(50'000);
  });
  NapOnEveryPath();
}

// What was told is forgotten two ticks later, so that a stack taken when the wait began is not
// known any more when it ends.
TEST_F(RememberedStacks, OfAWaitThatOutlastsThemAreTakenAgain) {
  if (!ProgramChoices({}).front().resumes) {
    GTEST_SKIP() << "this kernel does not tell when a switch is over (sched_exit_tp)";
  }
  const Players players(&NapBesideASleeper);
  const Places places = Record(players, {.max_stacks = 4});
  ASSERT_GT(places.count, 500u);
  EXPECT_GT(places.stacks.defined, 100u);
  EXPECT_EQ(places.stacks.undefined, 0u);
}

volatile uint64_t counted = 0;

template <int kDepth>
[[gnu::noinline]] void CountDeepDown() {
  if constexpr (kDepth == 0) {
    for (int i = 0; i < 20'000; ++i) counted = counted + 1;
  } else {
    CountDeepDown<kDepth - 1>();
    asm volatile("" ::"i"(kDepth) : "memory");
  }
}

void CountOnTwoPaths() {
  CountDeepDown<16>();
  CountDeepDown<12>();
}

TEST_F(RememberedStacks, ThatAreOnlyTheOuterPartAreThoseOfAWalk) {
  const Players players(&CountOnTwoPaths);
  const Places walked = Record(players, {.remember = false, .sample_period_ns = 500'000});
  const Places remembered = Record(players, {.sample_period_ns = 500'000});
  ASSERT_GT(walked.sample_count, 100u);
  ASSERT_GT(remembered.sample_count, 100u);
  EXPECT_EQ(walked.walks.joined, 0u);
  EXPECT_GT(remembered.walks.joined * 2, remembered.walks.walked);
  EXPECT_EQ(Frequent(remembered.samples, remembered.sample_count).size(), 2u);
  EXPECT_EQ(Frequent(remembered.samples, remembered.sample_count),
            Frequent(walked.samples, walked.sample_count));
}

// Whether frame pointers are kept from here to the start of the process.
#if defined(__aarch64__)
constexpr bool kKeepsFramePointers = true;
#else
constexpr bool kKeepsFramePointers = false;
#endif

void ExpectMostAreProven(const UnwindCounters& walks) {
  if (kKeepsFramePointers) {
    EXPECT_GT(walks.proven * 10, walks.walked * 8);
  }
  EXPECT_GE(walks.complete * 100, walks.walked * 99);
}

TEST_F(RememberedStacks, ByProvenFramePointersAreThoseOfAWalk) {
  const Players players(&NapOnEveryPath);
  const Places walked = Record(players, {.remember = false, .prove = true});
  const Places proven = Record(players, {.prove = true});
  ASSERT_GT(walked.count, 500u);
  ASSERT_GT(proven.count, 500u);
  EXPECT_EQ(walked.walks.proven, 0u);
  ExpectMostAreProven(proven.walks);
  EXPECT_EQ(Frequent(proven.waits, proven.count).size(), 6u);
  EXPECT_EQ(Frequent(proven.waits, proven.count), Frequent(walked.waits, walked.count));
}

// A leaf is in another place each time, and has no frame.
TEST_F(RememberedStacks, ByProvenFramePointersAreThoseOfAWalkBelowAnyLeaf) {
  const Players players(&CountOnTwoPaths);
  const Places walked = Record(players, {.remember = false, .sample_period_ns = 500'000});
  const Places proven = Record(players, {.prove = true, .sample_period_ns = 500'000});
  ASSERT_GT(walked.sample_count, 100u);
  ASSERT_GT(proven.sample_count, 100u);
  ExpectMostAreProven(proven.walks);
  EXPECT_EQ(Frequent(proven.samples, proven.sample_count).size(), 2u);
  EXPECT_EQ(Frequent(proven.samples, proven.sample_count),
            Frequent(walked.samples, walked.sample_count));
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
