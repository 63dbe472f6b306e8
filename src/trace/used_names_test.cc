// SPDX-License-Identifier: Apache-2.0
#include "trace/used_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trace/random_trace.h"

namespace culprit::trace::TEST_FILE {
namespace {

std::string Label(const Dictionary& names, ThreadId id) {
  return id.valid() ? names.ThreadLabel(id) : "";
}

// All that an event says, in words.
std::string TextOf(const Dictionary& names, const Event& event) {
  std::string text = Label(names, event.thread) + "|" + Label(names, event.peer) + "|" +
                     names.StackText(event.stack);
  if (event.thread.valid()) {
    const Thread& thread = names.threads()[event.thread.value];
    text += "|" + std::to_string(thread.tid) + "|" + std::to_string(thread.start_ns);
    if (thread.process.valid()) {
      const Process& process = names.processes()[thread.process.value];
      text += "|" + std::to_string(process.pid) + std::string(names.Text(process.name));
    }
  }
  if (event.kind == EventKind::kMarker && event.arg0 >= 0) {
    text += "|" + std::string(names.Text(StringId(static_cast<size_t>(event.arg0))));
  }
  return text;
}

TEST(UsedNames, SayTheSameOfEveryEventAndHoldNothingElse) {
  for (const size_t events : {0, 1, 3, 20, 500}) {
    Trace trace = RandomTrace({.seed = 5 + events, .events = events, .threads = 40});
    const Dictionary whole = std::exchange(trace.dictionary, {});
    const std::vector<Event> before = trace.events;
    const std::vector<Instance> instances = trace.instances;
    CopyUsedNames(whole, trace);
    std::set<uint32_t> threads;
    std::set<uint32_t> stacks;
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(TextOf(trace.dictionary, trace.events[i]), TextOf(whole, before[i]));
      for (const ThreadId id : {before[i].thread, before[i].peer}) {
        if (id.valid()) threads.insert(id.value);
      }
      for (StackId id = before[i].stack; id.valid(); id = whole.stacks()[id.value].parent) {
        stacks.insert(id.value);
      }
    }
    for (size_t i = 0; i < instances.size(); ++i) {
      EXPECT_EQ(trace.dictionary.Text(trace.instances[i].scenario),
                whole.Text(instances[i].scenario));
      EXPECT_EQ(Label(trace.dictionary, trace.instances[i].thread),
                Label(whole, instances[i].thread));
      threads.insert(instances[i].thread.value);
    }
    EXPECT_EQ(trace.dictionary.threads().size(), threads.size());
    EXPECT_EQ(trace.dictionary.stacks().size(), stacks.size());
  }
}

}  // namespace
}  // namespace culprit::trace::TEST_FILE
