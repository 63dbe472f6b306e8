// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "corpus/corpus.h"
#include "symbol/elf_file.h"
#include "trace/conservation.h"
#include "trace/small_trace.h"

namespace culprit::cli::TEST_FILE {
namespace {

class SymbolizeTest : public testing::Test {
 protected:
  void SetUp() override {
    work_.Write("p.c",
                "int work(int x) { return x + 1; }\nint main(int c, char** v) {\n"
                "  (void)v; return work(c); }\n");
    const std::string in = "cd " + work_.path() + " && ";
    if (RunShell(in + "mkdir out && cc -O0 -g -Wl,--build-id -o out/app p.c").code != 0) {
      GTEST_SKIP() << "no compiler here";
    }
    const auto elf = symbol::ElfFile::Open(work_ / "out/app");
    build_id_ = elf.value().build_id();
    const ShellOutcome nm = RunShell(in + "nm out/app | grep ' work$'");
    offset_ = elf.value().OffsetOfAddress(std::stoull(nm.text, nullptr, 16)).value_or(0) + 4;
  }

  // A trace with a frame of the program, which is not where it was recorded.
  trace::Trace Recorded(int64_t end_ns) {
    trace::SmallTrace small(0, end_ns);
    trace::Dictionary& d = small.trace.dictionary;
    const auto module = d.InternModule({.name = d.Intern("app"),
                                        .path = d.Intern("/nowhere/app"),
                                        .build_id = d.Intern(build_id_)});
    const auto frame = d.InternFrame(trace::Frame{.module = module, .offset = offset_});
    small.Add(trace::EventKind::kRunning, "a", 0, end_ns).stack = d.InternStack({}, frame);
    small.AddInstance("Open", "a", 0, end_ns);
    return std::move(small.trace);
  }
  int Run(const std::vector<std::string>& words) {
    output_ = std::make_unique<BufferOutput>();
    return RunCulprit(words, *output_);
  }
  std::string StackOf(const std::string& path) {
    const trace::Trace trace = trace::ReadTrace(path).value();
    return trace.dictionary.StackText(trace.events.at(0).stack);
  }

  TemporaryFolder work_;
  std::string build_id_;
  uint64_t offset_ = 0;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(SymbolizeTest, ATraceOfACorpusIsReplacedUnderItsNameWithItsLabels) {
  const std::string folder = work_ / "c";
  {
    corpus::Corpus made = corpus::Corpus::Create(folder).value();
    for (const int64_t end_ns : {100, 200}) {
      const std::string path = work_ / (std::to_string(end_ns) + ".ctrace");
      ASSERT_TRUE(trace::WriteTrace(Recorded(end_ns), path, Overwrite::kRefuse).ok());
      ASSERT_TRUE(made.Add(path, {.name = {}, .labels = {{"release", "2.1"}}}).ok());
    }
  }
  EXPECT_EQ(Run({"symbolize", folder, "--json", "--debug-dir", work_ / "out"}), 0);
  const auto json = nlohmann::json::parse(output_->out());
  EXPECT_EQ(json["frames"], 2);
  EXPECT_EQ(json["named_before"], 0);
  EXPECT_EQ(json["named"], 2);
  EXPECT_EQ(json["modules"][0]["file"], work_ / "out/app");
  const corpus::Corpus corpus = corpus::Corpus::Open(folder).value();
  ASSERT_EQ(corpus.List().value().size(), 2u);
  for (const std::string name : {"100", "200"}) {
    const corpus::TraceRow row = corpus.Find(name).value();
    EXPECT_EQ(row.labels.at("release"), "2.1");
    EXPECT_EQ(row.instances, 1u);
    EXPECT_EQ(StackOf(corpus.TracePath(row)), "app!work");
    EXPECT_TRUE(CheckConservation(trace::ReadTrace(corpus.TracePath(row)).value()).ok());
  }
  EXPECT_EQ(Run({"corpus", "check", folder}), 0);
  // Once more: nothing is left to name, nothing is written.
  EXPECT_EQ(Run({"symbolize", folder, "--debug-dir", work_ / "out"}), 0);
  EXPECT_NE(output_->out().find("nothing new"), std::string::npos);
  EXPECT_EQ(output_->out().find("replaced"), std::string::npos);
}

TEST_F(SymbolizeTest, WhatIsMissingIsToldWithItsBuildIdAndHowToGetIt) {
  const std::string path = work_ / "t.ctrace";
  ASSERT_TRUE(trace::WriteTrace(Recorded(100), path, Overwrite::kRefuse).ok());
  const std::string before = ReadWholeFile(path).value();
  EXPECT_EQ(Run({"symbolize", path}), 0);
  EXPECT_NE(output_->out().find("missing"), std::string::npos);
  EXPECT_NE(output_->err().find("find-dbgsym-packages " + build_id_), std::string::npos);
  EXPECT_NE(output_->err().find("--debuginfod"), std::string::npos);
  EXPECT_EQ(ReadWholeFile(path).value(), before);
  EXPECT_EQ(Run({"symbolize", path, "--debug-dir", work_ / "out"}), 0);
  EXPECT_EQ(StackOf(path), "app!work");
}

TEST_F(SymbolizeTest, ADamagedTraceIsLeftAsItIs) {
  const std::string path = work_ / "t.ctrace";
  std::string bytes = trace::EncodeTrace(Recorded(100));
  bytes.resize(bytes.size() - 10);
  work_.Write("t.ctrace", bytes);
  EXPECT_EQ(Run({"symbolize", path, "--debug-dir", work_ / "out"}), 1);
  EXPECT_EQ(ReadWholeFile(path).value(), bytes);
  EXPECT_NE(output_->err().find("damaged"), std::string::npos);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
