// SPDX-License-Identifier: Apache-2.0
#include "symbol/frame_naming.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "symbol/debug_files.h"
#include "symbol/elf_file.h"
#include "symbol/test_binary.h"
#include "trace/conservation.h"
#include "trace/small_trace.h"

namespace culprit::symbol::TEST_FILE {
namespace {

using trace::Frame;
using trace::FrameId;
using trace::StackId;

constexpr const char* kProgram = R"(
static inline __attribute__((always_inline)) int inner(int x) {
  __asm__ volatile("nop; nop; nop; nop");
  return x * 3;
}
__attribute__((noinline)) int outer(int x) {
  __asm__ volatile("nop");
  return inner(x) + 1;
}
int main(int argc, char** argv) { (void)argv; return outer(argc); }
)";

// Past the first nop of outer, in the code of inner.
#if defined(__x86_64__)
constexpr uint64_t kInInner = 2;
#else
constexpr uint64_t kInInner = 8;
#endif

class FrameNamingTest : public testing::Test {
 protected:
  void SetUp() override {
    files_.Write("p.c", kProgram);
    if (!files_.Works("cc -O1 -g -Wl,--build-id -o app p.c && mkdir lost && cp app lost/app")) {
      GTEST_SKIP() << "no compiler here";
    }
    const auto elf = ElfFile::Open(files_.Path("app"));
    ASSERT_TRUE(elf.ok());
    build_id_ = elf.value().build_id();
    for (const auto& [name, address] : files_.Functions("app")) {
      offsets_[name] = elf.value().OffsetOfAddress(address).value_or(0);
    }
    ASSERT_NE(offsets_["outer"], 0u);
  }

  trace::ModuleId AddModule(const std::string& path, const std::string& build_id) {
    trace::Dictionary& d = small_.trace.dictionary;
    trace::Module module = {.name = d.Intern("app"), .path = d.Intern(path)};
    if (!build_id.empty()) module.build_id = d.Intern(build_id);
    return d.InternModule(module);
  }
  StackId Place(trace::ModuleId module, const std::string& function, uint64_t inside,
                StackId parent = {}) {
    return small_.trace.dictionary.InternStack(
        parent, small_.trace.dictionary.InternFrame(
                    Frame{.module = module, .offset = offsets_[function] + inside}));
  }
  // The names of a stack after naming.
  std::vector<std::string> Named(StackId stack, const NameSources& sources) {
    trace::Dictionary to;
    FrameNaming naming(small_.trace.dictionary, sources, to);
    counts_ = naming.counts();
    std::vector<std::string> names;
    for (const FrameId frame : to.StackFrames(naming.Map(stack, {}))) {
      const Frame& row = to.frames()[frame.value];
      names.push_back(to.FrameName(frame) + (row.line != 0 ? ":" + std::to_string(row.line) : "") +
                      ((row.flags & trace::kInlined) != 0 ? " inlined" : ""));
    }
    return names;
  }

