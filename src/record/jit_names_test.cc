// SPDX-License-Identifier: Apache-2.0
#include "record/jit_names.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/test_folder.h"

namespace culprit::record::TEST_FILE {
namespace {

using trace::Event;
using trace::EventKind;

class JitNamesTest : public testing::Test {
 protected:
  trace::ThreadId AddThread(int64_t pid) {
    const trace::ProcessId process = dictionary_.AddProcess({.pid = pid});
    return dictionary_.AddThread({.tid = pid, .process = process});
  }
  trace::StackId AddStack(uint64_t address) {
    const trace::ModuleId anonymous =
        dictionary_.InternModule({.name = dictionary_.Intern("[anon]")});
    return dictionary_.InternStack(
        {dictionary_.InternFrame("java", "main"),
         dictionary_.InternFrame({.module = anonymous, .offset = address}),
         dictionary_.InternFrame("libc.so.6", "write")});
  }
  void WriteMap(int64_t pid, const std::string& text) {
    std::ofstream(folder_.path() + "/perf-" + std::to_string(pid) + ".map") << text;
  }
  std::string Named(JitNames& names, trace::StackId stack, trace::ThreadId thread) {
    return dictionary_.StackText(names.Map({.thread = thread, .stack = stack}));
  }

  TestFolder folder_;
  trace::Dictionary dictionary_;
};

TEST_F(JitNamesTest, AnAddressIsNamedByTheMapOfItsProcess) {
  WriteMap(10, "1000 100 Foo::bar\n");
  WriteMap(11, "1000 100 other\n");
  const trace::ThreadId first = AddThread(10);
  const trace::ThreadId second = AddThread(11);
  const trace::ThreadId third = AddThread(12);
  const trace::StackId stack = AddStack(0x1010);
  JitNames names(dictionary_, folder_.path());
  EXPECT_EQ(Named(names, stack, first), "java!main;[jit]!Foo::bar;libc.so.6!write");
  EXPECT_EQ(Named(names, stack, second), "java!main;[jit]!other;libc.so.6!write");
  EXPECT_EQ(Named(names, stack, third), dictionary_.StackText(stack));
  EXPECT_EQ(names.named(), 2U);
}

TEST_F(JitNamesTest, StacksWithoutSuchCodeStayAsTheyAre) {
  const trace::ThreadId thread = AddThread(10);
  const trace::StackId stack = dictionary_.InternStack({dictionary_.InternFrame("app", "main")});
  JitNames names(dictionary_, folder_.path());
  EXPECT_EQ(names.Map({.thread = thread, .stack = stack}), stack);
  EXPECT_EQ(names.Map({.thread = thread}), trace::StackId());
  EXPECT_EQ(names.Map({.stack = AddStack(0x1010)}), AddStack(0x1010));
}

TEST_F(JitNamesTest, TheStackOfADiskRequestIsThatOfItsRequester) {
  WriteMap(10, "1000 100 Save\n");
  const trace::ThreadId thread = AddThread(10);
  const trace::ThreadId disk = dictionary_.AddThread({.kind = trace::ThreadKind::kDevice});
  JitNames names(dictionary_, folder_.path());
  const trace::StackId named = names.Map(
      {.thread = disk, .peer = thread, .stack = AddStack(0x1000), .kind = EventKind::kHardware});
  EXPECT_EQ(dictionary_.StackText(named), "java!main;[jit]!Save;libc.so.6!write");
}

TEST_F(JitNamesTest, MapsAreReadAgainOnRequest) {
  WriteMap(10, "1000 100 first\n");
  const trace::ThreadId thread = AddThread(10);
  const trace::StackId stack = AddStack(0x2010);
  JitNames names(dictionary_, folder_.path());
  EXPECT_EQ(Named(names, stack, thread), dictionary_.StackText(stack));
  WriteMap(10, "1000 100 first\n2000 100 later\n");
  EXPECT_EQ(Named(names, stack, thread), dictionary_.StackText(stack));
  names.Forget();
  EXPECT_EQ(Named(names, stack, thread), "java!main;[jit]!later;libc.so.6!write");
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
