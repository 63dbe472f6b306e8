// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "export/sample_trace.h"

namespace culprit::cli {
namespace {

class ExportCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_ / "t.ctrace";
    ASSERT_TRUE(WriteWholeFile(trace_, export_::SampleBytes(), Overwrite::kRefuse).ok());
  }
  int Export(std::vector<std::string> words) {
    output_ = std::make_unique<BufferOutput>();
    words.insert(words.begin(), {"export", trace_});
    return RunCulprit(words, *output_);
  }
  const std::string& out() const { return output_->out(); }
  const std::string& err() const { return output_->err(); }

  TemporaryFolder folder_;
  std::string trace_;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(ExportCommandTest, WritesTextToStandardOutput) {
  EXPECT_EQ(Export({"--to", "json"}), 0) << err();
  EXPECT_EQ(nlohmann::json::parse(out())["events"].size(), export_::SampleTrace().events.size());
  EXPECT_EQ(Export({"--to=folded", "--kind", "syscall", "--threads"}), 0);
  EXPECT_EQ(out(), "my_browser;UI(11);app!main 300\n");
  EXPECT_EQ(err(), "");
}

TEST_F(ExportCommandTest, WritesTheSameTextIntoAFile) {
  EXPECT_EQ(Export({"--to", "folded"}), 0);
  const std::string text = out();
  const std::string path = folder_ / "t.folded";
  EXPECT_EQ(Export({"--to", "folded", "-o", path}), 0);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(ReadWholeFile(path).value(), text);
  EXPECT_EQ(err(), "wrote " + path + ": 13 events, " + std::to_string(text.size()) +
                       " B\nnext: flamegraph.pl " + path + " > " + path + ".svg\n");
}

TEST_F(ExportCommandTest, OverwritesOnlyWithForce) {
  const std::string path = folder_ / "x";
  ASSERT_TRUE(WriteWholeFile(path, "mine", Overwrite::kRefuse).ok());
  for (const char* target : {"json", "folded", "sqlite"}) {
    EXPECT_EQ(Export({"--to", target, "-o", path}), 1);
    EXPECT_EQ(err(), "culprit: " + path + ": exists already; nothing was written\n" +
                         "  hint: choose another name, or pass --force to overwrite it\n");
    EXPECT_EQ(ReadWholeFile(path).value(), "mine");
  }
  EXPECT_EQ(Export({"--to", "sqlite", "-o", path, "--force"}), 0) << err();
  EXPECT_EQ(ReadWholeFile(path).value().substr(0, 6), "SQLite");
}

TEST_F(ExportCommandTest, NeverReplacesTheTraceItself) {
  EXPECT_EQ(
      Export({"--to", "json", "-o",
              folder_ / "../" + folder_.path().substr(folder_.path().rfind('/') + 1) + "/t.ctrace",
              "--force"}),
      1);
  EXPECT_EQ(ReadWholeFile(trace_).value(), export_::SampleBytes());
}

TEST_F(ExportCommandTest, RefusesFlagsThatDoNotGoTogether) {
  EXPECT_EQ(Export({"--to", "sqlite"}), 1);
  EXPECT_EQ(err(), "culprit: --to sqlite makes a file: say which\n  hint: add -o FILE\n");
  EXPECT_EQ(Export({"--to", "json", "--threads"}), 1);
  EXPECT_EQ(err(), "culprit: --threads only goes with --to folded\n");
  EXPECT_EQ(Export({"--to", "folded", "--kind", "marker"}), 2);
}

TEST_F(ExportCommandTest, TellsWhatADamagedTraceLost) {
  ASSERT_TRUE(WriteWholeFile(trace_, export_::DamagedBytes(1), Overwrite::kAllow).ok());
  EXPECT_EQ(Export({"--to", "json"}), 0);
  EXPECT_LT(nlohmann::json::parse(out())["events"].size(), export_::SampleTrace().events.size());
  EXPECT_NE(err().find("culprit: " + trace_ +
                       ": skipped 1 x event block with a wrong checksum "
                       "(first at byte "),
            std::string::npos)
      << err();
}

TEST_F(ExportCommandTest, OfEveryCutOfTheFileIsWholeOrAnError) {
  const std::string bytes = export_::SampleBytes();
  for (size_t length = 0; length < bytes.size(); length += 7) {
    ASSERT_TRUE(WriteWholeFile(trace_, bytes.substr(0, length), Overwrite::kAllow).ok());
    const int code = Export({"--to", "json"});
    EXPECT_NE(err(), "") << "a cut file went unnoticed at " << length;
    if (code == 0) {
      EXPECT_FALSE(nlohmann::json::parse(out())["events"].empty()) << length;
    } else {
      EXPECT_EQ(out(), "") << length;
    }
  }
}

TEST_F(ExportCommandTest, RefusesWhatIsNoTrace) {
  ASSERT_TRUE(WriteWholeFile(trace_, "not a trace at all", Overwrite::kAllow).ok());
  EXPECT_EQ(Export({"--to", "json"}), 1);
  EXPECT_EQ(out(), "");
  EXPECT_NE(err().find(trace_ + ": is not a culprit trace"), std::string::npos) << err();
}

}  // namespace
}  // namespace culprit::cli