  TestBinary files_;
  std::string build_id_;
  std::map<std::string, uint64_t> offsets_;
  trace::SmallTrace small_{0, 100};
  NamingCounts counts_;
};

TEST_F(FrameNamingTest, APlaceGetsFunctionLineAndInlinedFrames) {
  const auto module = AddModule(files_.Path("app"), build_id_);
  const StackId stack = Place(module, "outer", kInInner, Place(module, "main", 4));
  Symbolizer symbolizer;
  EXPECT_EQ(Named(stack, {.symbolizer = symbolizer}),
            (std::vector<std::string>{"app!main:10", "app!outer:8", "app!inner:3 inlined"}));
  EXPECT_EQ(counts_.frames, 2u);
  EXPECT_EQ(counts_.named_before, 0u);
  EXPECT_EQ(counts_.named, 2u);
  EXPECT_EQ(counts_.inlined, 1u);
}

TEST_F(FrameNamingTest, TheStartOfAFunctionIsItsIdentityAndHasNoLine) {
  const auto module = AddModule(files_.Path("app"), build_id_);
  Symbolizer symbolizer;
  EXPECT_EQ(Named(Place(module, "outer", 0), {.symbolizer = symbolizer}),
            std::vector<std::string>{"app!outer"});
}

TEST_F(FrameNamingTest, AnotherBuildOrNoBuildIdGivesNoName) {
  Symbolizer symbolizer;
  std::string other = build_id_;
  other[0] = other[0] == '0' ? '1' : '0';
  const StackId wrong = Place(AddModule(files_.Path("app"), other), "outer", kInInner);
  const StackId none = Place(AddModule(files_.Path("app"), ""), "outer", kInInner);
  const std::string text = small_.trace.dictionary.StackText(wrong);
  EXPECT_EQ(Named(wrong, {.symbolizer = symbolizer}), std::vector<std::string>{text});
  EXPECT_EQ(Named(none, {.symbolizer = symbolizer}), std::vector<std::string>{text});
  EXPECT_EQ(counts_.named, 0u);
  EXPECT_FALSE(counts_.any_new());
}

TEST_F(FrameNamingTest, AModuleThatMovedIsFoundInTheFoldersByBuildId) {
  const auto module = AddModule("/nowhere/bin/app", build_id_);
  const StackId stack = Place(module, "main", 4);
  const std::string lost = files_.Path("lost");
  const std::string tree = lost + "/.build-id/" + build_id_.substr(0, 2);
  const std::vector<std::string> moves = {
      "true", "mkdir -p lost/nowhere/bin && mv lost/app lost/nowhere/bin/",
      "mkdir -p " + tree + " && mv lost/nowhere/bin/app " + tree + "/" + build_id_.substr(2)};
  for (const std::string& move : moves) {
    ASSERT_TRUE(files_.Works(move));
    Symbolizer symbolizer({.debug_folders = {lost}});
    EXPECT_EQ(Named(stack, {.symbolizer = symbolizer}), std::vector<std::string>{"app!main:10"})
        << move;
  }
  Symbolizer elsewhere;
  EXPECT_EQ(Named(stack, {.symbolizer = elsewhere}).size(), 1u);
  EXPECT_EQ(counts_.named, 0u);
}

TEST_F(FrameNamingTest, AStrippedFileKeepsThePlaceForLater) {
  ASSERT_TRUE(files_.Works("strip -o bare app && objcopy --only-keep-debug app lost/app.debug"));
  const auto module = AddModule(files_.Path("bare"), build_id_);
  const StackId stack = Place(module, "outer", kInInner);
  const ModuleKey key = {.path = files_.Path("bare"), .build_id = build_id_};
  {
    Symbolizer symbolizer({.debug_folders = {files_.Path("none")}});
    EXPECT_EQ(Named(stack, {.symbolizer = symbolizer}),
              std::vector<std::string>{small_.trace.dictionary.StackText(stack)});
    const ModuleFiles found = FindModuleFiles(key, {.debug_folders = {files_.Path("none")}});
    EXPECT_EQ(found.path, key.path);
    EXPECT_FALSE(found.names || found.lines);
  }
  const std::string tree = files_.Path("lost/.build-id/") + build_id_.substr(0, 2);
  ASSERT_TRUE(files_.Works("mkdir -p " + tree + " && mv lost/app.debug " + tree + "/" +
                           build_id_.substr(2) + ".debug"));
  Symbolizer symbolizer({.debug_folders = {files_.Path("lost")}});
  EXPECT_EQ(Named(stack, {.symbolizer = symbolizer}),
            (std::vector<std::string>{"app!outer:8", "app!inner:3 inlined"}));
  const ModuleFiles found = FindModuleFiles(key, {.debug_folders = {files_.Path("lost")}});
  EXPECT_TRUE(found.names && found.lines);
}

TEST_F(FrameNamingTest, EventsInstancesAndConservationAreKept) {
  const auto module = AddModule(files_.Path("app"), build_id_);
  const StackId stack = Place(module, "outer", kInInner, Place(module, "main", 4));
  using trace::EventKind;
  small_.Add(EventKind::kRunning, "a", 0, 40).stack = stack;
  small_.Add(EventKind::kWait, "a", 40, 70).stack = stack;
  small_.Add(EventKind::kRunning, "a", 70, 100, "m!f");
  small_.AddInstance("Open", "a", 0, 100);
  const trace::TraceReader reader = small_.Reader();
  Symbolizer symbolizer;
  const auto counts = WriteNamed(reader, {.symbolizer = symbolizer}, files_.Path("out.ctrace"));
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts.value().named - counts.value().named_before, 2u);
  const auto written = trace::ReadTrace(files_.Path("out.ctrace"));
  ASSERT_TRUE(written.ok());
  const trace::Trace& trace = written.value();
  ASSERT_EQ(trace.events.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    trace::Event same = trace.events[i];
    same.stack = small_.trace.events[i].stack;
    EXPECT_EQ(same, small_.trace.events[i]);
  }
  EXPECT_EQ(trace.dictionary.StackText(trace.events[1].stack), "app!main;app!outer;app!inner");
  EXPECT_EQ(trace.dictionary.StackText(trace.events[2].stack), "m!f");
  EXPECT_EQ(trace.instances, small_.trace.instances);
  EXPECT_EQ(trace.metadata, small_.trace.metadata);
  EXPECT_TRUE(CheckConservation(trace).ok());
  // A second time there is nothing left to do.
  const auto again = trace::TraceReader::Open(files_.Path("out.ctrace"));
  const auto nothing =
      WriteNamed(again.value(), {.symbolizer = symbolizer}, files_.Path("again.ctrace"));
  EXPECT_FALSE(nothing.value().any_new());
  EXPECT_FALSE(std::filesystem::exists(files_.Path("again.ctrace")));
}

