// SPDX-License-Identifier: Apache-2.0
//
// Figure 1 of 003 (the browser tab that waits for two locks, a system worker and
// the disk behind each other), as `culprit show` draws it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "trace/conservation.h"
#include "trace/small_trace.h"

namespace culprit::cli::TEST_FILE {
namespace {

using nlohmann::json;
using trace::EventKind;
using trace::SmallTrace;

constexpr int64_t kMs = 1'000'000;

// Times in milliseconds.
class Figure1 : public testing::Test {
 protected:
  Figure1() : small_(0, 900 * kMs) {
    small_.Thread("Disk", trace::ThreadKind::kDevice);
    Run("UI", 0, 50, "Browser!TabCreate");
    Blocked("UI", 50, 840, "Browser!TabCreate;kernel!OpenFile;fv.sys!QueryFileTable",
            "kernel!AcquireLock", "W0");
    Run("UI", 840, 900, "Browser!TabCreate");
    Run("W0", 0, 30, "Browser!Worker");
    Blocked("W0", 30, 820, "Browser!Worker;kernel!CreateFile;fv.sys!QueryFileTable",
            "kernel!AcquireLock", "W1");
    Run("W0", 820, 900, "Browser!Worker;kernel!CreateFile;fv.sys!QueryFileTable");
    Run("W1", 0, 20, "Browser!Worker");
    Blocked("W1", 20, 800,
            "Browser!Worker;kernel!CreateFile;fv.sys!QueryFileTable;fs.sys!AcquireMDU",
            "kernel!RequireResource", "AV");
    Run("W1", 800, 900, "Browser!Worker;kernel!CreateFile;fv.sys!QueryFileTable");
    Run("AV", 0, 15, "AV!Worker");
    Blocked("AV", 15, 780, "AV!Worker;kernel!OpenFile;fs.sys!AcquireMDU", "kernel!RequireResource",
            "CM");
    Run("AV", 780, 900, "AV!Worker;kernel!OpenFile;fs.sys!AcquireMDU");
    Run("CM", 0, 10, "CM!Worker");
    Blocked("CM", 10, 760, "CM!Worker;kernel!OpenFile;fs.sys!AcquireMDU", "kernel!WaitForObject",
            "System");
    Run("CM", 760, 900, "CM!Worker;kernel!OpenFile;fs.sys!AcquireMDU");
    Run("System", 0, 60, "kernel!Worker;fs.sys!Read;se.sys!ReadDecrypt");
    Blocked("System", 60, 460, "kernel!Worker;fs.sys!Read;se.sys!ReadDecrypt", "", "Disk");
    Run("System", 460, 900, "kernel!Worker;fs.sys!Read;se.sys!ReadDecrypt");
    small_.Add(EventKind::kHardware, "Disk", 60 * kMs, 460 * kMs, "se.sys!ReadDecrypt").peer =
        small_.Thread("System");
    small_.AddInstance("BrowserTabCreate", "UI", 40 * kMs, 850 * kMs);
    // A CPU for everyone.
    for (trace::Event& event : small_.trace.events) {
      event.cpu = static_cast<uint16_t>(event.thread.value);
    }
    small_.trace.metadata.cpus = 8;
    trace::SortByTime(small_.trace.events);
    path_ = folder_ / "figure1.ctrace";
    EXPECT_TRUE(WriteTrace(small_.trace, path_, Overwrite::kAllow).ok());
  }

  void Run(const std::string& thread, int64_t from_ms, int64_t until_ms, const char* stack) {
    small_.Add(EventKind::kRunning, thread, from_ms * kMs, until_ms * kMs, stack);
  }
  // A waker releases the lock in the function that waits for it; only the system
  // worker answers from elsewhere.
  void Blocked(const std::string& thread, int64_t from_ms, int64_t until_ms,
               const std::string& stack, const std::string& leaf, const std::string& waker) {
    small_
        .Add(EventKind::kWait, thread, from_ms * kMs, until_ms * kMs,
             leaf.empty() ? stack : stack + ";" + leaf)
        .peer = small_.Thread(waker);
    if (waker == "Disk") return;
    const std::string where = waker == "System" ? "kernel!Worker;fs.sys!Read" : stack;
    small_.Add(EventKind::kUnwait, waker, until_ms * kMs, until_ms * kMs, where).peer =
        small_.Thread(thread);
  }
  std::string Show(const std::string& how, const std::string& as = "--path") {
    BufferOutput output;
    EXPECT_EQ(RunCulprit({"show", path_, "0", how, as}, output), 0) << output.err();
    return output.out();
  }

