// SPDX-License-Identifier: Apache-2.0
#include "push/push.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/test_folder.h"
#include "corpus/corpus.h"
#include "push/anonymize.h"
#include "trace/random_trace.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::push::TEST_FILE {
namespace {

trace::Trace TellingTrace(uint64_t seed) {
  trace::Trace made = trace::RandomTrace({.seed = seed});
  made.metadata.machine = "db01";
  made.metadata.labels["team"] = "alice and bob";
  made.metadata.properties["command_line"] = "perf record -- /home/alice/run secret";
  trace::Dictionary& dictionary = made.dictionary;
  const auto module = dictionary.InternModule(
      {.name = dictionary.Intern("app"), .path = dictionary.Intern("/home/alice/acme/app")});
  const auto frame = dictionary.InternFrame({.module = module,
                                             .function = dictionary.Intern("Handle"),
                                             .file = dictionary.Intern("/home/alice/acme/a.cc")});
  const trace::StackId stack = dictionary.InternStack({frame});
  for (size_t i = 0; i < made.events.size(); i += 2) made.events[i].stack = stack;
  for (size_t p = 0; p < dictionary.processes().size(); ++p) {
    dictionary.process(trace::ProcessId(p)).command_line = dictionary.Intern("app --token hunter2");
  }
  return made;
}

TEST(Anonymize, ChangesTextsAndNothingElse) {
  const TestFolder folder;
  const trace::Trace before = TellingTrace(7);
  ASSERT_TRUE(trace::WriteTrace(before, folder / "a.ctrace", Overwrite::kRefuse).ok());
  Pseudonyms pseudonyms("key");
  ASSERT_TRUE(AnonymizeTrace(folder / "a.ctrace", folder / "b.ctrace", pseudonyms).ok());
  auto read = trace::ReadTrace(folder / "b.ctrace");
  ASSERT_TRUE(read.ok());
  const trace::Trace& after = read.value();
  auto original = trace::ReadTrace(folder / "a.ctrace");
  ASSERT_TRUE(original.ok());
  ASSERT_EQ(after.events.size(), original.value().events.size());
  for (size_t i = 0; i < after.events.size(); ++i) {
    trace::Event left = original.value().events[i];
    trace::Event right = after.events[i];
    EXPECT_EQ(original.value().dictionary.StackText(left.stack),
              after.dictionary.StackText(right.stack));
    if (left.kind == trace::EventKind::kMarker) left.arg0 = right.arg0;
    left.stack = right.stack;
    EXPECT_EQ(left, right);
  }
  ASSERT_EQ(after.instances.size(), original.value().instances.size());
  std::string texts = after.metadata.machine;
  for (const auto& [key, value] : after.metadata.labels) texts += value;
  for (const auto& [key, value] : after.metadata.properties) texts += value;
  for (size_t s = 0; s < after.dictionary.strings().size(); ++s) {
    texts += after.dictionary.Text(StringId(s));
    texts += '\n';
  }
  for (const char* word : {"alice", "acme", "hunter2", "db01", "secret"}) {
    EXPECT_EQ(texts.find(word), std::string::npos) << word;
  }
  EXPECT_NE(texts.find("Handle"), std::string::npos);
  EXPECT_NE(texts.find("bob"), std::string::npos);
}

std::string MakeCorpus(const TestFolder& folder, size_t traces) {
  auto corpus = corpus::Corpus::Create(folder / "from");
  EXPECT_TRUE(corpus.ok());
  for (size_t i = 0; i < traces; ++i) {
    const std::string path = (folder / "t" + std::to_string(i) + ".ctrace");
    EXPECT_TRUE(trace::WriteTrace(TellingTrace(i + 1), path, Overwrite::kRefuse).ok());
    EXPECT_TRUE(corpus.value().Add(path, {}).ok());
  }
  return folder / "from";
}

TEST(Push, ToAFolderSendsEachTraceOnce) {
  const TestFolder folder;
  const std::string from = MakeCorpus(folder, 3);
  auto target = OpenTarget(folder / "to", {});
  ASSERT_TRUE(target.ok());
  Progress progress;
  const auto first = Push({from}, *target.value(), {}, progress);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().sent, 3u);
  const auto second = Push({from, folder / "t1.ctrace"}, *target.value(), {}, progress);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().sent, 0u);
  EXPECT_EQ(second.value().already_there, 4u);
}

TEST(Push, AnonymousTracesAreKnownAgain) {
  const TestFolder folder;
  const std::string from = MakeCorpus(folder, 2);
  auto target = OpenTarget(folder / "to", {});
  ASSERT_TRUE(target.ok());
  Progress progress;
  const PushOptions options = {.key = "a key", .hosts = {"db01"}, .users = {}};
  const auto first = Push({from}, *target.value(), options, progress);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().sent, 2u);
  EXPECT_GT(first.value().replaced.at("paths"), 0u);
  const auto second = Push({from}, *target.value(), options, progress);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().already_there, 2u);
}

TEST(Push, AFileThatIsNoTraceDoesNotStopTheOthers) {
  const TestFolder folder;
  const std::string from = MakeCorpus(folder, 1);
  std::ofstream(folder / "x.ctrace") << "no trace";
  auto target = OpenTarget(folder / "to", {});
  ASSERT_TRUE(target.ok());
  Progress progress;
  const auto outcome = Push({folder / "x.ctrace", from}, *target.value(), {}, progress);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().sent, 1u);
  ASSERT_EQ(outcome.value().failures.size(), 1u);
}

TEST(OpenTarget, RefusesWhatWouldBeAnOptionOfSsh) {
  EXPECT_FALSE(OpenTarget("-oProxyCommand=x:y", {}).ok());
  EXPECT_FALSE(OpenTarget(":folder", {}).ok());
}

}  // namespace
}  // namespace culprit::push::TEST_FILE
