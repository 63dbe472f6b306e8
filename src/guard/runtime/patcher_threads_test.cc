// SPDX-License-Identifier: Apache-2.0
// Whole modules are patched and restored while threads run in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "guard/runtime/code_address.h"
#include "guard/runtime/patcher.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

thread_local uint64_t t_entries __attribute__((tls_model("initial-exec"))) = 0;

#if defined(__clang__)
#define HOOK_FUNCTION extern "C" __attribute__((noinline))
#else
#define HOOK_FUNCTION extern "C" __attribute__((noinline, target("general-regs-only")))
#endif
HOOK_FUNCTION void CountThreadEntry(uint64_t, uint64_t) { ++t_entries; }

__attribute__((noinline)) int ThrowAt(int depth) {
  if (depth == 0) throw std::runtime_error("bottom");
  std::string held(static_cast<size_t>(depth) * 7, 'x');
  return ThrowAt(depth - 1) + static_cast<int>(held.size());
}

// Strings, numbers, containers, streams, sorting, exceptions; always the same sum.
uint64_t Work(int round) {
  uint64_t sum = 0;
  std::map<std::string, int> words;
  for (int i = 0; i < 20; ++i) words["word" + std::to_string(i * round % 13)] += i;
  for (const auto& [word, count] : words)
    sum = sum * 31 + word.size() + static_cast<uint64_t>(count);
  std::vector<double> values;
  for (int i = 0; i < 30; ++i)
    values.push_back(std::strtod(std::to_string(i * 37 % 29).c_str(), nullptr));
  std::qsort(values.data(), values.size(), sizeof(double), [](const void* a, const void* b) {
    const double x = *static_cast<const double*>(a), y = *static_cast<const double*>(b);
    return x < y ? -1 : x > y ? 1 : 0;
  });
  std::ostringstream stream;
  for (const double value : values) stream << value << ' ';
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f %s %d", values[5], "text", round);
  sum = sum * 31 + stream.str().size() + std::strlen(text);
  try {
    sum += static_cast<uint64_t>(ThrowAt(5));
  } catch (const std::runtime_error& error) {
    sum = sum * 31 + std::strlen(error.what());
  }
  return sum;
}

struct Everything {
  std::vector<PatchRequest> requests;
  std::vector<std::string> code;  // of every executable segment
  std::vector<LoadedModule> modules;
};

std::string CodeOf(const LoadedModule::Segment& segment) {
  return {reinterpret_cast<const char*>(BytesAt(segment.range.begin)),
          segment.range.end - segment.range.begin};
}

Everything AllFunctions(const Hook& hook) {
  Everything all;
  const MappedArray<LoadedModule> modules = LoadedModules();
  for (const LoadedModule& module : modules) {
    if (module.role == ModuleRole::kLoader || module.role == ModuleRole::kVdso) continue;
    MappedArray<FunctionStart> starts;
    if (ReadFunctionStarts(module, starts) != StartsState::kRead) continue;
    all.modules.push_back(module);
    for (const FunctionStart& start : starts) {
      if (start.entry == hook.function) continue;
      all.requests.push_back({start, hook});
    }
    for (uint32_t i = 0; i < module.segment_count; ++i) {
      if (module.segments[i].executable) all.code.push_back(CodeOf(module.segments[i]));
    }
  }
  return all;
}

void ExpectCodeAsBefore(const Everything& all) {
  size_t at = 0;
  for (const LoadedModule& module : all.modules) {
    for (uint32_t i = 0; i < module.segment_count; ++i) {
      if (!module.segments[i].executable) continue;
      EXPECT_TRUE(CodeOf(module.segments[i]) == all.code[at]) << module.path;
      ++at;
    }
  }
}

Hook CountingHook() {
  Hook hook;
  hook.kind = HookKind::kTraining;
  hook.function = reinterpret_cast<uint64_t>(&CountThreadEntry);
  return hook;
}

// Static, so that no thread or trampoline outlives it.
Patcher& ThePatcher() {
  static Patcher patcher{PatcherOptions{}};
  return patcher;
}

void PrintOutcomes(const std::vector<PatchRequest>& requests) {
  size_t count[kPatchOutcomes] = {};
  for (const PatchRequest& request : requests) ++count[static_cast<uint32_t>(request.outcome)];
  for (uint32_t i = 0; i < kPatchOutcomes; ++i) {
    if (count[i] != 0) std::printf("  %zu %s\n", count[i], Name(static_cast<PatchOutcome>(i)));
  }
}

TEST(PatcherThreads, EveryFunctionOfTheProcessIsPatchedAndRestored) {
  const uint64_t expected = Work(3);
  Everything all = AllFunctions(CountingHook());
  ASSERT_GT(all.requests.size(), 1000u);
  const size_t patched = ThePatcher().Install(all.requests, true);
  t_entries = 0;
  const uint64_t sum = Work(3);
  const uint64_t entries = t_entries;
  EXPECT_EQ(ThePatcher().RemoveAll(), patched);
  EXPECT_EQ(sum, expected);
  EXPECT_GT(entries, 500u);
  t_entries = 0;
  EXPECT_EQ(Work(3), expected);
  EXPECT_EQ(t_entries, 0u);
  ExpectCodeAsBefore(all);
  PrintOutcomes(all.requests);
  EXPECT_GT(patched, all.requests.size() * 8 / 10);
}

// An emulator takes its time.
#if defined(__aarch64__)
constexpr int kBatches = 6, kWorkPerBatch = 16;
#else
constexpr int kBatches = 2, kWorkPerBatch = 2;
#endif

TEST(PatcherThreads, EightThreadsRunWhileEverythingIsPatchedReplacedAndRestored) {
  const uint64_t expected = Work(3);
  Everything all = AllFunctions(CountingHook());
  size_t patched = ThePatcher().Install(all.requests, true);
  EXPECT_GT(patched, all.requests.size() * 8 / 10);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> wrong{0}, rounds{0}, entries{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        if (Work(3) != expected) ++wrong;
        ++rounds;
      }
      entries += t_entries;
    });
  }
  const auto wait = [&] {
    const uint64_t before = rounds;
    while (rounds < before + kWorkPerBatch) std::this_thread::yield();
  };
  for (int batch = 0; batch < kBatches; ++batch) {
    wait();
    if (batch % 2 == 0) {  // a hook replaces a hook
      EXPECT_EQ(ThePatcher().Install(all.requests), patched);
      wait();
    }
    EXPECT_EQ(ThePatcher().RemoveAll(), patched);
    patched = ThePatcher().Install(all.requests);
  }
  EXPECT_EQ(ThePatcher().RemoveAll(), patched);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(entries, 0u);
  ExpectCodeAsBefore(all);
  PrintOutcomes(all.requests);
#if defined(__aarch64__)
  EXPECT_GT(patched, all.requests.size() * 8 / 10);
#else
  EXPECT_GT(patched, 100u);  // the others begin with short instructions
#endif
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
