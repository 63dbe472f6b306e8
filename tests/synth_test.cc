// SPDX-License-Identifier: Apache-2.0
//
// culprit synth from outside: the built program makes corpora, their bytes and
// their truth are checked from the files alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/shell_run.h"
#include "corpus/corpus.h"
#include "trace/trace_reader.h"

namespace culprit::TEST_FILE {
namespace {

namespace fs = std::filesystem;
using cli::RunShell;
using cli::ShellOutcome;
using cli::TemporaryFolder;

ShellOutcome Culprit(const std::string& arguments) {
  return RunShell(std::string(CULPRIT_BINARY) + " " + arguments);
}

std::map<std::string, std::string> TraceBytes(const std::string& corpus) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(corpus + "/traces")) {
    if (entry.path().extension() != ".ctrace") continue;
    files[entry.path().filename().string()] = ReadWholeFile(entry.path().string()).value();
  }
  return files;
}

nlohmann::json TruthOf(const std::string& corpus) {
  return nlohmann::json::parse(ReadWholeFile(corpus + "/truth.json").value());
}

bool Contains(const trace::Dictionary& dictionary, trace::StackId stack,
              const std::vector<std::string>& pattern) {
  size_t found = 0;
  for (trace::FrameId frame : dictionary.StackFrames(stack)) {
    if (found < pattern.size() && dictionary.FrameName(frame) == pattern[found]) ++found;
  }
  return found == pattern.size();
}

TEST(Synth, SameSeedGivesTheSameBytesWhateverTheJobs) {
  const TemporaryFolder folder;
  const std::string options = "synth --traces 6 --dur 3s --seed 7 -o " + folder.path();
  ASSERT_EQ(Culprit(options + "/one --jobs 1").code, 0);
  ASSERT_EQ(Culprit(options + "/four --jobs 4").code, 0);
  const auto one = TraceBytes(folder.path() + "/one");
  EXPECT_EQ(one.size(), 6u);
  EXPECT_TRUE(one == TraceBytes(folder.path() + "/four"));
  EXPECT_EQ(ReadWholeFile(folder.path() + "/one/truth.json").value(),
            ReadWholeFile(folder.path() + "/four/truth.json").value());
  ASSERT_EQ(Culprit("synth --traces 6 --dur 3s --seed 8 -o " + folder.path() + "/other").code, 0);
  EXPECT_FALSE(one == TraceBytes(folder.path() + "/other"));
}

TEST(Synth, TruthIsWhatANaiveReaderFindsInTheFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c";
  ASSERT_EQ(Culprit("synth --traces 5 -o " + path).code, 0);
  const nlohmann::json truth = TruthOf(path);
  EXPECT_EQ(truth["traces"], 5);
  ASSERT_EQ(truth["bugs"].size(), 9u);
  const corpus::Corpus corpus = corpus::Corpus::Open(path).value();
  std::vector<trace::Trace> traces;
  std::vector<std::string> names;
  const std::vector<corpus::TraceRow> rows = corpus.List().value();
  for (const corpus::TraceRow& row : rows) {
    traces.push_back(trace::ReadTrace(corpus.TracePath(row)).value());
    names.push_back(row.name);
    EXPECT_TRUE(traces.back().diagnostics.empty());
    EXPECT_TRUE(traces.back().metadata.has_switches);
  }
  ASSERT_EQ(traces.size(), 5u);
  for (const nlohmann::json& bug : truth["bugs"]) {
    const auto pattern = bug["pattern"].get<std::vector<std::string>>();
    uint64_t events = 0;
    int64_t cost_ns = 0;
    for (const trace::Trace& trace : traces) {
      std::vector<bool> matches(trace.dictionary.stacks().size());
      for (size_t i = 0; i < matches.size(); ++i) {
        matches[i] = Contains(trace.dictionary, trace::StackId(i), pattern);
      }
      for (const trace::Event& event : trace.events) {
        if (trace::Name(event.kind) != bug["event_kind"].get<std::string>()) continue;
        if (!event.stack.valid() || !matches[event.stack.value]) continue;
        ++events;
        cost_ns += event.dur_ns;
      }
    }
    EXPECT_GT(cost_ns, 0) << bug["name"];
    EXPECT_EQ(bug["cost_ns"].get<int64_t>(), cost_ns) << bug["name"];
    EXPECT_EQ(bug["events"].get<uint64_t>(), events) << bug["name"];
    for (const nlohmann::json& instance : bug["instances"]) {
      const std::string text = instance.get<std::string>();
      const size_t colon = text.rfind(':');
      const auto at = std::find(names.begin(), names.end(), text.substr(0, colon));
      ASSERT_NE(at, names.end()) << text;
      const trace::Trace& trace = traces[static_cast<size_t>(at - names.begin())];
      const size_t index = std::stoul(text.substr(colon + 1));
      ASSERT_LT(index, trace.instances.size());
      EXPECT_EQ(trace.dictionary.Text(trace.instances[index].scenario),
                bug["scenario"].get<std::string>());
    }
  }
}

