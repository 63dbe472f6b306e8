// SPDX-License-Identifier: Apache-2.0
//
// culprit watch from end to end: a server that is not known is learnt, guarded and
// recorded; slow units planted in it become traces of a corpus with fast ones
// beside them, and the inbox names the fault.
#include "base/program.h"
#include "base/test_folder.h"
#include "guard_server_load.h"

namespace culprit::TEST_FILE {
namespace {

using nlohmann::json;

json Culprit(std::vector<std::string> words) {
  words.insert(words.begin(), CULPRIT_BINARY);
  const auto output = RunProgram(words, std::chrono::minutes(2));
  EXPECT_TRUE(output.ok());
  return output.ok() ? json::parse(output.value().out, nullptr, false) : json();
}

TEST(Watch, ASlowUnitBecomesANamedFinding) {
  SKIP_WITHOUT_RUNTIME();
  if (geteuid() != 0) GTEST_SKIP() << "recording needs root";
  const TestFolder folder;
  const std::string socket = folder / "socket";
  const std::string state = folder / "state";
  Background watch(std::string(CULPRIT_BINARY) + " watch --train-for 8s --flight 5s --state " +
                       state + " --sample-every 20 -- env LAUNCHED=1 " + GuardServer() + " loop " +
                       socket,
                   folder / "out", folder / "err");
  Load load(socket);
  for (int i = 0; i < 600 && FileText(folder / "err").find("watching process") == std::string::npos;
       ++i) {
    usleep(100'000);
  }
  ASSERT_NE(FileText(folder / "err").find("watching process"), std::string::npos)
      << FileText(folder / "err");
  // The recorder needs a moment before it remembers anything.
  usleep(2'000'000);
  {
    const Client client(socket);
    ASSERT_TRUE(client.connected());
    EXPECT_TRUE(client.Ask('A', 200));
    usleep(6'000'000);
    EXPECT_TRUE(client.Ask('A', 200));
    usleep(2'000'000);
  }
  watch.Signal(SIGTERM);
  load.Stop();
  ASSERT_TRUE(watch.Wait(120).has_value()) << FileText(folder / "err");
  if (FileText(folder / "err").find("recorder ended") != std::string::npos) {
    GTEST_SKIP() << "this machine does not permit recording";
  }

  EXPECT_NE(FileText(folder / "err").find("PlantedSpin"), std::string::npos)
      << FileText(folder / "err");
  const std::string said = FileText(folder / "err");
  const size_t costs = said.find("watching costs: guards ");
  ASSERT_NE(costs, std::string::npos) << said;
  EXPECT_NE(said.find("; budget 3.0 % of the program's CPU time", costs), std::string::npos);
  EXPECT_EQ(said.find("recorder unknown", costs), std::string::npos) << said;
  const json traces = Culprit({"corpus", "list", state + "/corpus", "--json"});
  ASSERT_TRUE(traces.contains("traces")) << FileText(folder / "err");
  ASSERT_GE(traces["traces"].size(), 1u) << FileText(folder / "err");
  // The slow unit and ordinary ones of the same trace.
  EXPECT_GE(traces["traces"][0]["instances"].get<uint64_t>(), 10u);
  const json inbox = json::parse(FileText(state + "/inbox.json"), nullptr, false);
  ASSERT_TRUE(inbox.contains("items")) << FileText(state + "/analysis.log");
  std::string frames;
  for (const json& item : inbox["items"]) {
    EXPECT_EQ(item["standing"], "new");
    frames += item["common"].dump() + item["chain"].dump();
  }
  EXPECT_NE(frames.find("PlantedSpin"), std::string::npos) << inbox.dump(2);
  EXPECT_TRUE(std::filesystem::is_empty(state + "/dumps"));
}

// Waits until a file has the text; false after two minutes.
bool Says(const std::string& path, const std::string& text) {
  for (int i = 0; i < 1200; ++i) {
    if (FileText(path).find(text) != std::string::npos) return true;
    usleep(100'000);
  }
  return false;
}

TEST(Watch, AKilledOneIsFollowedByTheNext) {
  SKIP_WITHOUT_RUNTIME();
  if (geteuid() != 0) GTEST_SKIP() << "recording needs root";
  const TestFolder folder;
  const std::string socket = folder / "socket";
  const std::string state = folder / "state";
  Background server(GuardServer() + " loop " + socket, folder / "server.out",
                    folder / "server.err");
  Load load(socket);
  usleep(500'000);
  const std::string watch = std::string(CULPRIT_BINARY) + " watch --train-for 6s --state " + state +
                            " --attach " + std::to_string(server.pid());
  {
    Background first(watch, folder / "out1", folder / "err1");
    ASSERT_TRUE(Says(folder / "err1", "watching process")) << FileText(folder / "err1");
    first.Signal(SIGKILL);
    first.Wait(30);
  }
  // What it had dumped and not taken in.
  std::filesystem::create_directories(state + "/dumps");
  ASSERT_TRUE(RunProgram({CULPRIT_BINARY, "synth", "--traces", "1", "-o", folder / "synth"},
                         std::chrono::minutes(1))
                  .ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder / "synth/traces")) {
    if (entry.path().extension() != ".ctrace") continue;
    std::filesystem::copy_file(entry.path(), state + "/dumps/9-1.ctrace");
  }
  Background second(watch, folder / "out2", folder / "err2");
  ASSERT_TRUE(Says(folder / "err2", "watching process")) << FileText(folder / "err2");
  EXPECT_NE(FileText(folder / "err2").find("a watch that was killed"), std::string::npos);
  EXPECT_EQ(FileText(folder / "err2").find("learning"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(state + "/dumps/9-1.ctrace"));
  const json traces = Culprit({"corpus", "list", state + "/corpus", "--json"});
  ASSERT_TRUE(traces.contains("traces"));
  EXPECT_EQ(traces["traces"][0]["name"], "left-9-1");
  second.Signal(SIGTERM);
  ASSERT_TRUE(second.Wait(120).has_value()) << FileText(folder / "err2");
  const Client client(socket);
  EXPECT_TRUE(client.Ask('A'));
}

TEST(Watch, ASecondOneOfTheSameFolderIsRefused) {
  SKIP_WITHOUT_RUNTIME();
  const TestFolder folder;
  const std::string state = folder / "state";
  Background first(std::string(CULPRIT_BINARY) + " watch --comm no-such-program --state " + state,
                   folder / "out", folder / "err");
  for (int i = 0; i < 100 && !std::filesystem::exists(state + "/lock"); ++i) usleep(100'000);
  const auto second = RunProgram(
      {CULPRIT_BINARY, "watch", "--comm", "no-such-program", "--state", state, "--for", "1s"},
      std::chrono::seconds(30));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().code, 1);
  EXPECT_NE(second.value().err.find("another watch"), std::string::npos) << second.value().err;
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(30).value_or(-1), 0);
}

}  // namespace
}  // namespace culprit::TEST_FILE
