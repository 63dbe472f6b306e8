// SPDX-License-Identifier: Apache-2.0
#include "episode/profile.h"

#include <gtest/gtest.h>

#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

using trace::EventKind;

Profile ProfileOf(const SyscallTrace& made, ProfileOptions options = {}) {
  ProfileBuilder builder(std::move(options));
  builder.Add(made.small.Reader());
  return builder.Finish();
}

const ProfiledFunction* Find(const Profile& profile, std::string_view label) {
  for (const ProfiledFunction& function : profile.functions) {
    if (function.name.Label() == label) return &function;
  }
  return nullptr;
}

uint64_t CountOf(const Profile& profile, const std::vector<SymbolCount>& counts,
                 std::string_view name) {
  for (const SymbolCount& row : counts) {
    if (profile.symbols.Name(row.symbol) == name) return row.count;
  }
  return 0;
}

TEST(Profile, InnermostFunctionAndItsCallersOwnACall) {
  SyscallTrace made;
  made.Call("t", "read", 10, 1, "app!main;app!Loop;app!Fill;libc.so.6!read;[kernel]!sys_read");
  made.Call("t", "write", 20, 1, "app!main;app!Loop;libc.so.6!write");
  made.Call("t", "close", 30, 1, "libc.so.6!_start;libc.so.6!close");
  const Profile profile = ProfileOf(made);
  EXPECT_EQ(profile.syscalls, 3u);
  EXPECT_EQ(profile.owned, 2u);
  ASSERT_EQ(profile.functions.size(), 3u);
  const ProfiledFunction* loop = Find(profile, "app!Loop");
  EXPECT_EQ(CountOf(profile, loop->innermost, "write"), 1u);
  EXPECT_EQ(CountOf(profile, loop->innermost, "read"), 0u);
  EXPECT_EQ(CountOf(profile, loop->inclusive, "read"), 1u);
  EXPECT_EQ(Find(profile, "app!Fill")->Innermost(), 1u);
  EXPECT_EQ(Find(profile, "app!main")->Innermost(), 0u);
  EXPECT_EQ(Find(profile, "app!main")->Inclusive(), 2u);
}

TEST(Profile, RecursionCountsACallOnce) {
  SyscallTrace made;
  made.Call("t", "read", 10, 1, "app!main;app!Walk;app!Walk;app!Walk");
  EXPECT_EQ(Find(ProfileOf(made), "app!Walk")->Inclusive(), 1u);
}

// m!+0x1: SmallTrace has no offsets, so an unnamed frame is made by hand.
trace::StackId Unnamed(SyscallTrace& made, trace::StackId caller, uint64_t offset) {
  trace::Dictionary& d = made.small.trace.dictionary;
  const trace::ModuleId module = d.InternModule({.name = d.Intern("app")});
  return d.InternStack(caller, d.InternFrame({.module = module, .offset = offset}));
}

TEST(Profile, AnUnnamedFrameFallsToItsNearestNamedCaller) {
  SyscallTrace made;
  made.Call("t", "read", 10, 1).stack = Unnamed(made, made.small.Stack("app!main;app!Loop"), 16);
  const Profile profile = ProfileOf(made);
  ASSERT_EQ(profile.functions.size(), 2u);
  EXPECT_EQ(Find(profile, "app!Loop")->Innermost(), 1u);
  const Profile unnamed = ProfileOf(made, {.owners = {.unnamed = true}});
  ASSERT_NE(Find(unnamed, "app!+0x10"), nullptr);
  EXPECT_EQ(Find(unnamed, "app!+0x10")->Innermost(), 1u);
  EXPECT_EQ(Find(unnamed, "app!Loop")->Innermost(), 0u);
}

TEST(Profile, AStackWithoutNamesIsOwnedByItsOffsets) {
  SyscallTrace made;
  made.Call("t", "read", 10, 1).stack = Unnamed(made, Unnamed(made, {}, 256), 16);
  const Profile profile = ProfileOf(made);
  EXPECT_EQ(Find(profile, "app!+0x10")->Innermost(), 1u);
  EXPECT_EQ(Find(profile, "app!+0x100")->Inclusive(), 1u);
}

TEST(Profile, WhatAStrippedProgramCallsThroughALibraryIsNotTheLibrarys) {
  SyscallTrace made;
  const trace::StackId main = Unnamed(made, {}, 0x10);
  trace::Dictionary& d = made.small.trace.dictionary;
  const trace::ModuleId library = d.InternModule({.name = d.Intern("libevent.so")});
  const trace::FrameId frame =
      d.InternFrame({.module = library, .function = d.Intern("event_loop")});
  const trace::StackId loop = d.InternStack(main, frame);
  made.Call("t", "read", 10, 1).stack = Unnamed(made, loop, 0x20);
  const Profile profile = ProfileOf(made);
  ASSERT_EQ(profile.functions.size(), 3u);
  EXPECT_EQ(Find(profile, "libevent.so!event_loop")->Innermost(), 0u);
  EXPECT_EQ(Find(profile, "libevent.so!event_loop")->Inclusive(), 1u);
  for (const ProfiledFunction& function : profile.functions) {
    EXPECT_EQ(function.Innermost(), function.name.function == "+0x20" ? 1u : 0u);
  }
}

