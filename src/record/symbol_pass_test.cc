// SPDX-License-Identifier: Apache-2.0
#include "record/symbol_pass.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/test_folder.h"
#include "record/process_scan.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

extern "C" __attribute__((noinline)) int culprit_symbol_pass_probe(int x) {
  asm volatile("");
  return x + 1;
}

namespace culprit::record::TEST_FILE {
namespace {

using trace::Frame;

TEST(SymbolPass, NamesAPlaceInAModule) {
  const auto address = reinterpret_cast<uint64_t>(&culprit_symbol_pass_probe);
  trace::Trace trace;
  const auto self = ScanProcess(getpid(), true);
  ASSERT_TRUE(self.has_value());
  for (const MapEntry& map : self->maps) {
    if (address < map.start || address >= map.end) continue;
    auto& dictionary = trace.dictionary;
    const auto module = dictionary.InternModule(
        {.name = dictionary.Intern("test"), .path = dictionary.Intern(map.path)});
    const auto frame = dictionary.InternFrame(
        Frame{.module = module, .offset = address - map.start + map.file_offset});
    trace.events.push_back({.dur_ns = 1, .stack = dictionary.InternStack({}, frame)});
  }
  ASSERT_EQ(trace.events.size(), 1u);
  const SymbolCounts counts = SymbolizeTrace(trace, true);
  EXPECT_EQ(counts.named, 1u);
  EXPECT_EQ(counts.user_stacks, 1u);
  EXPECT_EQ(counts.complete_stacks, 0u);
  EXPECT_EQ(trace.dictionary.StackText(trace.events[0].stack),
            "[truncated];test!culprit_symbol_pass_probe");
}

// What a stack says about itself does not depend on what hangs below it.
TEST(SymbolPass, MarksStacksThatDoNotBeginWhereThreadsBegin) {
  trace::Trace trace;
  auto& d = trace.dictionary;
  const auto whole = d.InternStack({d.InternFrame("app", "_start"), d.InternFrame("app", "main")});
  const auto cut = d.InternStack({d.InternFrame("app", "f")});
  Frame kernel{.module = d.InternModule({.name = d.Intern("[kernel]")}),
               .function = d.Intern("schedule"),
               .flags = trace::kKernelMode};
  const auto whole_kernel = d.InternStack(whole, d.InternFrame(kernel));
  const auto cut_kernel = d.InternStack(cut, d.InternFrame(kernel));
  const auto kernel_only = d.InternStack({}, d.InternFrame(kernel));
  for (const auto stack : {whole, cut, whole_kernel, cut_kernel, kernel_only}) {
    trace.events.push_back({.dur_ns = 1, .stack = stack});
  }
  const SymbolCounts counts = SymbolizeTrace(trace, false);
  const auto text = [&](size_t i) { return trace.dictionary.StackText(trace.events[i].stack); };
  EXPECT_EQ(text(0), "app!_start;app!main");
  EXPECT_EQ(text(1), "[truncated];app!f");
  EXPECT_EQ(text(2), "app!_start;app!main;[kernel]!schedule");
  EXPECT_EQ(text(3), "[truncated];app!f;[kernel]!schedule");
  EXPECT_EQ(text(4), "[kernel]!schedule");
  EXPECT_EQ(counts.user_stacks, 2u);
  EXPECT_EQ(counts.complete_stacks, 1u);
}

TEST(SymbolPass, AFileKeepsItsEventsThreadsAndInstances) {
  const TestFolder folder;
  trace::Trace trace;
  auto& d = trace.dictionary;
  const auto thread = d.AddThread({.tid = 5, .name = d.Intern("worker")});
  const auto stack = d.InternStack({d.InternFrame("app", "_start")});
  trace.metadata.end_ns = 100;
  trace.events.push_back({.time_ns = 1,
                          .dur_ns = 9,
                          .thread = thread,
                          .stack = stack,
                          .kind = trace::EventKind::kWait});
  trace.instances.push_back(
      {.scenario = d.Intern("job"), .thread = thread, .t0_ns = 1, .t1_ns = 5});
  ASSERT_TRUE(trace::WriteTrace(trace, folder / "t.ctrace", Overwrite::kRefuse).ok());
  Diagnostics diagnostics;
  const auto counts = SymbolizeFile(folder / "t.ctrace", true, diagnostics);
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts.value().waits, 1u);
  EXPECT_EQ(counts.value().bytes, std::filesystem::file_size(folder / "t.ctrace"));
  const auto read = trace::ReadTrace(folder / "t.ctrace");
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().events.size(), 1u);
  EXPECT_EQ(read.value().dictionary.StackText(read.value().events[0].stack), "app!_start");
  EXPECT_EQ(read.value().dictionary.ThreadLabel(read.value().events[0].thread),
            d.ThreadLabel(thread));
  ASSERT_EQ(read.value().instances.size(), 1u);
  EXPECT_EQ(read.value().dictionary.Text(read.value().instances[0].scenario), "job");
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
