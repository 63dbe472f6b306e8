// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"
#include "export/sample_trace.h"
#include "export/target.h"
#include "import/importers.h"
#include "import/source.h"
#include "trace/conservation.h"

namespace culprit::cli::TEST_FILE {
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

TEST_F(ExportCommandTest, EveryTargetTellsWhatToDoWithItsFile) {
  for (const export_::Target& target : export_::Targets()) {
    const std::string path = folder_ / std::string(target.name);
    EXPECT_EQ(Export({"--to", std::string(target.name), "-o", path}), 0) << err();
    EXPECT_EQ(err().find("wrote " + path + ": 13 events, "), 0u) << err();
    EXPECT_EQ(err().find("FILE"), std::string::npos) << err();
    EXPECT_EQ(err().find("next: ") != std::string::npos, !target.next.empty());
  }
  EXPECT_EQ(Export({"--to", "perfetto", "-o", folder_ / "p"}), 0);
  EXPECT_NE(err().find("\nnext: open " + (folder_ / "p") + " at https://ui.perfetto.dev\n"),
            std::string::npos);
}

// A terminal, as far as a command can tell.
class ColorOutput : public BufferOutput {
 public:
  bool color() const override { return true; }
};

TEST_F(ExportCommandTest, KeepsBinaryFormatsFromTheTerminal) {
  for (const char* target : {"perfetto", "pprof"}) {
    ColorOutput output;
    EXPECT_EQ(RunCulprit({"export", trace_, "--to", target}, output), 1);
    EXPECT_EQ(output.out(), "");
    EXPECT_EQ(output.err(), "culprit: --to " + std::string(target) +
                                " is not for a terminal\n"
                                "  hint: add -o FILE, or pipe it into a program\n");
    EXPECT_EQ(Export({"--to", target}), 0);
    EXPECT_FALSE(out().empty());
  }
}

TEST_F(ExportCommandTest, PerfettoComesBackByImport) {
  // The sample's system call ends while its thread has no CPU: an importer must
  // think that it had one.
  trace::Trace trace = export_::SampleTrace();
  std::erase_if(trace.events,
                [](const trace::Event& e) { return e.kind == trace::EventKind::kSyscall; });
  ASSERT_TRUE(WriteWholeFile(trace_, trace::EncodeTrace(trace), Overwrite::kAllow).ok());
  const std::string path = folder_ / "t.pftrace";
  ASSERT_EQ(Export({"--to", "perfetto", "-o", path}), 0) << err();
  std::vector<Result<import_::Source>> sources = import_::OpenSources(path);
  ASSERT_EQ(sources.size(), 1u);
  ASSERT_TRUE(sources.front().ok());
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  Diagnostics diagnostics;
  ASSERT_TRUE(import_::PerfettoImporter()
                  .read(sources.front().value(), {.symbols = false}, writer, diagnostics)
                  .ok());
  ASSERT_TRUE(writer.Finish().ok());
  const trace::Trace again =
      std::move(trace::TraceReader::FromBytes(bytes, "again")).value().ReadAll();
  EXPECT_TRUE(trace::CheckConservation(again).ok());
  // Slices are instances to the importer, so the call is one too.
  std::map<std::string_view, int64_t> instances_ns;
  for (const trace::Instance& instance : again.instances) {
    instances_ns[again.dictionary.Text(instance.scenario)] = instance.dur_ns();
  }
  EXPECT_EQ(instances_ns,
            (std::map<std::string_view, int64_t>{{"TabCreate", 900}, {"fs.sys!AcquireMDU", 10}}));
  std::map<int64_t, int64_t> running_ns;
  size_t wakings = 0, lock_waits = 0;
  for (const trace::Event& event : again.events) {
    const int64_t tid = again.dictionary.threads().at(event.thread.value).tid;
    if (event.kind == trace::EventKind::kRunning) running_ns[tid] += event.dur_ns;
    wakings += event.kind == trace::EventKind::kUnwait;
    lock_waits += event.kind == trace::EventKind::kWait && event.dur_ns == 300 && tid == 11 &&
                  again.dictionary.StackText(event.stack) == "app!main;fs.sys!AcquireMDU";
  }
  EXPECT_EQ(running_ns, (std::map<int64_t, int64_t>{{11, 450}, {12, 700}}));
  EXPECT_EQ(wakings, 1u);
  EXPECT_EQ(lock_waits, 1u);
}

TEST_F(ExportCommandTest, OverwritesOnlyWithForce) {
  const std::string path = folder_ / "x";
  ASSERT_TRUE(WriteWholeFile(path, "mine", Overwrite::kRefuse).ok());
  for (const export_::Target& target : export_::Targets()) {
    EXPECT_EQ(Export({"--to", std::string(target.name), "-o", path}), 1);
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
  EXPECT_EQ(err(), "culprit: --threads only goes with --to folded or pprof\n");
  EXPECT_EQ(Export({"--to", "perfetto", "--kind", "wait"}), 1);
  EXPECT_EQ(err(), "culprit: --kind only goes with --to folded, pprof, firefox or speedscope\n");
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
}  // namespace culprit::cli::TEST_FILE
