// SPDX-License-Identifier: Apache-2.0
#include "guard/remote_call.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include "guard/proc_file.h"
#include "guard/remote_thread_stack.h"
#include "symbol/symbolizer.h"

namespace culprit::guard::TEST_FILE {
namespace {

uint64_t Address(const void* function) { return reinterpret_cast<uint64_t>(function); }

// What a child and its parent both see.
struct Shared {
  std::atomic<int> ready = 0;
  std::atomic<int> done = 0;
  std::atomic<int64_t> result = 0;
  std::atomic<int> error = 0;
  std::atomic<int> go = 0;
  std::atomic<int> stop = 0;
};

// A forked process: the same code at the same addresses.
class Child {
 public:
  explicit Child(const std::function<void(Shared&, int fd)>& work) {
    shared_ = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (shared_) Shared;
    event_ = eventfd(0, 0);
    pid_ = fork();
    if (pid_ == 0) {
      work(*shared_, event_);
      _exit(0);
    }
    while (shared_->ready.load() == 0) usleep(1000);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(event_);
    munmap(shared_, sizeof(Shared));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void WaitUntilAsleep() const {
    for (int i = 0; i < 5000; ++i) {
      const auto place = ReadSystemCallPlace(pid_, pid_);
      if (place.ok() && !place.value().running && place.value().number >= 0) return;
      usleep(1000);
    }
    FAIL() << "the child does not sleep";
  }
  void Wake() const {
    const uint64_t one = 1;
    ASSERT_EQ(write(event_, &one, sizeof(one)), 8);
  }
  bool WaitUntilDone() const {
    for (int i = 0; i < 5000 && shared_->done.load() == 0; ++i) usleep(1000);
    return shared_->done.load() != 0;
  }
  pid_t pid() const { return pid_; }
  Shared& shared() const { return *shared_; }

 private:
  Shared* shared_;
  int event_;
  pid_t pid_;
};

void WaitByEpoll(Shared& shared, int fd) {
  const int epoll = epoll_create1(0);
  epoll_event event = {.events = EPOLLIN, .data = {}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  shared.ready = 1;
  shared.result = epoll_wait(epoll, &event, 1, -1);
  shared.error = errno;
  shared.done = 1;
}

void WaitByPoll(Shared& shared, int fd) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  shared.ready = 1;
  shared.result = poll(&waiting, 1, 60'000);
  shared.error = errno;
  shared.done = 1;
}

Result<uint64_t> CallInside(const Child& child, uint64_t function,
                            const std::vector<uint64_t>& arguments, const std::string& text = {}) {
  CULPRIT_ASSIGN(const SystemCallPlace before, ReadSystemCallPlace(child.pid(), child.pid()));
  CULPRIT_ASSIGN(ThreadStop stop, ThreadStop::Stop(child.pid(), child.pid()));
  const RemoteMapping mapping = {.mmap = Address(reinterpret_cast<void*>(&mmap)),
                                 .munmap = Address(reinterpret_cast<void*>(&munmap))};
  CULPRIT_ASSIGN(RemoteCall call, RemoteCall::Begin(child.pid(), stop, before, mapping));
  std::vector<uint64_t> all = arguments;
  if (!text.empty()) {
    CULPRIT_ASSIGN(const uint64_t address, call.PutText(text));
    all.insert(all.begin(), address);
  }
  Result<uint64_t> result = call.Call(function, all);
  CULPRIT_TRY(call.Finish());
  return result;
}

// Uses floating point, vectors, and a good part of a stack.
extern "C" uint64_t GuardTestSum(const char* text, uint64_t add) {
  volatile char room[64 * 1024];
  for (size_t i = 0; i < sizeof(room); i += 4096) room[i] = static_cast<char>(i);
  volatile double sum = 0;
  for (const char* c = text; *c != 0; ++c) sum = sum + *c * 1.5;
  return static_cast<uint64_t>(sum / 1.5) + add + static_cast<uint64_t>(room[0]);
}

extern "C" uint64_t GuardTestNever() {
  while (true) pause();
}

TEST(RemoteCall, ReturnsWhatTheFunctionReturns) {
  const Child child(WaitByPoll);
  child.WaitUntilAsleep();
  const auto pid = CallInside(child, Address(reinterpret_cast<void*>(&getpid)), {});
  ASSERT_TRUE(pid.ok()) << pid.error().ToString();
  EXPECT_EQ(pid.value(), static_cast<uint64_t>(child.pid()));
  const auto sum =
      CallInside(child, Address(reinterpret_cast<void*>(&GuardTestSum)), {1000}, "abc");
  ASSERT_TRUE(sum.ok()) << sum.error().ToString();
  EXPECT_EQ(sum.value(), 1000u + 'a' + 'b' + 'c');
}

TEST(RemoteCall, LeavesAWaitThatAStopWouldFailAsItWas) {
  for (const auto& wait : {WaitByEpoll, WaitByPoll}) {
    const Child child(wait);
    for (int i = 0; i < 20; ++i) {
      child.WaitUntilAsleep();
      ASSERT_TRUE(CallInside(child, Address(reinterpret_cast<void*>(&getpid)), {}).ok());
    }
    EXPECT_EQ(child.shared().done.load(), 0) << "error " << child.shared().error.load();
    child.Wake();
    ASSERT_TRUE(child.WaitUntilDone());
    EXPECT_EQ(child.shared().result.load(), 1);
  }
}

TEST(RemoteCall, KeepsTheSignalMaskAndPassesSignalsOn) {
  const Child child([](Shared& shared, int) {
    static Shared* told = nullptr;
    told = &shared;
    signal(SIGUSR1, [](int) { told->result = 7; });
    shared.ready = 1;
    pollfd none = {.fd = -1, .events = 0, .revents = 0};
    while (shared.result.load() != 7) poll(&none, 1, 60'000);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, nullptr, &mask);
    shared.error = sigismember(&mask, SIGUSR1);
    shared.done = 1;
  });
  child.WaitUntilAsleep();
  {
    const auto before = ReadSystemCallPlace(child.pid(), child.pid());
    auto stop = ThreadStop::Stop(child.pid(), child.pid());
    ASSERT_TRUE(before.ok() && stop.ok());
    const RemoteMapping mapping = {.mmap = Address(reinterpret_cast<void*>(&mmap)),
                                   .munmap = Address(reinterpret_cast<void*>(&munmap))};
    auto call = RemoteCall::Begin(child.pid(), stop.value(), before.value(), mapping);
    ASSERT_TRUE(call.ok());
    kill(child.pid(), SIGUSR1);
    ASSERT_TRUE(call.value().Call(Address(reinterpret_cast<void*>(&getpid)), {}).ok());
    EXPECT_EQ(child.shared().result.load(), 0) << "a handler ran inside the call";
    ASSERT_TRUE(call.value().Finish().ok());
  }
  ASSERT_TRUE(child.WaitUntilDone());
  EXPECT_EQ(child.shared().result.load(), 7);
  EXPECT_EQ(child.shared().error.load(), 0);
}

TEST(RemoteCall, GivesUpOnACallThatDoesNotReturn) {
  const Child child(WaitByEpoll);
  child.WaitUntilAsleep();
  {
    const auto before = ReadSystemCallPlace(child.pid(), child.pid());
    auto stop = ThreadStop::Stop(child.pid(), child.pid());
    ASSERT_TRUE(before.ok() && stop.ok());
    const RemoteMapping mapping = {.mmap = Address(reinterpret_cast<void*>(&mmap)),
                                   .munmap = Address(reinterpret_cast<void*>(&munmap))};
    auto call = RemoteCall::Begin(child.pid(), stop.value(), before.value(), mapping);
    ASSERT_TRUE(call.ok());
    EXPECT_FALSE(call.value().Call(Address(reinterpret_cast<void*>(&GuardTestNever)), {}, 50).ok());
    EXPECT_TRUE(call.value().Finish().ok());
  }
  child.Wake();
  ASSERT_TRUE(child.WaitUntilDone());
  EXPECT_EQ(child.shared().result.load(), 1);
}

TEST(ThreadStop, FindsTheEndOfAnEventWaitOfAThreadThatNeverSleeps) {
  const Child child([](Shared& shared, int fd) {
    const uint64_t one = 1;
    shared.ready = write(fd, &one, sizeof(one)) == 8 ? 1 : 0;  // it stays readable
    uint64_t rounds = 0;
    while (shared.stop.load() == 0) {
      pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, -1) != 1) shared.error = 1;
      ++rounds;
    }
    shared.result = static_cast<int64_t>(rounds);
    shared.done = 1;
  });
  for (int i = 0; i < 20; ++i) {
    auto stop = ThreadStop::Stop(child.pid(), child.pid());
    ASSERT_TRUE(stop.ok()) << stop.error().ToString();
    const Status status = stop.value().RunUntilEventWaitEnds(2000);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    SystemCallPlace none;
    none.running = true;
    const RemoteMapping mapping = {.mmap = Address(reinterpret_cast<void*>(&mmap)),
                                   .munmap = Address(reinterpret_cast<void*>(&munmap))};
    auto call = RemoteCall::Begin(child.pid(), stop.value(), none, mapping);
    ASSERT_TRUE(call.ok()) << call.error().ToString();
    ASSERT_TRUE(call.value().Call(Address(reinterpret_cast<void*>(&getpid)), {}).ok());
    ASSERT_TRUE(call.value().Finish().ok());
  }
  child.shared().stop = 1;
  ASSERT_TRUE(child.WaitUntilDone());
  EXPECT_EQ(child.shared().error.load(), 0);
  EXPECT_GT(child.shared().result.load(), 0);
}

// A parent of vfork comes to no stop before its child has ended.
TEST(ThreadStop, LetsGoOfAThreadThatStopsOnlyMuchLater) {
  const Child child([](Shared& shared, int) {
    if (vfork() == 0) {  // NOLINT(clang-analyzer-security.insecureAPI.vfork): it is the case
      shared.ready = 1;
      timespec rest = {.tv_sec = 1, .tv_nsec = 700'000'000};
      syscall(SYS_nanosleep, &rest, nullptr);
      _exit(0);
    }
    shared.done = 1;
    while (true) pause();
  });
  EXPECT_FALSE(ThreadStop::Stop(child.pid(), child.pid()).ok());
  EXPECT_EQ(ProcStatusField(child.pid(), "TracerPid"), "0");
  ASSERT_TRUE(child.WaitUntilDone()) << ProcStatusField(child.pid(), "State");
}

// ---- stacks from outside

// Empty if there is no stack.
std::vector<NamedFrame> FramesBy(const ProcessImage& image, const Child& child) {
  RemoteThreadStack stacks;
  const auto stack = stacks.Take(child.pid(), child.pid(), image);
  if (!stack.ok()) return {};
  symbol::Symbolizer symbolizer;
  return NameFrames(stack.value().addresses, true, image, symbolizer);
}

bool Name(const std::vector<NamedFrame>& frames, const std::string& function) {
  return std::any_of(frames.begin(), frames.end(), [&](const NamedFrame& frame) {
    return frame.function.find(function) != std::string::npos;
  });
}

bool Names(const Child& child, const std::string& function) {
  const auto image = ProcessImage::Read(child.pid());
  return image.ok() && Name(FramesBy(image.value(), child), function);
}

extern "C" [[gnu::noinline]] void GuardTestSpins(Shared& shared) {
  while (shared.stop.load() == 0) shared.result.fetch_add(1);
}
extern "C" [[gnu::noinline]] void GuardTestSleeps(Shared& shared, int fd) {
  WaitByEpoll(shared, fd);
  shared.done = 2;
}

// Frames come and go all the time, each with other contents.
extern "C" [[gnu::noinline]] int64_t GuardTestFalls(Shared& shared, int64_t depth) {
  volatile int64_t frame[32];
  for (int i = 0; i < 32; ++i) frame[i] = depth * i;
  if (depth > 0) frame[depth % 32] = GuardTestFalls(shared, depth - 1);
  return frame[depth % 32] + shared.stop.load();
}
// Writes over what they leave behind.
extern "C" [[gnu::noinline]] int64_t GuardTestScribbles(Shared& shared) {
  volatile int64_t frame[2048];
  for (int i = 0; i < 2048; ++i) frame[i] = i + shared.stop.load();
  return frame[7];
}
extern "C" [[gnu::noinline]] void GuardTestRisesAndFalls(Shared& shared) {
  while (shared.stop.load() == 0) {
    for (int again = 0; again < 40; ++again) shared.result += GuardTestFalls(shared, 20);
    shared.result += GuardTestScribbles(shared);
  }
}

TEST(RemoteThreadStack, OfARunningThreadIsOfOneMoment) {
  const Child child([](Shared& shared, int) {
    shared.ready = 1;
    GuardTestRisesAndFalls(shared);
    shared.done = 1;
  });
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(Names(child, "GuardTestRisesAndFalls")) << i;
}

TEST(RemoteThreadStack, NamesWhereARunningThreadIs) {
  const Child child([](Shared& shared, int) {
    shared.ready = 1;
    GuardTestSpins(shared);
    shared.done = 1;
  });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Names(child, "GuardTestSpins"));
  const int64_t before = child.shared().result.load();
  usleep(20'000);
  EXPECT_GT(child.shared().result.load(), before) << "it goes on afterwards";
}

// A function made now, with a frame: calls its first argument with its second.
using CallsAnother = void (*)(void (*)(Shared&), Shared&);
CallsAnother MakeCaller() {
#if defined(__x86_64__)
  const uint8_t code[] = {0x55,              // push %rbp
                          0x48, 0x89, 0xe5,  // mov %rsp, %rbp
                          0x48, 0x89, 0xf8,  // mov %rdi, %rax
                          0x48, 0x89, 0xf7,  // mov %rsi, %rdi
                          0xff, 0xd0,        // call *%rax
                          0x5d,              // pop %rbp
                          0xc3};             // ret
#else
  const uint32_t code[] = {0xa9bf7bfd,   // stp x29, x30, [sp, #-16]!
                           0x910003fd,   // mov x29, sp
                           0xaa0003e2,   // mov x2, x0
                           0xaa0103e0,   // mov x0, x1
                           0xd63f0040,   // blr x2
                           0xa8c17bfd,   // ldp x29, x30, [sp], #16
                           0xd65f03c0};  // ret
#endif
  auto* place = static_cast<char*>(
      mmap(nullptr, sizeof(code), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memcpy(place, code, sizeof(code));
  mprotect(place, sizeof(code), PROT_READ | PROT_EXEC);
  __builtin___clear_cache(place, place + sizeof(code));
  return reinterpret_cast<CallsAnother>(place);
}

extern "C" [[gnu::noinline]] void GuardTestUsesNewCode(Shared& shared) {
  MakeCaller()(GuardTestSpins, shared);
  shared.done = 1;
}

TEST(RemoteThreadStack, GoesOnThroughCodeThatWasMadeSinceTheImageWasRead) {
  const Child child([](Shared& shared, int) {
    shared.ready = 1;
    while (shared.go.load() == 0) usleep(1000);
    GuardTestUsesNewCode(shared);
  });
  const auto image = ProcessImage::Read(child.pid());
  ASSERT_TRUE(image.ok());
  child.shared().go = 1;
  for (int i = 0; i < 5000 && child.shared().result.load() == 0; ++i) usleep(1000);
  const std::vector<NamedFrame> frames = FramesBy(image.value(), child);
  EXPECT_TRUE(Name(frames, "GuardTestSpins"));
  EXPECT_TRUE(Name(frames, "GuardTestUsesNewCode"));
  EXPECT_EQ(std::count_if(frames.begin(), frames.end(),
                          [](const NamedFrame& frame) { return frame.module.empty(); }),
            1);
}

TEST(RemoteThreadStack, NamesWhereAThreadSleepsWithoutTouchingIt) {
  const Child child([](Shared& shared, int fd) { GuardTestSleeps(shared, fd); });
  child.WaitUntilAsleep();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Names(child, "GuardTestSleeps"));
  EXPECT_EQ(child.shared().done.load(), 0);
  child.Wake();
  ASSERT_TRUE(child.WaitUntilDone());
  EXPECT_EQ(child.shared().result.load(), 1);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
