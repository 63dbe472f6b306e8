// SPDX-License-Identifier: Apache-2.0
//
// Functions of an interpreted program, as the interpreter's probes tell them, recorded
// for real; and the profile that is made of them.
#include <algorithm>
#include <map>

#include "recorded_program.h"
#include "symbol/usdt_notes.h"

namespace culprit::TEST_FILE {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

bool PythonHasProbes() {
  const auto elf = symbol::ElfFile::Open(kPython);
  if (!elf.ok()) return false;
  const auto probes = symbol::ReadUsdtProbes(elf.value());
  return std::any_of(probes.begin(), probes.end(), [](const symbol::UsdtProbe& probe) {
    return probe.provider == "python" && probe.name == "function__entry";
  });
}

#define SKIP_IF_PYTHON_TELLS_NOTHING() \
  SKIP_IF_IT_CANNOT_RECORD();          \
  if (!PythonHasProbes()) GTEST_SKIP() << kPython << " has no probes python:function__entry"

constexpr const char* kScript = R"(import os

def inner():
    os.getppid()

def middle():
    for _ in range(5):
        inner()
    os.getpgid(0)

def tired():
    yield os.getsid(0)
    raise RuntimeError

def outer():
    for _ in range(20):
        middle()
        try:
            list(tired())
        except RuntimeError:
            pass

outer()
)";

std::map<std::string, int> CallsByStack(const RecordedProgram& recorded, const std::string& file) {
  std::map<std::string, int> calls;
  for (const trace::Event& event : recorded.trace.events) {
    if (event.kind != trace::EventKind::kCall) continue;
    std::string text = recorded.trace.dictionary.StackText(event.stack);
    const size_t begin = text.find("py::outer:" + file);
    if (begin == std::string::npos) continue;
    text.erase(0, begin);
    for (const std::string& part : {":" + file, std::string("[jit]!py::"), std::string("py::")}) {
      for (size_t at = text.find(part); at != std::string::npos; at = text.find(part)) {
        text.erase(at, part.size());
      }
    }
    ++calls[text];
  }
  return calls;
}

TEST(RecordFunctions, CPythonTellsEveryCallWithItsCallers) {
  SKIP_IF_PYTHON_TELLS_NOTHING();
  const TestFolder folder;
  folder.Write("app.py", kScript);
  const std::string file = folder / "app.py";
  const std::map<std::string, int> expected = {// Begun, gone on with, and left by an exception.
                                               {"outer", 1},
                                               {"outer;middle", 20},
                                               {"outer;middle;inner", 100},
                                               {"outer;tired", 40}};
  std::map<std::string, int> calls;
  std::string notes;
  for (int attempt = 0; attempt < 3 && calls != expected; ++attempt) {
    const RecordedProgram recorded =
        RecordProgram(std::string(kPython) + " " + file, "--functions python");
    ASSERT_EQ(recorded.code, 0) << recorded.notes;
    calls = CallsByStack(recorded, file);
    notes = recorded.notes;
  }
  EXPECT_EQ(calls, expected) << notes;
}

TEST(RecordFunctions, AProfileKnowsWhichFunctionMakesWhichSystemCalls) {
  SKIP_IF_PYTHON_TELLS_NOTHING();
  const TestFolder folder;
  folder.Write("app.py", kScript);
  const std::string culprit = CULPRIT_BINARY;
  std::map<std::string, nlohmann::json> innermost;
  std::string notes;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const cli::ShellOutcome ran = cli::RunShell(
        culprit + " record --budget 0 --syscalls --functions python --force -o " +
        folder / "t.ctrace" + " -- " + kPython + " " + folder / "app.py" + " && " + culprit +
        " profile --force " + folder / "t.ctrace" + " -o " + folder / "app.cprof");
    ASSERT_EQ(ran.code, 0) << ran.text;
    notes = ran.text;
    const cli::ShellOutcome shown =
        cli::RunShell(culprit + " profile show --json " + folder / "app.cprof");
    const auto profile = nlohmann::json::parse(shown.text);
    innermost.clear();
    for (const nlohmann::json& function : profile["functions"]) {
      const std::string name = function["function"];
      const size_t end = name.find(":" + folder / "app.py");
      if (end != std::string::npos) {
        innermost[name.substr(name.find("py::"), end - name.find("py::"))] = function["innermost"];
      }
    }
    if (innermost["py::inner"] == nlohmann::json{{"getppid", 100}}) break;
  }
  EXPECT_EQ(innermost["py::inner"], nlohmann::json({{"getppid", 100}})) << notes;
  EXPECT_EQ(innermost["py::middle"]["getpgid"], 20);
  EXPECT_EQ(innermost["py::tired"]["getsid"], 20);
  EXPECT_FALSE(innermost["py::outer"].contains("getppid"));
}

TEST(RecordFunctions, AProgramWithoutProbesIsAnError) {
  SKIP_IF_IT_CANNOT_RECORD();
  const TestFolder folder;
  const std::string record = std::string(CULPRIT_BINARY) + " record -o " + folder / "t.ctrace ";
  const cli::ShellOutcome none = cli::RunShell(record + "--functions python -- /bin/true");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.text.find("no probes python:function__entry"), std::string::npos) << none.text;
  const cli::ShellOutcome unknown = cli::RunShell(record + "--functions cobol -- /bin/true");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.text.find("'cobol' is no runtime"), std::string::npos) << unknown.text;
}

TEST(RecordFunctions, SystemCallsCanBeRecordedWithoutStacks) {
  SKIP_IF_IT_CANNOT_RECORD();
  for (const bool plain : {false, true}) {
    const RecordedProgram recorded =
        RecordProgram("ls /usr > /dev/null; true",
                      std::string("--syscalls") + (plain ? " --no-syscall-stacks" : ""));
    size_t calls = 0;
    size_t with_stack = 0;
    for (const trace::Event& event : recorded.trace.events) {
      if (event.kind != trace::EventKind::kSyscall) continue;
      ++calls;
      if (event.stack.valid()) ++with_stack;
    }
    EXPECT_GT(calls, 20u);
    EXPECT_EQ(with_stack > 0, !plain);
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
