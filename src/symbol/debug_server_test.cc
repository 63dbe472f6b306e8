// SPDX-License-Identifier: Apache-2.0
#include "symbol/debug_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "symbol/elf_file.h"
#include "symbol/symbolizer.h"
#include "symbol/test_binary.h"

namespace culprit::symbol::TEST_FILE {
namespace {

using State = Download::State;

// A socket that listens on loopback and never answers.
class SilentServer {
 public:
  SilentServer() {
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd_, generic, size) == 0 && listen(fd_, 16) == 0 &&
        getsockname(fd_, generic, &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
  }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  ~SilentServer() { Close(); }
  int port() const { return port_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  int port_ = 0;
};

bool Answers(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool ok = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return ok;
}

// debuginfod over a folder, on a free port of loopback.
class LocalServer {
 public:
  explicit LocalServer(const TestBinary& files) {
    SilentServer probe;
    port_ = probe.port();
    probe.Close();
    pid_ = fork();
    if (pid_ == 0) {
      const std::string log = files.Path("server.log");
      if (freopen(log.c_str(), "w", stdout) == nullptr || dup2(1, 2) < 0) _exit(126);
      execlp("debuginfod", "debuginfod", "-p", std::to_string(port_).c_str(), "-d",
             files.Path("index.sqlite").c_str(), "-F", files.Path("served").c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 300 && !Answers(port_); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;
  ~LocalServer() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  pid_t pid_ = -1;
};

std::vector<Download> Fetch(const DebugServerOptions& options, std::vector<Download> wanted) {
  Progress progress;
  auto server = DebugServer::Start(options, std::move(wanted));
  if (!server.ok()) return {};
  return server.value().Wait(progress);
}

TEST(DebugServer, FilesComeByBuildIdFromARealServer) {
  TestBinary files;
  files.Write("p.c",
              "int twice(int x) { return 2 * x; }\nint main(int c, char** v) {\n"
              "  (void)v; return twice(c); }\n");
  if (!files.Works("command -v debuginfod && mkdir served && "
                   "cc -O0 -g -Wl,--build-id -o served/app p.c")) {
    GTEST_SKIP() << "no debuginfod or no compiler here";
  }
  const auto elf = ElfFile::Open(files.Path("served/app"));
  const uint64_t offset =
      elf.value().OffsetOfAddress(files.Functions("served/app")["twice"]).value_or(0) + 4;
  const std::string build_id = elf.value().build_id();
  const LocalServer server(files);
  const DebugServerOptions options{
      .urls = server.url(), .cache = files.Path("cache"), .max_time_ns = 20'000'000'000};
  // The server reads its folder in the background; an answer "unknown" is kept
  // by the client for a while, so each try has a cache of its own.
  std::vector<Download> got;
  DebugServerOptions each = options;
  for (int i = 0; i < 50; ++i) {
    each.cache = files.Path("cache" + std::to_string(i));
    got = Fetch(each, {{.build_id = build_id}, {.build_id = build_id, .debug = true}});
    ASSERT_EQ(got.size(), 2u);
    if (got[0].state == State::kHere && got[1].state == State::kHere) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  ASSERT_EQ(got[0].state, State::kHere) << got[0].why;
  ASSERT_EQ(got[1].state, State::kHere) << got[1].why;
  const ModuleKey gone = {.path = "/nowhere/app", .build_id = build_id};
  Symbolizer with({.debuginfod_cache = each.cache});
  EXPECT_EQ(with.Lookup(gone, offset, false).front().function, "twice");
  EXPECT_EQ(with.Lookup(gone, offset, false).front().line, 1u);
  Symbolizer without;
  EXPECT_EQ(without.Lookup(gone, offset, false).front().function, "");

  // The bound on bytes holds, and an id that nobody has is told apart.
  each.cache = files.Path("small");
  each.max_bytes = 100;
  got = Fetch(each, {{.build_id = build_id}, {.build_id = std::string(40, '7')}});
  EXPECT_EQ(got[0].state, State::kTooLarge);
  EXPECT_EQ(got[1].state, State::kUnknown);
}

TEST(DebugServer, AServerThatDoesNotAnswerCostsNoMoreThanTheTimeGiven) {
  const SilentServer silent;
  const TestBinary files;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Download> wanted;
  for (char c = '0'; c <= '9'; ++c) wanted.push_back({.build_id = std::string(40, c)});
  const auto got = Fetch({.urls = "http://127.0.0.1:" + std::to_string(silent.port()),
                          .cache = files.Path("cache"),
                          .max_time_ns = 2'000'000'000},
                         wanted);
  if (got.empty()) GTEST_SKIP() << "no libdebuginfod here";
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took, std::chrono::seconds(30));
  for (const Download& download : got) EXPECT_NE(download.state, State::kHere);
  EXPECT_EQ(got.back().state, State::kTooLate);
}

TEST(DebugServer, WithoutServersThereIsNothingToAsk) {
  unsetenv("DEBUGINFOD_URLS");
  const auto server = DebugServer::Start({}, {});
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().hint.find("DEBUGINFOD_URLS"), std::string::npos);
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
