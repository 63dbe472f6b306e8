// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/role.h"

#include <gtest/gtest.h>

#include <utility>

#include "trace/small_trace.h"

namespace culprit::waitgraph::TEST_FILE {
namespace {

TEST(Role, NamesLoseWhatNumbersThem) {
  const std::pair<const char*, const char*> cases[] = {{"kworker/1:1H", "kworker"},
                                                       {"ksoftirqd/0", "ksoftirqd"},
                                                       {"Binder:512_3", "Binder"},
                                                       {"pool-1-thread-12", "pool-1-thread"},
                                                       {"kcompactd0", "kcompactd"},
                                                       {"jbd2/sda1-8", "jbd"},
                                                       {"postgres", "postgres"},
                                                       {"worker-", "worker-"},
                                                       {"/usr/bin/x", "/usr/bin/x"},
                                                       {"7", "7"},
                                                       {"", ""}};
  for (const auto& [name, plain] : cases) EXPECT_EQ(WithoutNumber(name), plain) << name;
}

TEST(Role, FunctionsAreCalledByTheEndOfTheirNames) {
  trace::SmallTrace small(0, 1);
  const std::pair<const char*, const char*> cases[] = {
      {"m!PostgresMain", "PostgresMain"},
      {"m!android::audio::(anonymous namespace)::WriteThread::threadLoop()",
       "WriteThread::threadLoop"},
      {"m!std::__1::vector<int, std::allocator<int> >::resize(unsigned long)", "vector::resize"},
      {"m!android.os.Looper.loopOnce", "Looper.loopOnce"},
      {"m!net/http.(*conn).serve", "(*conn).serve"},
      {"m!(anonymous namespace)::ServeRequests()", "ServeRequests"},
      {"m!main", "main"}};
  for (const auto& [frame, name] : cases) {
    const trace::StackId stack = small.Stack(frame);
    const FunctionPaths paths(small.trace.dictionary);
    EXPECT_EQ(paths.ShortName(paths.function(paths.Of(stack))), name) << frame;
  }
}

}  // namespace
}  // namespace culprit::waitgraph::TEST_FILE
