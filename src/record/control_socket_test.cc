// SPDX-License-Identifier: Apache-2.0
#include "record/control_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace culprit::record::TEST_FILE {
namespace {

TEST(ControlSocket, AnswersOneLineWithOne) {
  Result<ControlSocket> control = ControlSocket::Listen();
  ASSERT_TRUE(control.ok()) << control.error().ToString();
  std::atomic<bool> done = false;
  std::string heard;
  std::thread server([&] {
    while (!done) {
      control.value().Serve([&](std::string_view request) {
        heard = request;
        return std::string("ok path");
      });
      usleep(1000);
    }
  });
  const auto running = FindRecorders();
  const auto self = std::find_if(running.begin(), running.end(),
                                 [](const RunningRecorder& r) { return r.pid == getpid(); });
  ASSERT_TRUE(self != running.end());
  const Result<std::string> answer = Ask(*self, "dump");
  done = true;
  server.join();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value(), "ok path");
  EXPECT_EQ(heard, "dump");
}

TEST(ControlSocket, IsGoneWithItsOwner) {
  std::string path;
  {
    const Result<ControlSocket> control = ControlSocket::Listen();
    ASSERT_TRUE(control.ok());
    path = control.value().path();
    EXPECT_EQ(access(path.c_str(), F_OK), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(ControlSocket, MarksSurviveTheWay) {
  const std::string request = FormatMark({.time_ns = 123, .pid = 45, .text = "B|45|a name"});
  MarkRequest mark;
  ASSERT_TRUE(ParseMark(request, mark));
  EXPECT_EQ(mark.time_ns, 123);
  EXPECT_EQ(mark.pid, 45);
  EXPECT_EQ(mark.text, "B|45|a name");
  for (const char* bad : {"", "mark", "mark 1", "mark 1 2", "mark x 2 y", "mark 1 -2 y", "dump"}) {
    EXPECT_FALSE(ParseMark(bad, mark)) << bad;
  }
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