TEST(Profile, FunctionsOfAnInterpretedProgramComeBeforeTheInterpreter) {
  SyscallTrace made;
  made.Call("t", "read", 10, 1, "python3!main;[jit]!py::serve;python3!_PyEval;python3!os_read");
  const Profile profile = ProfileOf(made);
  ASSERT_EQ(profile.functions.size(), 1u);
  EXPECT_EQ(profile.functions[0].name.Label(), "[jit]!py::serve");
}

// As the recorder has them from an interpreter's probes.
TEST(Profile, CallsOfInterpretedFunctionsComeBeforeTheInterpretersFrames) {
  SyscallTrace made;
  made.small.Add(EventKind::kCall, "t", 5, 20, "[jit]!py::serve:app.py");
  made.small.Add(EventKind::kCall, "t", 8, 15, "[jit]!py::serve:app.py;[jit]!py::load:app.py");
  made.Call("t", "read", 10, 1, "python3!main;python3!_PyEval;python3!os_read");
  made.Call("t", "write", 17, 1, "python3!main;python3!_PyEval;python3!os_write");
  made.Call("t", "close", 30, 1, "python3!main;python3!os_close");
  const Profile profile = ProfileOf(made);
  EXPECT_EQ(CountOf(profile, Find(profile, "[jit]!py::load:app.py")->innermost, "read"), 1u);
  const ProfiledFunction* serve = Find(profile, "[jit]!py::serve:app.py");
  EXPECT_EQ(CountOf(profile, serve->innermost, "write"), 1u);
  EXPECT_EQ(serve->Inclusive(), 2u);
  // Outside of all known functions the stack is all there is.
  EXPECT_EQ(Find(profile, "python3!os_close")->Innermost(), 1u);
  EXPECT_EQ(Find(profile, "python3!os_read"), nullptr);
}

TEST(Profile, ModulesFunctionsAndProcessesCanBeChosen) {
  SyscallTrace made;
  made.Call("t", "read", 10, 1, "app!main;lib!Get;dep!Raw");
  made.Call("u", "read", 10, 1, "app!main;lib!Get");
  const Profile modules = ProfileOf(made, {.owners = {.modules = {"lib*"}}});
  ASSERT_EQ(modules.functions.size(), 1u);
  EXPECT_EQ(modules.functions[0].Innermost(), 2u);
  const Profile functions = ProfileOf(made, {.owners = {.functions = {"main", "R*"}}});
  ASSERT_EQ(functions.functions.size(), 2u);
  EXPECT_EQ(Find(functions, "app!main")->Innermost(), 1u);
  const Profile processes = ProfileOf(made, {.processes = {"u"}});
  EXPECT_EQ(processes.syscalls, 1u);
  EXPECT_EQ(processes.processes, std::vector<std::string>{"u"});
}

TEST(Profile, FunctionEntriesAndExitsGiveOwnersWhereCallsHaveNoStack) {
  SyscallTrace made;
  made.small.Add(EventKind::kCall, "t", 0, 100, "app!main");
  made.small.Add(EventKind::kCall, "t", 10, 40, "app!main;app!Load");
  made.small.Add(EventKind::kCall, "t", 20, 30, "app!main;app!Load;app!Parse");
  made.Call("t", "read", 12, 2);
  made.Call("t", "brk", 22, 2);
  made.Call("t", "close", 35, 2);
  made.Call("t", "write", 50, 2);
  made.Call("t", "exit", 200, 0);  // after main: nobody's
  const Profile profile = ProfileOf(made);
  EXPECT_EQ(profile.owned, 4u);
  const ProfiledFunction* load = Find(profile, "app!Load");
  EXPECT_EQ(CountOf(profile, load->innermost, "read"), 1u);
  EXPECT_EQ(CountOf(profile, load->innermost, "close"), 1u);
  EXPECT_EQ(CountOf(profile, load->innermost, "brk"), 0u);
  EXPECT_EQ(load->Inclusive(), 3u);
  EXPECT_EQ(CountOf(profile, Find(profile, "app!main")->innermost, "write"), 1u);
}

TEST(Profile, EpisodesAreThoseOfAFunctionsOwnSequencePerThread) {
  SyscallTrace made;
  for (int64_t i = 0; i < 6; ++i) {
    made.Call("t", "openat", 100 * i, 1, "app!main;app!Copy");
    made.Call("t", "getpid", 100 * i + 10, 1, "app!main;app!Log");
    made.Call("t", "close", 100 * i + 20, 1, "app!main;app!Copy");
  }
  const Profile profile = ProfileOf(made);
  const ProfiledFunction* copy = Find(profile, "app!Copy");
  const Symbol open = *profile.symbols.Find("openat");
  const Symbol close = *profile.symbols.Find("close");
  const Episode pair = {.symbols = {open, close}, .length = 2};
  EXPECT_NE(std::find(copy->episodes.begin(), copy->episodes.end(), EpisodeCount{pair, 6}),
            copy->episodes.end());
  for (const EpisodeCount& row : copy->episodes) {
    EXPECT_FALSE(row.episode.Has(*profile.symbols.Find("getpid")));
  }
  EXPECT_TRUE(Find(profile, "app!main")->episodes.empty());
}

