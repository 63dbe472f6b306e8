// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/wait_question.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace culprit::guard::runtime::TEST_FILE {
namespace {

using wire::WaitCall;

template <class T>
long AsWord(T* pointer) {
  return static_cast<long>(reinterpret_cast<intptr_t>(pointer));
}

TEST(WaitQuestion, ATimeoutOfZeroNeverBlocks) {
  const WaitSpec epoll = {"epoll_wait", WaitCall::kEpoll, WaitShape::kTimeoutMs3};
  EXPECT_TRUE(MayBlock(epoll, {{3, 0, 10, -1, 0, 0}}));
  EXPECT_TRUE(MayBlock(epoll, {{3, 0, 10, 5, 0, 0}}));
  EXPECT_FALSE(MayBlock(epoll, {{3, 0, 10, 0, 0, 0}}));
  // Only the low half of the register belongs to an int.
  EXPECT_FALSE(MayBlock(epoll, {{3, 0, 10, 0x700000000, 0, 0}}));
  const WaitSpec select = {"pselect", WaitCall::kSelect, WaitShape::kTimespec4};
  timespec zero = {};
  timespec some = {0, 1};
  EXPECT_FALSE(MayBlock(select, {{1, 0, 0, 0, AsWord(&zero), 0}}));
  EXPECT_TRUE(MayBlock(select, {{1, 0, 0, 0, AsWord(&some), 0}}));
  EXPECT_TRUE(MayBlock(select, {{1, 0, 0, 0, 0, 0}}));
}

TEST(WaitQuestion, ANonBlockingDescriptorOrCallNeverBlocks) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const WaitSpec receive = {"recv", WaitCall::kReceive, WaitShape::kReceiveFlags3};
  EXPECT_TRUE(MayBlock(receive, {{ends[0], 0, 0, 0, 0, 0}}));
  EXPECT_FALSE(MayBlock(receive, {{ends[0], 0, 0, MSG_DONTWAIT, 0, 0}}));
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  errno = 42;
  EXPECT_FALSE(MayBlock(receive, {{ends[0], 0, 0, 0, 0, 0}}));
  EXPECT_FALSE(MayBlock(receive, {{-1, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(errno, 42);
  close(ends[0]);
  close(ends[1]);
}

TEST(WaitQuestion, BothEndsOfAPipeAreOneObject) {
  int a[2];
  int b[2];
  ASSERT_EQ(pipe(a), 0);
  ASSERT_EQ(pipe(b), 0);
  bool on_disk = true;
  bool wakes = false;
  EXPECT_EQ(ObjectOfFd(a[0], on_disk, wakes), ObjectOfFd(a[1], on_disk, wakes));
  EXPECT_TRUE(wakes);
  EXPECT_FALSE(on_disk);
  EXPECT_NE(ObjectOfFd(a[0], on_disk, wakes), ObjectOfFd(b[0], on_disk, wakes));
  const int event = eventfd(0, 0);
  const int other = eventfd(0, 0);
  EXPECT_NE(ObjectOfFd(event, on_disk, wakes), ObjectOfFd(other, on_disk, wakes));
  EXPECT_TRUE(wakes);
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ObjectOfFd(file, on_disk, wakes);
  EXPECT_TRUE(on_disk);
  EXPECT_FALSE(wakes);
  const int internet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ObjectOfFd(internet, on_disk, wakes);
  EXPECT_FALSE(wakes);
  for (const int fd : {a[0], a[1], b[0], b[1], event, other, file, internet}) close(fd);
}

TEST(WaitQuestion, ReadyEventsAreWhatCame) {
  EXPECT_EQ(ReadyEvents({"poll", WaitCall::kPoll, WaitShape::kTimeoutMs2}, 7), 7u);
  EXPECT_EQ(ReadyEvents({"poll", WaitCall::kPoll, WaitShape::kTimeoutMs2}, 0), 0u);
  EXPECT_EQ(ReadyEvents({"poll", WaitCall::kPoll, WaitShape::kTimeoutMs2}, -1), 0u);
  EXPECT_EQ(ReadyEvents({"read", WaitCall::kRead, WaitShape::kRead}, 0), 1u);
  EXPECT_EQ(ReadyEvents({"read", WaitCall::kRead, WaitShape::kRead}, -1), 0u);
  EXPECT_EQ(ReadyEvents({"accept", WaitCall::kAccept, WaitShape::kAccept}, 0), 1u);
  EXPECT_EQ(ReadyEvents({"wait", WaitCall::kCondition, WaitShape::kConditionTimed}, ETIMEDOUT), 0u);
  EXPECT_EQ(ReadyEvents({"wait", WaitCall::kCondition, WaitShape::kCondition}, 0), 1u);
  EXPECT_EQ(ReadyEvents({"usleep", WaitCall::kSleep, WaitShape::kSleep}, 0), 0u);
  EXPECT_EQ(ReadyEvents({"waitpid", WaitCall::kChild, WaitShape::kChildOptions2}, 0), 0u);
}

TEST(WaitQuestion, BytesReadAreCountedForReadsAlone) {
  EXPECT_EQ(BytesRead({"read", WaitCall::kRead, WaitShape::kRead}, {}, 12), 12u);
  EXPECT_EQ(BytesRead({"read", WaitCall::kRead, WaitShape::kRead}, {}, -1), 0u);
  EXPECT_EQ(BytesRead({"accept", WaitCall::kAccept, WaitShape::kAccept}, {}, 12), 0u);
  mmsghdr messages[2] = {};
  messages[0].msg_len = 5;
  messages[1].msg_len = 6;
  const CallArguments arguments = {{0, AsWord(messages), 2, 0, 0, 0}};
  EXPECT_EQ(BytesRead({"recvmmsg", WaitCall::kReceive, WaitShape::kReceiveMany}, arguments, 2),
            11u);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