TEST(Synth, RefusesAFolderThatIsNotEmptyUnlessForced) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c";
  ASSERT_EQ(Culprit("synth --traces 2 --dur 2s -o " + path).code, 0);
  const auto before = TraceBytes(path);
  const ShellOutcome refused = Culprit("synth --traces 1 --dur 2s --seed 9 -o " + path);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.text.find("not empty"), std::string::npos);
  EXPECT_NE(refused.text.find("--force"), std::string::npos);
  EXPECT_TRUE(TraceBytes(path) == before);
  EXPECT_EQ(Culprit("synth --traces 1 --dur 2s --seed 9 --force -o " + path).code, 0);
  EXPECT_EQ(TraceBytes(path).size(), 1u);
  EXPECT_EQ(TruthOf(path)["seed"], 9);
}

TEST(Synth, NeverReplacesAFolderThatIsNoCorpus) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/precious";
  fs::create_directory(path);
  ASSERT_TRUE(WriteWholeFile(path + "/thesis.txt", "words", Overwrite::kRefuse).ok());
  EXPECT_EQ(Culprit("synth --traces 1 --dur 2s --force -o " + path).code, 1);
  EXPECT_EQ(ReadWholeFile(path + "/thesis.txt").value(), "words");
}

TEST(Synth, SaysWhatItMadeAndWhatComesNext) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c";
  const ShellOutcome outcome = Culprit("synth --like server --traces 2 --dur 2s -o " + path);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("accept-retry-loop"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("HttpRequest"), std::string::npos);
  EXPECT_NE(outcome.text.find("next: culprit info " + path), std::string::npos);
  EXPECT_FALSE(fs::exists(path + "/traces/.staging") && !fs::is_empty(path + "/traces/.staging"));
}

TEST(Synth, ChecksItsOptionsBeforeTouchingAnything) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c";
  const ShellOutcome bug = Culprit("synth --bugs glyph-hot-lop -o " + path);
  EXPECT_NE(bug.code, 0);
  EXPECT_NE(bug.text.find("glyph-hot-loop"), std::string::npos) << bug.text;
  EXPECT_NE(Culprit("synth --cores 0 -o " + path).code, 0);
  EXPECT_NE(Culprit("synth --cores 17 -o " + path).code, 0);
  EXPECT_NE(Culprit("synth --dur 1ms -o " + path).code, 0);
  EXPECT_NE(Culprit("synth --scale 0 -o " + path).code, 0);
  EXPECT_NE(Culprit("synth --traces 0 -o " + path).code, 0);
  EXPECT_NE(Culprit("synth --like nothing -o " + path).code, 0);
  EXPECT_NE(Culprit("synth").code, 0);
  EXPECT_FALSE(fs::exists(path));
}

TEST(Synth, BugsNonePlantsOnlyWhatIsAlwaysThere) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c";
  ASSERT_EQ(Culprit("synth --traces 1 --dur 4s --bugs none -o " + path).code, 0);
  for (const nlohmann::json& bug : TruthOf(path)["bugs"]) {
    EXPECT_TRUE(bug["noise"].get<bool>());
    EXPECT_TRUE(bug["instances"].empty());
  }
}

TEST(Synth, ScaleAsksForAtLeastOneTrace) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/c";
  ASSERT_EQ(Culprit("synth --scale 0.0001 --dur 2s -o " + path).code, 0);
  EXPECT_EQ(TraceBytes(path).size(), 1u);
}

}  // namespace
}  // namespace culprit::TEST_FILE
