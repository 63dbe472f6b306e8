// SPDX-License-Identifier: Apache-2.0
//
// culprit guard from end to end: programs are trained under a load, run again with
// guards, and slow units planted in them are reported with the right type and a
// stack that names the fault; a normal load reports nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "cli/shell_run.h"
#include "guard_server_load.h"

namespace culprit::TEST_FILE {
namespace {

using cli::RunShell;
using nlohmann::json;

constexpr int64_t kMs = 1'000'000;

class GuardServerTest : public testing::TestWithParam<std::string> {
 protected:
  std::string Socket() const { return folder_ / "socket"; }
  std::string Profile() const { return folder_ / "server.cguard"; }

  void Train() {
    Background culprit(std::string(CULPRIT_BINARY) + " guard train --for 10s --trace-for 3s -o " +
                           Profile() + " -- " + GuardServer() + " " + GetParam() + " " + Socket(),
                       folder_ / "out", folder_ / "err");
    Load load(Socket());
    const std::optional<int> code = culprit.Wait(120);
    load.Stop();
    ASSERT_TRUE(code.has_value()) << FileText(folder_ / "err");
    ASSERT_EQ(*code, 0) << FileText(folder_ / "out") << FileText(folder_ / "err");
    EXPECT_GT(load.requests(), 100u);
  }

  // Runs with guards while `work` drives it; gives the reports.
  std::vector<json> Guard(const std::function<void()>& work, const std::string& flags = "") {
    Background culprit(std::string(CULPRIT_BINARY) + " guard run " + Profile() + " --json " +
                           flags + " -- " + GuardServer() + " " + GetParam() + " " + Socket(),
                       folder_ / "out", folder_ / "err");
    work();
    culprit.Signal(SIGTERM);
    EXPECT_TRUE(culprit.Wait(60).has_value());
    notes_ = FileText(folder_ / "err");
    std::vector<json> lines = Lines(folder_ / "out");
    EXPECT_FALSE(lines.empty()) << notes_;
    if (lines.empty()) return lines;
    summary_ = lines.back();
    lines.pop_back();
    EXPECT_EQ(summary_["state"], "summary");
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), IsOfANewSlowUnit), summary_["slow_units"])
        << summary_ << json(lines);
    return lines;
  }

  // One that hung is reported once more when it ends.
  static bool IsOfANewSlowUnit(const json& report) { return report["state"] != "hung"; }

  const TestFolder folder_;
  std::string notes_;
  json summary_;
};

std::string AllFrames(const json& report) {
  std::string text;
  for (const json& stack : report["stacks"]) {
    for (const json& frame : stack["frames"]) text += frame["frame"].get<std::string>() + " ";
  }
  return text;
}

// The report of the planted fault: long enough, and with its frame.
const json* Planted(const std::vector<json>& reports, const std::string& frame, int64_t wall_ns) {
  for (const json& report : reports) {
    if (report["state"] != "summary" && report["wall_ns"].get<int64_t>() >= wall_ns &&
        AllFrames(report).find(frame) != std::string::npos) {
      return &report;
    }
  }
  return nullptr;
}

