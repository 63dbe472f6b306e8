// SPDX-License-Identifier: Apache-2.0
//
// What the tests of guards and of the watch share: a program in the background,
// and clients of tests/programs/guard_server.cc that ask for all its kinds of
// work. For tests only.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace culprit {

inline bool RuntimeIsThere() {
  const std::filesystem::path binary = CULPRIT_BINARY;
  return std::filesystem::exists(binary.parent_path() / "libculprit_guard.so");
}

#define SKIP_WITHOUT_RUNTIME() \
  if (!RuntimeIsThere()) GTEST_SKIP() << "the guard runtime is not built"

// A program in the background; what it prints goes to files.
class Background {
 public:
  Background(const std::string& command, const std::string& out, const std::string& err) {
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      execl("/bin/sh", "sh", "-c", ("exec " + command + " >" + out + " 2>" + err).c_str(), nullptr);
      _exit(127);
    }
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void Signal(int number) const { kill(pid_, number); }
  pid_t pid() const { return pid_; }
  // Nothing if it does not end in time.
  std::optional<int> Wait(int seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      usleep(10'000);
    }
    return std::nullopt;
  }

 private:
  pid_t pid_ = -1;
};

inline std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<nlohmann::json> Lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
    if (!parsed.is_discarded()) lines.push_back(parsed);
  }
  return lines;
}

// Of tests/programs/guard_server.cc.
class Client {
 public:
  explicit Client(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    for (int i = 0; i < 3000; ++i) {
      fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return;
      close(fd_);
      fd_ = -1;
      usleep(10'000);
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (fd_ >= 0) close(fd_);
  }

  bool connected() const { return fd_ >= 0; }
  bool Ask(char kind, int late_ms = 0) const {
    const std::string line = std::string(1, kind) + " " + std::to_string(late_ms) + "\n";
    char answer[64];
    return send(fd_, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size()) &&
           read(fd_, answer, sizeof(answer)) > 0;
  }

 private:
  int fd_ = -1;
};

// Three clients that ask for everything in turn until they are stopped.
class Load {
 public:
  explicit Load(const std::string& socket) {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this, socket, i] {
        const Client client(socket);
        if (!client.connected()) return;
        for (int n = i; !stop_.load(); ++n) {
          if (!client.Ask("ABC"[n % 3])) return;
          ++requests_;
          usleep(300);
        }
      });
    }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  uint64_t requests() const { return requests_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> requests_ = 0;
  std::vector<std::thread> threads_;
};

inline std::string GuardServer() { return std::string(CULPRIT_PROGRAMS) + "/guard_server"; }

}  // namespace culprit
