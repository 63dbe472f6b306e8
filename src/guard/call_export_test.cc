// SPDX-License-Identifier: Apache-2.0
#include "guard/call_export.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "guard/simulated_training.h"
#include "trace/small_trace.h"

namespace culprit::guard::TEST_FILE {
namespace {

TEST(CallExport, PutsTheFunctionsAroundSystemCallsIntoARecording) {
  const TestFolder folder;
  SimulatedProcess process(7);
  SimulatedThread thread(process, 7);
  thread.LogTimes();
  trace::SmallTrace recording(0, 10'000'000);
  const auto call = [&](uint64_t time_ns) {
    const auto time = static_cast<int64_t>(time_ns);
    recording.Add(trace::EventKind::kSyscall, "server", time, time + 1);
  };
  uint64_t own_ns = 0;
  thread.Call("main", 64, [&] {
    thread.Call("Serve", 32, [&] {
      thread.Place();
      call(thread.Now());
    });
    own_ns = thread.Now();
    thread.OwnWork(1000);
    thread.Call("Idle", 32, [] {});
    thread.Place();
    call(thread.Now());
  });
  call(own_ns + 100);
  process.Write(folder);
  thread.Write(folder);
  recording.trace.dictionary.thread(trace::ThreadId(0)).tid = 7;
  ASSERT_TRUE(trace::WriteTrace(recording.trace, folder / "rec.ctrace", Overwrite::kRefuse).ok());
  const auto reader = trace::TraceReader::Open(folder / "rec.ctrace");
  ASSERT_TRUE(reader.ok());
  Diagnostics diagnostics;
  const auto added = AddCalls(folder.path(), reader.value(), folder / "both.ctrace",
                              Overwrite::kRefuse, diagnostics);
  ASSERT_TRUE(added.ok()) << added.error().ToString();
  EXPECT_EQ(added.value().entries, 3u);
  EXPECT_EQ(added.value().calls, 2u);
  EXPECT_EQ(added.value().syscalls, 2u);
  EXPECT_EQ(added.value().own, 1u);
  EXPECT_EQ(added.value().owned, 2u);
  const auto both = trace::ReadTrace(folder / "both.ctrace");
  ASSERT_TRUE(both.ok());
  std::map<std::string, int> calls;
  for (const trace::Event& event : both.value().events) {
    if (event.kind == trace::EventKind::kCall) {
      ++calls[both.value().dictionary.StackText(event.stack)];
    }
  }
  EXPECT_EQ(calls, (std::map<std::string, int>{{"server!+0x1000", 1},
                                               {"server!+0x1000;server!+0x2000", 1}}));
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