TEST_P(GuardServerTest, ReportsPlantedFaultsWithTypeAndStack) {
  SKIP_WITHOUT_RUNTIME();
  ASSERT_NO_FATAL_FAILURE(Train());
  const json profile =
      json::parse(RunShell(std::string(CULPRIT_BINARY) + " guard show --json " + Profile()).text);
  ASSERT_FALSE(profile["loops"].empty());
  EXPECT_GE(profile["types"].size(), 3u) << profile["types"];

  // Workers that find their next request without a wait have a unit for each all the same.
  const int at_once = GetParam() == "workers" ? 50'000 : 0;
  uint64_t requests = 0;
  const std::vector<json> reports = Guard([&] {
    Load load(Socket());
    const Client client(Socket());
    ASSERT_TRUE(client.connected());
    usleep(500'000);
    if (at_once > 0) {
      EXPECT_TRUE(client.Ask('P', at_once));
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(client.Ask('A', 200));
      EXPECT_TRUE(client.Ask('B', 200));
      EXPECT_TRUE(client.Ask('C', 200));
    }
    usleep(300'000);
    load.Stop();
    requests = load.requests();
  });
  EXPECT_GE(summary_["units"].get<double>() * 1.01, static_cast<double>(requests) + at_once)
      << notes_;
  const json* spin = Planted(reports, "PlantedSpin", 150 * kMs);
  ASSERT_NE(spin, nullptr) << notes_ << json(reports);
  EXPECT_GT((*spin)["cpu_ns"].get<int64_t>(), (*spin)["blocked_ns"].get<int64_t>()) << *spin;
  const json* sleep = Planted(reports, "PlantedSleep", 150 * kMs);
  ASSERT_NE(sleep, nullptr) << notes_ << json(reports);
  EXPECT_GT((*sleep)["blocked_ns"].get<int64_t>(), 150 * kMs) << *sleep;
  EXPECT_NE((*spin)["type"], (*sleep)["type"]) << "sorting and searching are not one type";
}

TEST_P(GuardServerTest, IsSilentUnderTheLoadItWasTrainedWith) {
  SKIP_WITHOUT_RUNTIME();
  if (GetParam() == "workers") {
    GTEST_SKIP()
        << "where CPUs are short, a worker without one holds the lock: that is slow indeed";
  }
  ASSERT_NO_FATAL_FAILURE(Train());
  uint64_t requests = 0;
  const std::vector<json> reports = Guard([&] {
    Load load(Socket());
    usleep(5'000'000);
    load.Stop();
    requests = load.requests();
    if (GetParam() != "threads") return;
    // Threads whose clients have gone, as none did in training, wait for longer than a unit
    // may hang, and are given others.
    usleep(2'500'000);
    Load others(Socket());
    usleep(500'000);
  });
  EXPECT_GT(requests, 100u);
  for (const json& report : reports) EXPECT_LT(report["wall_ns"].get<int64_t>(), 1000 * kMs);
  // Other programs share the machine: one unit in a thousand may have had a page
  // or a disk taken away.
  EXPECT_LE(reports.size(), requests / 1000) << json(reports);
}

INSTANTIATE_TEST_SUITE_P(Modes, GuardServerTest,
                         testing::Values("loop", "workers", "fork", "threads"),
                         [](const auto& mode) { return mode.param; });

TEST(GuardTest, AttachesToARunningServerAndLeavesIt) {
  SKIP_WITHOUT_RUNTIME();
  if (geteuid() != 0) GTEST_SKIP() << "attaching needs root or a permissive ptrace_scope";
  const TestFolder folder;
  const std::string socket = folder / "socket";
  Background server(GuardServer() + " loop " + socket, folder / "o", folder / "e");
  const Client client(socket);
  ASSERT_TRUE(client.connected());
  const std::string pid = std::to_string(server.pid());
  const std::string binary = CULPRIT_BINARY;
  const auto idle = RunShell(binary + " guard train --attach " + pid + " --for 1s -o " +
                             (folder / "idle.cguard"));
  EXPECT_EQ(idle.code, 1) << idle.text;
  EXPECT_NE(idle.text.find("train under load"), std::string::npos) << idle.text;
  {
    // What was logged then is logged again.
    Load load(socket);
    const auto trained = RunShell(binary + " guard train --attach " + pid +
                                  " --for 10s --trace-for 3s -o " + (folder / "a.cguard"));
    ASSERT_EQ(trained.code, 0) << trained.text;
  }
  ASSERT_TRUE(client.Ask('A')) << "it goes on without guards";
  Background culprit(
      binary + " guard attach " + (folder / "a.cguard") + " " + pid + " --json --for 6s",
      folder / "out", folder / "err");
  {
    Load load(socket);
    usleep(1'500'000);
    ASSERT_TRUE(client.Ask('C', 200));
  }
  EXPECT_EQ(culprit.Wait(60), 0) << FileText(folder / "err");
  EXPECT_NE(Planted(Lines(folder / "out"), "PlantedSleep", 150 * kMs), nullptr)
      << FileText(folder / "out") << FileText(folder / "err");
  EXPECT_TRUE(client.Ask('B')) << "and goes on after it";
}

// Which may then neither open what it wrote as root nor look at itself in /proc; and on x86-64
// code cannot be patched while threads run, unless they are held or it has been patched before.
TEST(GuardTest, KnowsAServerWithThreadsThatLeftItsUser) {
  SKIP_WITHOUT_RUNTIME();
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TestFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  const std::string socket = folder / "socket";
  const std::string profile = folder / "a.cguard";
  const std::string server = GuardServer() + " threads " + socket + " 65534";
  const std::string binary = CULPRIT_BINARY;
  {
    Background culprit(
        binary + " guard train --for 8s --trace-for 2s -o " + profile + " -- " + server,
        folder / "out", folder / "err");
    Load load(socket);
    ASSERT_EQ(culprit.Wait(120), 0) << FileText(folder / "out") << FileText(folder / "err");
    load.Stop();
    EXPECT_GT(load.requests(), 4000u);
  }
  EXPECT_EQ(FileText(folder / "err").find("were lost"), std::string::npos)
      << FileText(folder / "err");
  const json learned = json::parse(RunShell(binary + " guard show --json " + profile).text);
  uint64_t samples = 0;
  for (const json& type : learned["types"]) {
    samples += type["samples"].get<uint64_t>();
    if (type["trained_units"] >= 500) {
      EXPECT_GE(type["samples"], 500) << type;
    }
  }
  EXPECT_GT(samples, 3000u);

  Background running(server, folder / "o", folder / "e");
  const Client client(socket);
  ASSERT_TRUE(client.connected());
  Load load(socket);
  usleep(300'000);
  Background culprit(binary + " guard attach " + profile + " " + std::to_string(running.pid()) +
                         " --json --for 5s",
                     folder / "out", folder / "err");
  usleep(3'500'000);
  // A thread's first unit begins behind a wait that began with guards.
  EXPECT_TRUE(client.Ask('A'));
  EXPECT_TRUE(client.Ask('C', 200));
  EXPECT_EQ(culprit.Wait(60), 0) << FileText(folder / "err");
  load.Stop();
  const std::string notes = FileText(folder / "err");
  EXPECT_NE(notes.find("functions patched"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("cannot be"), std::string::npos) << notes;
  EXPECT_EQ(notes.find(" records\n"), std::string::npos) << notes;
  EXPECT_NE(Planted(Lines(folder / "out"), "PlantedSleep", 150 * kMs), nullptr)
      << FileText(folder / "out") << notes;
}

TEST(GuardTest, RefusesWhatItCannotGuardBeforeStartingIt) {
  const TestFolder folder;
  const std::string binary = CULPRIT_BINARY;
  const auto missing = RunShell(binary + " guard train -o " + (folder / "p") + " -- no-such-thing");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.text.find("no-such-thing"), std::string::npos) << missing.text;
  const auto text = RunShell(binary + " guard train -o " + (folder / "p") + " -- " +
                             folder.Write("text", "hello"));
  EXPECT_EQ(text.code, 1);
  const auto none = RunShell(binary + " guard detach 1");
  EXPECT_EQ(none.code, 1) << none.text;
  const auto both = RunShell(binary + " guard train --attach 1 -- true");
  EXPECT_EQ(both.code, 1) << both.text;
}

// The shell is traced, too, before it becomes the server in the same process.
TEST(GuardTest, TrainsTheProgramThatALauncherBecomes) {
  SKIP_WITHOUT_RUNTIME();
  const TestFolder folder;
  const std::string socket = folder / "socket";
  const std::string profile = folder / "p.cguard";
  Background culprit(std::string(CULPRIT_BINARY) + " guard train --for 5s --trace-for 3s -o " +
                         profile + " -- sh -c 'sleep 0.5; exec " + GuardServer() + " loop " +
                         socket + "'",
                     folder / "out", folder / "err");
  Load load(socket);
  const std::optional<int> code = culprit.Wait(120);
  load.Stop();
  const std::string notes = FileText(folder / "err");
  ASSERT_EQ(code, 0) << FileText(folder / "out") << notes;
  EXPECT_EQ(notes.find("no unit was measured"), std::string::npos) << notes;
  EXPECT_NE(notes.find("guard_server ..."), std::string::npos) << "what is to be run: " << notes;
  const json shown =
      json::parse(RunShell(std::string(CULPRIT_BINARY) + " guard show --json " + profile).text);
  uint64_t samples = 0;
  for (const json& type : shown["types"]) samples += type["samples"].get<uint64_t>();
  EXPECT_GT(samples, 100u);
}

TEST(GuardTest, SaysHowAProgramEndedThatTaughtNothing) {
  SKIP_WITHOUT_RUNTIME();
  const TestFolder folder;
  const auto ended = RunShell(std::string(CULPRIT_BINARY) + " guard train -o " + (folder / "p") +
                              " -- bash -c 'exit 3'");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.text.find("bash: "), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("ended after "), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("with exit code 3"), std::string::npos) << ended.text;
}

// ---- servers of the distribution

TEST(GuardTest, ReportsTheQuadraticWatchOfRedis) {
  SKIP_WITHOUT_RUNTIME();
  if (!cli::HasProgram("redis-server") || !cli::HasProgram("redis-benchmark")) {
    GTEST_SKIP() << "redis is not installed";
  }
  const TestFolder folder;
  const std::string socket = folder / "redis.sock";
  const std::string server = "redis-server --port 0 --unixsocket " + socket +
                             " --save '' --appendonly no --dir " + folder.path();
  const std::string load = "redis-benchmark -s " + socket +
                           " -c 8 -n 10000 -q -t set,get,incr,lpush,rpop,sadd,hset,zadd";
  const std::string wait = "for i in $(seq 300); do redis-cli -s " + socket +
                           " ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done; ";
  const std::string binary = CULPRIT_BINARY;
  {
    Background culprit(binary + " guard train --for 25s --trace-for 6s -o " +
                           (folder / "redis.cguard") + " -- " + server,
                       folder / "out", folder / "err");
    RunShell(wait + "while redis-cli -s " + socket +
             " ping 2>/dev/null | grep -q PONG; do timeout 30 " + load + " >/dev/null; done");
    const std::optional<int> code = culprit.Wait(180);
    ASSERT_TRUE(code.has_value());
    ASSERT_EQ(*code, 0) << FileText(folder / "out") << FileText(folder / "err");
  }
  Background culprit(binary + " guard run --json " + (folder / "redis.cguard") + " -- " + server,
                     folder / "out", folder / "err");
  const auto watched = RunShell(wait + "timeout 30 " + load +
                                " >/dev/null; { printf WATCH; seq -f ' k%.0f' -s '' 10000; "
                                "echo; } | timeout 60 redis-cli -s " +
                                socket);
  EXPECT_NE(watched.text.find("OK"), std::string::npos) << watched.text;
  culprit.Signal(SIGTERM);
  ASSERT_TRUE(culprit.Wait(60).has_value());
  const std::vector<json> reports = Lines(folder / "out");
  EXPECT_NE(Planted(reports, "watchForKey", kMs), nullptr)
      << json(reports) << FileText(folder / "err");
}

TEST(GuardTest, GuardsTheWorkersOfNginx) {
  SKIP_WITHOUT_RUNTIME();
  if (!cli::HasProgram("nginx") || !cli::HasProgram("wrk")) {
    GTEST_SKIP() << "nginx and wrk are not installed";
  }
  const TestFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  std::string page;
  for (int i = 0; i < 200; ++i) page += "a line of a page\n";
  folder.Write("index.html", page);
  const std::string f = folder.path();
  constexpr int kPort = 17491;
  const std::string config = folder.Write(
      "nginx.conf", "daemon off; worker_processes 2; pid " + f + "/pid; error_log " + f +
                        "/log;\nevents { worker_connections 64; }\nhttp { access_log off;\n"
                        "client_body_temp_path " +
                        f + "/b; proxy_temp_path " + f + "/p; fastcgi_temp_path " + f +
                        "/f; uwsgi_temp_path " + f + "/u; scgi_temp_path " + f +
                        "/s;\nserver { listen 127.0.0.1:" + std::to_string(kPort) + "; root " + f +
                        "; } }\n");
  const std::string server = "nginx -p " + f + " -c " + config;
  const std::string url = "http://127.0.0.1:" + std::to_string(kPort) + "/index.html";
  const std::string wait = "for i in $(seq 300); do wrk -t1 -c1 -d1s " + url +
                           " 2>/dev/null | grep -q requests && break; sleep 0.1; done; ";
  const std::string binary = CULPRIT_BINARY;
  {
    Background culprit(binary + " guard train --for 15s --trace-for 4s -o " +
                           (folder / "nginx.cguard") + " -- " + server,
                       folder / "out", folder / "err");
    // Until the training ends: how long it learns depends on what else the machine does.
    const Background load(
        "sh -c '" + wait + "while :; do wrk -t1 -c4 -d2s " + url + " || sleep 0.1; done'",
        folder / "load", folder / "load_err");
    const std::optional<int> code = culprit.Wait(120);
    ASSERT_TRUE(code.has_value());
    ASSERT_EQ(*code, 0) << FileText(folder / "out") << FileText(folder / "err");
  }
  const json profile =
      json::parse(RunShell(binary + " guard show --json " + (folder / "nginx.cguard")).text);
  EXPECT_FALSE(profile["loops"].empty());
  EXPECT_FALSE(profile["types"].empty());
  Background culprit(binary + " guard run --json " + (folder / "nginx.cguard") + " -- " + server,
                     folder / "out", folder / "err");
  const auto driven = RunShell(wait + "wrk -t1 -c4 -d4s " + url);
  EXPECT_EQ(driven.text.find("Non-2xx"), std::string::npos) << driven.text;
  culprit.Signal(SIGTERM);
  ASSERT_TRUE(culprit.Wait(60).has_value());
  const std::string notes = FileText(folder / "err");
  EXPECT_NE(notes.find("processes      3"), std::string::npos) << "master and workers: " << notes;
}

}  // namespace
}  // namespace culprit::TEST_FILE
