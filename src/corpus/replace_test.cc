// SPDX-License-Identifier: Apache-2.0
#include "corpus/replace.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"
#include "corpus/corpus.h"
#include "trace/random_trace.h"
#include "trace/trace_writer.h"

namespace culprit::corpus::TEST_FILE {
namespace {

namespace fs = std::filesystem;

class ReplaceTest : public testing::Test {
 protected:
  static std::string Bytes(uint64_t seed) {
    return trace::EncodeTrace(trace::RandomTrace({.seed = seed, .events = 200}));
  }
  std::string Staged(uint64_t seed) {
    const std::string path = corpus_.NewStagingPath().value();
    EXPECT_TRUE(WriteWholeFile(path, Bytes(seed), Overwrite::kRefuse).ok());
    return path;
  }
  TraceRow AddTrace(const std::string& name, uint64_t seed) {
    const std::string path = work_.Write(name + ".ctrace", Bytes(seed));
    const AddOptions options{.name = {}, .labels = {{"release", "2.1"}}};
    EXPECT_TRUE(corpus_.Add(path, options).ok());
    return corpus_.Find(name).value();
  }
  size_t Files() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(corpus_.folder() + "/traces")) {
      count += entry.is_regular_file();
    }
    return count;
  }
  bool Sound() {
    const CheckReport report = corpus_.Check({}, progress_).value();
    return report.ok() && report.strays.empty();
  }

  TestFolder work_;
  Progress progress_;
  Corpus corpus_ = Corpus::Create(work_ / "corpus").value();
};

TEST_F(ReplaceTest, NameLabelsAndTimeStayAndTheContentIsNew) {
  const TraceRow old = AddTrace("a", 1);
  AddTrace("b", 2);
  ASSERT_TRUE(ReplaceTrace(corpus_.folder(), old, Staged(3)).ok());
  const TraceRow now = corpus_.Find("a").value();
  EXPECT_EQ(ReadWholeFile(corpus_.TracePath(now)).value(), Bytes(3));
  EXPECT_EQ(now.labels, old.labels);
  EXPECT_EQ(now.added_ns, old.added_ns);
  EXPECT_EQ(corpus_.List().value().size(), 2u);
  EXPECT_EQ(Files(), 2u);
  EXPECT_TRUE(Sound());
}

TEST_F(ReplaceTest, TheSameContentChangesNothing) {
  const TraceRow old = AddTrace("a", 1);
  ASSERT_TRUE(ReplaceTrace(corpus_.folder(), old, Staged(1)).ok());
  EXPECT_EQ(corpus_.Find("a").value().id, old.id);
  EXPECT_TRUE(Sound());
}

TEST_F(ReplaceTest, ATraceThatIsNoLongerTheOneReadIsLeftAlone) {
  const TraceRow old = AddTrace("a", 1);
  ASSERT_TRUE(ReplaceTrace(corpus_.folder(), old, Staged(2)).ok());
  const std::string staged = Staged(3);
  EXPECT_FALSE(ReplaceTrace(corpus_.folder(), old, staged).ok());
  EXPECT_TRUE(fs::exists(staged));
  EXPECT_EQ(ReadWholeFile(corpus_.TracePath(corpus_.Find("a").value())).value(), Bytes(2));
  ASSERT_TRUE(corpus_.Remove({"a"}).ok());
  EXPECT_FALSE(ReplaceTrace(corpus_.folder(), old, staged).ok());
  EXPECT_TRUE(corpus_.List().value().empty());
}

TEST_F(ReplaceTest, ContentThatAnotherNameHasIsRefused) {
  const TraceRow old = AddTrace("a", 1);
  AddTrace("b", 2);
  const auto done = ReplaceTrace(corpus_.folder(), old, Staged(2));
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("'b'"), std::string::npos);
  EXPECT_EQ(corpus_.Find("a").value().id, old.id);
  EXPECT_EQ(Files(), 2u);
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
