// SPDX-License-Identifier: Apache-2.0
#include "record/cpu_samples.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <map>

namespace culprit::record::TEST_FILE {
namespace {

constexpr uint64_t kCodeBytes = 256;  // of the function below, at most

extern "C" [[gnu::noinline]] void CpuSamplesTestSpins() {
  volatile uint64_t sum = 0;
  while (true) sum = sum + 1;
}

// Nearly all of its time is the kernel's.
void CallTheKernel() {
  while (true) syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, nullptr, nullptr);
}

class Child {
 public:
  explicit Child(void (*work)()) : pid_(fork()) {
    if (pid_ != 0) return;
    work();
    _exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

using Places = std::map<uint64_t, uint64_t>;  // samples by address

// Of that process, until there are so many.
Places PlacesOf(CpuSamples& samples, pid_t pid, uint64_t wanted) {
  Places places;
  uint64_t count = 0;
  for (int round = 0; round < 2000 && count < wanted; ++round) {
    usleep(5000);
    samples.Take([&](int64_t whose, uint64_t program_counter) {
      if (whose != pid) return;
      ++count;
      ++places[program_counter];
    });
  }
  EXPECT_GE(count, wanted);
  return places;
}

class CpuSamplesTest : public testing::Test {
 protected:
  CpuSamplesTest() : samples_(CpuSamples::Open(997)) {}
  void SetUp() override {
    if (!samples_.ok()) GTEST_SKIP() << samples_.error().ToString();
    samples_.value().Sample(true);
  }
  CpuSamples& samples() { return samples_.value(); }

 private:
  Result<CpuSamples> samples_;
};

TEST_F(CpuSamplesTest, AreWhereAThreadRuns) {
  const Child child(&CpuSamplesTestSpins);
  const auto code = reinterpret_cast<uint64_t>(&CpuSamplesTestSpins);
  uint64_t inside = 0, all = 0;
  for (const auto& [place, count] : PlacesOf(samples(), child.pid(), 100)) {
    all += count;
    if (place >= code && place - code < kCodeBytes) inside += count;
  }
  EXPECT_GE(inside, all * 9 / 10);
}

TEST_F(CpuSamplesTest, AreWhereASystemCallWasMade) {
  const Child child(&CallTheKernel);
  for (const auto& [place, count] : PlacesOf(samples(), child.pid(), 100)) {
    EXPECT_LT(place, uint64_t{1} << 56) << "an address of the kernel";
  }
}

TEST_F(CpuSamplesTest, ThereAreNoneWhileItIsOff) {
  const Child child(&CpuSamplesTestSpins);
  PlacesOf(samples(), child.pid(), 10);
  samples().Sample(false);
  samples().Take([](int64_t, uint64_t) {});
  usleep(50'000);
  uint64_t count = 0;
  samples().Take([&](int64_t, uint64_t) { ++count; });
  EXPECT_EQ(count, 0u);
  samples().Sample(true);
  PlacesOf(samples(), child.pid(), 10);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