TEST(KernelNaming, OffsetsCountFromTheKernelsText) {
  const auto kernel = KernelSymbols::Parse(
      "ffff800080000000 T _text\nffff800080010000 T _stext\nffff800080010000 T do_work\n"
      "ffff800080010100 t later\n");
  ASSERT_TRUE(kernel.ok());
  ASSERT_EQ(kernel.value().base(), 0xffff800080000000);
  trace::Dictionary from;
  const auto module = from.InternModule({.name = from.Intern("[kernel]")});
  const auto place = [&](uint64_t offset) {
    return from.InternStack(
        {},
        from.InternFrame(Frame{.module = module, .flags = trace::kKernelMode, .offset = offset}));
  };
  const StackId by_offset = place(0x10104);
  const StackId by_address = place(0xffff800080010004);
  const StackId before = place(0);
  Symbolizer symbolizer;
  trace::Dictionary to;
  FrameNaming naming(from, {.symbolizer = symbolizer, .kernel = &kernel.value()}, to);
  EXPECT_EQ(to.StackText(naming.Map(by_offset, {})), "[kernel]!later");
  EXPECT_EQ(to.StackText(naming.Map(by_address, {})), "[kernel]!do_work");
  EXPECT_EQ(to.StackText(naming.Map(before, {})), "[kernel]!_text");
}

// The same address is different code in different processes.
TEST(JitNaming, NamesComeFromTheMapOfTheProcess) {
  TestBinary files;
  files.Write("perf-10.map", "7f0000001000 40 Alpha\n");
  files.Write("perf-11.map", "7f0000001000 40 Beta\n");
  trace::Dictionary from;
  const auto module = from.InternModule({.name = from.Intern("[anon]")});
  const StackId stack =
      from.InternStack({}, from.InternFrame(Frame{.module = module, .offset = 0x7f0000001010}));
  std::vector<trace::ThreadId> threads;
  for (const int64_t pid : {10, 11, 12}) {
    const auto process = from.AddProcess({.pid = pid});
    threads.push_back(from.AddThread({.tid = pid, .process = process}));
  }
  Symbolizer symbolizer;
  trace::Dictionary to;
  const NameSources sources{.symbolizer = symbolizer, .perf_map_folder = files.folder()};
  FrameNaming naming(from, sources, to);
  EXPECT_EQ(to.StackText(naming.Map(stack, threads[0])), "[jit]!Alpha");
  EXPECT_EQ(to.StackText(naming.Map(stack, threads[1])), "[jit]!Beta");
  EXPECT_EQ(to.StackText(naming.Map(stack, threads[2])), "[anon]!+0x7f0000001010");
  EXPECT_EQ(naming.counts().jit_named, 2u);
}

TEST(JitMaps, FilesOfOtherUsersAreNotBelieved) {
  TestBinary files;
  files.Write("perf-10.map", "1000 40 Alpha\n");
  if (geteuid() != 0 || chown(files.Path("perf-10.map").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give files away";
  }
  JitMaps maps(files.folder());
  EXPECT_EQ(maps.Lookup(10, 0x1010), "");
  EXPECT_EQ(maps.diagnostics().total(), 1u);
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
