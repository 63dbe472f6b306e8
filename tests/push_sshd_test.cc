// SPDX-License-Identifier: Apache-2.0
// culprit push over a real sshd on loopback: its own port, keys and configuration in
// a folder of the test. Skipped where OpenSSH or rsync is not installed, or where this
// user's account may not log in.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/program.h"
#include "base/shell_word.h"
#include "base/test_folder.h"

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;

constexpr char kPrivilegeSeparation[] = "/run/sshd";

// The path of a program, also of those for administrators; empty: not installed.
std::string FindProgram(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"}) {
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  return {};
}

// One that was free a moment ago.
int FreePort() {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = bind(probe, any, size) == 0 && getsockname(probe, any, &size) == 0;
  close(probe);
  return bound ? ntohs(address.sin_port) : 0;
}

class PushOverSsh : public testing::Test {
 protected:
  void SetUp() override {
    sshd_ = FindProgram("sshd");
    for (const char* name : {"sshd", "ssh", "ssh-keygen", "rsync"}) {
      if (FindProgram(name).empty()) GTEST_SKIP() << name << " is not installed";
    }
    port_ = FreePort();
    ASSERT_NE(port_, 0);
    MakeKeys();
    WriteConfigurations();
    ASSERT_TRUE(StartServer());
    const ProgramOutput login = Shell("exit 7");
    if (login.code != 7) {
      GTEST_SKIP() << "this user may not log in: " << login.err << FileText("sshd.log");
    }
    ASSERT_EQ(Run({"synth", "--traces", "4", "--seed", "8", "-o", folder_ / "from"}).code, 0);
  }

  void TearDown() override { StopServer(); }

  void MakeKeys() {
    for (const char* name : {"host_key", "user_key"}) {
      const auto made = RunProgram(
          {FindProgram("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder_ / name},
          std::chrono::seconds(30));
      ASSERT_TRUE(made.ok() && made.value().code == 0);
    }
  }

  void WriteConfigurations() {
    const std::string bin = fs::path(CULPRIT_BINARY).parent_path().string();
    folder_.Write("sshd_config",
                  "Port " + std::to_string(port_) + "\nListenAddress 127.0.0.1\nHostKey " +
                      (folder_ / "host_key") + "\nPidFile none\nAuthorizedKeysFile " +
                      (folder_ / "user_key.pub") +
                      "\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
                      "PermitRootLogin yes\nSetEnv PATH=" +
                      bin + ":/usr/bin:/bin\n");
    folder_.Write("ssh_config", "Host hub\n  HostName 127.0.0.1\n  Port " + std::to_string(port_) +
                                    "\n  IdentityFile " + (folder_ / "user_key") +
                                    "\n  IdentitiesOnly yes\n  StrictHostKeyChecking accept-new\n"
                                    "  UserKnownHostsFile " +
                                    (folder_ / "known_hosts") + "\n  ConnectTimeout 20\n");
    way_ = MakeWay("way", "exec " + Ssh() + " \"$@\"\n");
  }

  std::string Ssh() { return FindProgram("ssh") + " -F " + ShellWord(folder_ / "ssh_config"); }

  std::string MakeWay(const std::string& name, const std::string& body) {
    std::string path = folder_.Write(name, "#!/bin/sh\n" + body);
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  bool StartServer() {
    // As the service does, and left as it leaves it: another test's server may need it.
    std::error_code ignored;
    if (geteuid() == 0) fs::create_directory(kPrivilegeSeparation, ignored);
    auto started = RunningProgram::Start({sshd_, "-D", "-e", "-f", folder_ / "sshd_config"},
                                         folder_ / "sshd.log");
    if (!started.ok()) return false;
    server_.emplace(std::move(started).value());
    for (int round = 0; round < 300 && !server_->Poll(); ++round) {
      if (FileText("sshd.log").find("listening on") != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << FileText("sshd.log");
    return false;
  }

  void StopServer() {
    if (!server_) return;
    server_->Terminate();
    for (int round = 0; round < 100 && !server_->Poll(); ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    server_.reset();
    std::error_code ignored;
    fs::remove(folder_ / "sshd.log", ignored);
  }

  std::string FileText(const std::string& name) {
    const auto text = ReadWholeFile(folder_ / name);
    return text.ok() ? text.value() : "";
  }

  ProgramOutput Shell(const std::string& line) {
    auto output =
        RunProgram({way_, "-o", "BatchMode=yes", "--", "hub", line}, std::chrono::seconds(60));
    EXPECT_TRUE(output.ok());
    return output.ok() ? output.value() : ProgramOutput{.code = -1};
  }
  static ProgramOutput Run(std::vector<std::string> words) {
    words.insert(words.begin(), CULPRIT_BINARY);
    auto output = RunProgram(words, std::chrono::minutes(5));
    EXPECT_TRUE(output.ok());
    return output.ok() ? output.value() : ProgramOutput{.code = -1};
  }
  ProgramOutput Push(const std::string& way, const char* retries) {
    return Run({"push", "hub:" + (folder_ / "their fleet"), folder_ / "from", "--ssh", way,
                "--retries", retries, "--json"});
  }
  size_t TracesThere() {
    const ProgramOutput list = Run({"corpus", "list", folder_ / "their fleet", "--json"});
    const auto json = nlohmann::json::parse(list.out, nullptr, false);
    return json.contains("traces") ? json["traces"].size() : 0;
  }

  TestFolder folder_;
  std::string sshd_;
  std::string way_;
  int port_ = 0;
  std::optional<RunningProgram> server_;
};

TEST_F(PushOverSsh, SendsEachTraceOnce) {
  const ProgramOutput first = Push(way_, "0");
  ASSERT_EQ(first.code, 0) << first.err << FileText("sshd.log");
  EXPECT_EQ(nlohmann::json::parse(first.out)["sent"], 4);
  EXPECT_EQ(TracesThere(), 4u);
  const ProgramOutput again = Push(way_, "0");
  EXPECT_EQ(nlohmann::json::parse(again.out)["already_there"], 4);
  EXPECT_EQ(nlohmann::json::parse(again.out)["sent"], 0);
}

TEST_F(PushOverSsh, GoesOnAfterTheConnectionWasCut) {
  // The first transfer ends after so many bytes, as a lost connection would. dd, since
  // head would wait for all of them before it passed one on; timeout, since the
  // other side would wait for the rest longer than a test should.
  const std::string cut =
      MakeWay("cut", "if [ ! -e " + ShellWord(folder_ / "was cut") +
                         " ]; then\n  case \"$*\" in *rsync*--server*)\n    : >" +
                         ShellWord(folder_ / "was cut") +
                         "\n    dd bs=1 count=2000 2>/dev/null | timeout 3 " + Ssh() +
                         " \"$@\"\n    exit 255 ;;\n  esac\nfi\nexec " + Ssh() + " \"$@\"\n");
  const ProgramOutput output = Push(cut, "3");
  EXPECT_TRUE(fs::exists(folder_ / "was cut"));
  ASSERT_EQ(output.code, 0) << output.err << output.out;
  EXPECT_EQ(nlohmann::json::parse(output.out)["sent"], 4);
  EXPECT_EQ(TracesThere(), 4u);
}

TEST_F(PushOverSsh, LosesNothingWhileTheHostIsDown) {
  StopServer();
  EXPECT_EQ(Push(way_, "0").code, 1);
  ASSERT_TRUE(StartServer());
  const ProgramOutput output = Push(way_, "0");
  ASSERT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(TracesThere(), 4u);
}

}  // namespace
}  // namespace culprit::TEST_FILE
