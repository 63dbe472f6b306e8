// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/commands.h"
#include "cli/shell_run.h"
#include "corpus/corpus.h"
#include "import/perf_data_builder.h"
#include "trace/trace_reader.h"

namespace culprit::cli::TEST_FILE {
namespace {

constexpr char kStrace[] =
    "12 1700000000.000000 execve(\"/bin/app\", [\"app\"], 0x0) = 0 <0.000500>\n"
    "12 1700000000.004000 write(5, \"x\", 1) = 1 <0.000200>\n"
    " > /usr/lib/libc.so.6(__write+0x14) [0xe1234]\n"
    "12 1700000000.006000 close(3) = 0 <0.000100>\n";
constexpr char kFolded[] = "java;a;b 3\njava;a 1\n";

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

Ran RunImport(const std::vector<std::string>& words) {
  const Command command = ImportCommand();
  BufferOutput output;
  const auto arguments = ParseArguments(command, words);
  EXPECT_TRUE(arguments.ok()) << arguments.error().message;
  const Result<int> code = command.run(arguments.value(), output);
  return {code.ok() ? code.value() : 1, output.out(),
          output.err() + (code.ok() ? "" : code.error().ToString())};
}

class ImportCommandTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view text) const {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    EXPECT_TRUE(WriteWholeFile(path, text, Overwrite::kAllow).ok());
    return path;
  }
  std::vector<corpus::TraceRow> Traces() const {
    const auto corpus = corpus::Corpus::Open(corpus_);
    EXPECT_TRUE(corpus.ok());
    return corpus.ok() ? corpus.value().List().value() : std::vector<corpus::TraceRow>();
  }

  TemporaryFolder folder_;
  const std::string corpus_ = folder_ / "c";
};