  TemporaryFolder folder_;
  SmallTrace small_;
  std::string path_;
};

TEST_F(Figure1, IsAWholeTrace) {
  const trace::ConservationReport report = trace::CheckConservation(small_.trace);
  EXPECT_TRUE(report.ok()) << report.first_problem;
}

TEST_F(Figure1, LanesShowTheDelayTravelUpFromTheDisk) {
  const std::string text = Show("--lanes");
  const size_t begin = text.find("UI (2)  ");
  const size_t end = text.find("\nwho owned the time");
  ASSERT_NE(begin, std::string::npos) << text;
  EXPECT_EQ(
      text.substr(begin, end - begin),
      "UI (2)      "
      "│██··················································································6█\n"
      "            │                                                                               "
      "     ↑\n"
      "W0 (3)      "
      "│··················································································5██▁\n"
      "            │                                                                               "
      "   ↑\n"
      "W1 (4)      "
      "│················································································4██▁▁▁\n"
      "            │                                                                               "
      " ↑\n"
      "AV (5)      "
      "│··············································································3██▁▁▁▁▁\n"
      "            │                                                                              "
      "↑\n"
      "CM (6)      "
      "│············································································2██▁▁▁▁▁▁▁\n"
      "            │                                                                            ↑\n"
      "System (7)  "
      "│▁██·········································1████████████████████████████████▁▁▁▁▁▁▁▁▁\n"
      "            │                                            ↑\n"
      "Disk        │  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓\n"
      "on the path █ runs ▒ ready ▓ device; off it ▁ runs : ready · waits; numbers: woken\n"
      "(1) +420 ms  Disk → System (7) waits [other]  se.sys!ReadDecrypt < fs.sys!Read, 400 ms\n"
      "(2) +720 ms  System (7) in fs.sys!Read → CM (6) waits [lock]  fs.sys!AcquireMDU < "
      "CM!Worker, 710 ms\n"
      "(3) +740 ms  CM (6) in fs.sys!AcquireMDU → AV (5) waits [lock]  fs.sys!AcquireMDU < "
      "AV!Worker, 730 ms\n"
      "(4) +760 ms  AV (5) in fs.sys!AcquireMDU → W1 (4) waits [lock]  fs.sys!AcquireMDU < "
      "fv.sys!QueryFileTable < Browser!Worker, 750 ms\n"
      "(5) +780 ms  W1 (4) in fv.sys!QueryFileTable → W0 (3) waits [lock]  fv.sys!QueryFileTable < "
      "Browser!Worker, 770 ms\n"
      "(6) +800 ms  W0 (3) in fv.sys!QueryFileTable → waits [lock]  fv.sys!QueryFileTable < "
      "Browser!TabCreate, 790 ms\n")
      << text;
}

TEST_F(Figure1, ThePathHasOneOwnerForEveryNanosecond) {
  const json shown = json::parse(Show("--json"));
  const json& account = shown["account"];
  EXPECT_EQ(account["hardware_ns"], 400 * kMs);
  EXPECT_EQ(account["running_ns"], 410 * kMs);
  EXPECT_EQ(account["unattributed_ns"], 0);
  std::vector<std::string> waits;
  for (const json& segment : shown["segments"]) {
    if (segment["kind"] == "wait") waits.push_back(segment["thread"]);
  }
  EXPECT_EQ(waits, (std::vector<std::string>{"UI (2)", "W0 (3)", "W1 (4)", "AV (5)", "CM (6)",
                                             "System (7)"}));
}

TEST_F(Figure1, TheGraphLeadsFromTheTabToTheDisk) {
  const json shown = json::parse(Show("--graph", "--json"));
  // From wait to wait: each has the next thread's wait among its children.
  const json& nodes = shown["nodes"];
  size_t at = shown["roots_begin"];
  while (nodes[at]["kind"] != "wait") ++at;
  std::vector<std::string> chain;
  for (bool found = true; found;) {
    chain.push_back(nodes[at]["thread"]);
    found = false;
    const size_t end = nodes[at]["children_end"];
    for (size_t i = nodes[at]["children_begin"]; i < end && !found; ++i) {
      found = nodes[i]["kind"] == "wait" || nodes[i]["kind"] == "hardware";
      if (found) at = i;
    }
  }
  EXPECT_EQ(chain, (std::vector<std::string>{"UI (2)", "W0 (3)", "W1 (4)", "AV (5)", "CM (6)",
                                             "System (7)", "Disk"}));
}

// Two waits that lead to the same node: the second edge is not of the tree.
TEST_F(Figure1, DotHasTheEdgesBesideTheTree) {
  const std::string dot = Show("--graph", "--dot");
  EXPECT_NE(dot.find(" -> "), std::string::npos);
  EXPECT_EQ(dot.find("dashed"), std::string::npos) << "a chain is a tree";
  SmallTrace fork(0, 100);
  fork.Add(EventKind::kWait, "ui", 0, 50, "a!f").peer = fork.Thread("x");
  fork.Add(EventKind::kWait, "ui", 50, 100, "a!f").peer = fork.Thread("y");
  fork.Add(EventKind::kWait, "x", 0, 40, "a!g").peer = fork.Thread("z");
  fork.Add(EventKind::kRunning, "x", 40, 100, "a!g");
  fork.Add(EventKind::kWait, "y", 0, 90, "a!h").peer = fork.Thread("z");
  fork.Add(EventKind::kRunning, "y", 90, 100, "a!h");
  fork.Add(EventKind::kRunning, "z", 0, 30, "a!i");
  fork.Add(EventKind::kRunning, "z", 30, 100, "a!j");
  fork.AddInstance("Fork", "ui", 0, 100);
  trace::SortByTime(fork.trace.events);
  ASSERT_TRUE(WriteTrace(fork.trace, path_, Overwrite::kAllow).ok());
  EXPECT_NE(Show("--graph", "--dot").find("[style=dashed]"), std::string::npos)
      << Show("--graph", "--dot");
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