TEST(Profile, IsTheSameForAnyNumberOfThreads) {
  SyscallTrace made;
  const char* const names[] = {"read", "write", "futex", "openat", "close"};
  for (int64_t i = 0; i < 400; ++i) {
    made.Call("t" + std::to_string(i % 3), names[i * i % 5], i * 10, 1,
              "app!main;app!F" + std::to_string(i * 7 % 11));
  }
  const Profile one = ProfileOf(made, {.jobs = 1});
  const Profile two = ProfileOf(made, {.jobs = 2});
  EXPECT_EQ(one.functions, two.functions);
  EXPECT_EQ(one.totals, two.totals);
}

TEST(Profile, MergingAddsUpWhateverTheOrderOfSymbols) {
  SyscallTrace a;
  a.Call("t", "read", 10, 3, "app!main;app!F");
  a.Call("t", "read", 20, 3, "app!main;app!F");
  SyscallTrace b;
  b.Call("t", "write", 10, 1, "app!main;app!G");
  b.Call("t", "read", 20, 4, "app!main;app!F");
  const Profile merged = MergeProfiles(ProfileOf(a), ProfileOf(b));
  EXPECT_EQ(merged.syscalls, 4u);
  EXPECT_EQ(merged.traces, 2u);
  EXPECT_EQ(CountOf(merged, Find(merged, "app!F")->innermost, "read"), 3u);
  EXPECT_EQ(CountOf(merged, Find(merged, "app!main")->inclusive, "write"), 1u);
  int64_t read_ns = 0;
  for (const SymbolTotal& total : merged.totals) {
    if (merged.symbols.Name(total.symbol) == "read") read_ns = total.dur_ns;
  }
  EXPECT_EQ(read_ns, 10);
}

TEST(Profile, FunctionsOfAnotherTraceOfTheSameTimeOwnTheCalls) {
  SyscallTrace calls;
  calls.Call("t", "read", 110, 1, "app!Wrong");
  calls.Call("t", "write", 150, 1);
  calls.Call("t", "close", 500, 1);
  calls.Call("u", "read", 110, 1);
  SyscallTrace functions;
  functions.small.Add(EventKind::kCall, "other", 0, 50, "app!Other");
  functions.small.Add(EventKind::kCall, "t", 100, 200, "app!main");
  functions.small.Add(EventKind::kCall, "t", 105, 120, "app!main;app!Fill");
  for (trace::Thread thread : functions.small.trace.dictionary.threads()) {
    // Threads are known by their ids, whatever their places in the two tables.
    const bool is_t = functions.small.trace.dictionary.Text(thread.name) == "t";
    functions.small.trace.dictionary.thread(trace::ThreadId(is_t ? 1 : 0)).tid = is_t ? 77 : 78;
  }
  calls.small.trace.dictionary.thread(trace::ThreadId(0)).tid = 77;
  calls.small.trace.metadata.clock = "CLOCK_MONOTONIC";
  functions.small.trace.metadata.clock = "monotonic";
  ProfileBuilder builder({});
  ASSERT_TRUE(builder.Add(calls.small.Reader(), functions.small.Reader()).ok());
  const Profile profile = builder.Finish();
  EXPECT_EQ(profile.syscalls, 4u);
  EXPECT_EQ(profile.owned, 2u);
  ASSERT_EQ(profile.functions.size(), 2u);
  EXPECT_EQ(CountOf(profile, Find(profile, "app!Fill")->innermost, "read"), 1u);
  EXPECT_EQ(CountOf(profile, Find(profile, "app!main")->innermost, "write"), 1u);
  EXPECT_EQ(Find(profile, "app!main")->Inclusive(), 2u);
}

TEST(Profile, FunctionsOfAnotherClockOrTimeAreRefused) {
  SyscallTrace calls(1000);
  SyscallTrace functions(1000);
  calls.Call("t", "read", 110, 1);
  functions.small.Add(EventKind::kCall, "t", 100, 200, "app!main");
  calls.small.trace.metadata.clock = "CLOCK_MONOTONIC";
  functions.small.trace.metadata.clock = "local";
  ProfileBuilder builder({});
  EXPECT_FALSE(builder.Add(calls.small.Reader(), functions.small.Reader()).ok());
  functions.small.trace.metadata.clock = "mono";
  EXPECT_TRUE(builder.Add(calls.small.Reader(), functions.small.Reader()).ok());
  calls.small.trace.metadata.begin_ns = 5000;
  calls.small.trace.metadata.end_ns = 6000;
  EXPECT_FALSE(builder.Add(calls.small.Reader(), functions.small.Reader()).ok());
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