TEST_F(ImportCommandTest, OneBadInputDoesNotStopTheOthers) {
  const std::string good = Write("good.folded", kFolded);
  const std::string bad = Write("bad.bin", "\x01\x02 nothing anybody writes");
  const Ran ran = RunImport({good, bad, folder_ / "missing", "-o", corpus_, "--label", "r=1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("folded"), std::string::npos) << ran.out;
  EXPECT_NE(ran.err.find("01 02 20"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("missing"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("next: culprit info"), std::string::npos) << ran.err;
  const auto traces = Traces();
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].name, "good");
  EXPECT_TRUE(std::filesystem::is_empty(corpus_ + "/traces/.staging"));
}

TEST_F(ImportCommandTest, NothingImportedLeavesNothing) {
  const std::string bad = Write("bad.bin", "\x01\x02");
  EXPECT_EQ(RunImport({bad, "-o", corpus_}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(corpus_));
  EXPECT_EQ(RunImport({bad, "-o", corpus_, "--format", "foldet"}).code, 1);
  EXPECT_NE(RunImport({bad, "-o", corpus_, "--format", "foldet"}).err.find("did you mean 'folded'"),
            std::string::npos);
}

TEST_F(ImportCommandTest, FoldersAreWalkedAndNamed) {
  Write("runs/a/x.folded", kFolded);
  Write("runs/b/x.strace", kStrace);
  Write("runs/README.md", "# Notes\nnothing\n");
  const Ran one = RunImport({folder_ / "runs", "-o", corpus_, "--jobs", "1"});
  EXPECT_EQ(one.code, 0);
  EXPECT_NE(one.err.find("1 file is of no known format"), std::string::npos) << one.err;
  const auto traces = Traces();
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].name, "a-x");
  EXPECT_EQ(traces[1].name, "b-x");
  const Ran again = RunImport({folder_ / "runs", "-o", corpus_, "--json"});
  EXPECT_NE(again.out.find("\"already_there\": true"), std::string::npos) << again.out;
  EXPECT_EQ(Traces().size(), 2u);
}

TEST_F(ImportCommandTest, PerfMapsNameCodeMadeAtRunTime) {
  import_::PerfDataBuilder builder;
  const import_::PerfDataBuilder::Who who = {.time = 1'000'000, .pid = 50, .tid = 50};
  builder.Mmap2(who, 2, 0x7f0000000000, 1 << 20, 0, "//anon");
  builder.Clock({.time = 5'000'000, .pid = 50, .tid = 50}, {import_::kContextUser, 0x7f0000001004});
  const std::string data = Write("t.data", builder.Bytes(import_::PerfDataBuilder::Layout::kFile));
  const std::string map = Write("names", "7f0000001000 100 compiled\n");
  EXPECT_EQ(RunImport({data, "-o", corpus_, "--perf-map", folder_ / "absent"}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(corpus_));
  ASSERT_EQ(RunImport({data, "-o", corpus_, "--perf-map", map + ":50"}).code, 0);
  const auto corpus = corpus::Corpus::Open(corpus_);
  ASSERT_TRUE(corpus.ok());
  const auto trace = trace::ReadTrace(corpus.value().TracePath(Traces().at(0)));
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().dictionary.StackText(trace.value().events.at(0).stack), "[jit]!compiled");
}

TEST_F(ImportCommandTest, WhatWouldNameTheFramesIsTold) {
  constexpr uint64_t kText = 0xffff800080000000;
  import_::PerfDataBuilder builder;
  builder.Mmap2({.pid = -1, .tid = 0}, 1, kText, 0x1000000, kText, "[kernel.kallsyms]_text");
  builder.Mmap2({.pid = 50, .tid = 50}, 2, 0x400000, 1 << 20, 0, "/opt/not-here");
  builder.Clock({.time = 5'000'000, .pid = 50, .tid = 50},
                {import_::kContextKernel, kText + 0x1010, import_::kContextUser, 0x401004});
  const std::string data = Write("t.data", builder.Bytes(import_::PerfDataBuilder::Layout::kFile));
  const Ran without = RunImport({data, "-o", corpus_});
  EXPECT_NE(without.err.find("2 of 2 frames have no name, 1 of them the kernel's (--kallsyms with"),
            std::string::npos)
      << without.err;
  EXPECT_NE(without.err.find("'culprit symbolize " + corpus_ + "'"), std::string::npos);
  const std::string names = Write("kallsyms",
                                  "ffff800080000000 T _text\nffff800080001000 T read\n"
                                  "ffff800080002000 T end\n");
  const Ran with = RunImport({data, "-o", folder_ / "named", "--kallsyms", names});
  EXPECT_NE(with.err.find("1 of 2 frames have no name; 'culprit"), std::string::npos) << with.err;
  const std::string folded = Write("t.folded", kFolded);
  const Ran named = RunImport({folded, "-o", folder_ / "folded"});
  EXPECT_EQ(named.err.find("no name"), std::string::npos) << named.err;
}

TEST_F(ImportCommandTest, ScenariosComeFromRulesAndTables) {
  const std::string input = Write("t.strace", kStrace);
  const std::string csv = Write("i.csv",
                                "trace,scenario,tid,t0_ns,t1_ns\n"
                                "t.strace,Table,12,1700000000001000000,1700000000002000000\n"
                                "other,No,12,1,2\n");
  const Ran ran = RunImport({input, "-o", corpus_, "--scenario", "Whole: process app", "--scenario",
                             "Begin: process-start app .. call *!__write", "--instances", csv});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto corpus = corpus::Corpus::Open(corpus_);
  const auto rows = corpus.value().List().value();
  ASSERT_EQ(rows.size(), 1u);
  const auto trace = trace::ReadTrace(corpus.value().TracePath(rows[0]));
  ASSERT_TRUE(trace.ok());
  std::map<std::string, int64_t> durations;
  for (const trace::Instance& instance : trace.value().instances) {
    durations[std::string(trace.value().dictionary.Text(instance.scenario))] = instance.dur_ns();
  }
  EXPECT_EQ(durations, (std::map<std::string, int64_t>{
                           {"Begin", 4'000'000}, {"Table", 1'000'000}, {"Whole", 6'100'000}}));
  EXPECT_EQ(RunImport({input, "-o", corpus_, "--scenario", "nonsense"}).code, 1);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
