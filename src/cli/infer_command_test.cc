// SPDX-License-Identifier: Apache-2.0
//
// culprit profile and culprit infer run in-process on small traces.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/test_folder.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "corpus/corpus.h"
#include "episode/syscall_trace.h"

namespace culprit::cli::TEST_FILE {
namespace {

using episode::SyscallTrace;
using nlohmann::json;

struct ServerOptions {
  bool stacks = false;
  int requests = 60;
  int failed_accepts = 0;
  std::string process = "httpd";
};

SyscallTrace Server(const ServerOptions& options) {
  SyscallTrace made(INT64_C(10'000'000'000));
  int64_t at = 1'000;
  const auto call = [&](const char* name, const char* stack) -> trace::Event& {
    trace::Event& event = made.Call(options.process, name, at, 1'000, options.stacks ? stack : "");
    at += 2'000;
    return event;
  };
  for (int i = 0; i < options.requests; ++i) {
    call("accept4", "httpd!main;httpd!child_main;httpd!unixd_accept;libc.so.6!accept4");
    call("read", "httpd!main;httpd!child_main;httpd!process;httpd!get_line;libc.so.6!read");
    call("writev", "httpd!main;httpd!child_main;httpd!process;httpd!send;libc.so.6!writev");
    call("close", "httpd!main;httpd!child_main;httpd!process;libc.so.6!close");
    at += 1'000'000;
  }
  for (int i = 0; i < options.failed_accepts; ++i) {
    call("accept4", "httpd!main;httpd!child_main;httpd!unixd_accept").arg1 = -11;
  }
  return made;
}

class InferCommandTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const ServerOptions& options) {
    const std::string path = folder_ / name;
    EXPECT_TRUE(WriteTrace(Server(options).small.trace, path, Overwrite::kRefuse).ok());
    return path;
  }
  int Run(const std::vector<std::string>& words) {
    output_ = std::make_unique<BufferOutput>();
    return RunCulprit(words, *output_);
  }
  json Inferred(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"infer", "--json"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(Run(all), 0) << output_->err();
    return json::parse(output_->out());
  }
  bool Says(const std::string& text) const {
    return (output_->out() + output_->err()).find(text) != std::string::npos;
  }
  std::string Profile() {
    const std::string path = folder_ / "app.cprof";
    const std::string trace = Write("staging.ctrace", {.stacks = true, .requests = 50});
    EXPECT_EQ(Run({"profile", trace, "-o", path}), 0) << output_->err();
    return path;
  }

  TestFolder folder_;
  std::unique_ptr<BufferOutput> output_;
};

TEST_F(InferCommandTest, NamesTheFunctionThatLoops) {
  const std::string profile = Profile();
  EXPECT_TRUE(Says("functions       6"));
  const std::string normal = Write("normal.ctrace", {});
  const std::string buggy = Write("buggy.ctrace", {.requests = 30, .failed_accepts = 2000});
  const json inferred = Inferred({buggy, "--profile", profile, "--against", normal});
  ASSERT_FALSE(inferred["functions"].empty());
  const json& first = inferred["functions"][0];
  EXPECT_EQ(first["function"], "httpd!unixd_accept");
  EXPECT_EQ(first["score"], 2000);
  EXPECT_EQ(first["symbols"], json({"accept4"}));
  EXPECT_GE(first["first_ns"].get<int64_t>(), 0);
  EXPECT_GT(first["last_ns"].get<int64_t>(), first["first_ns"].get<int64_t>());
  EXPECT_GT(first["matched"].get<int>(), 0);
  EXPECT_FALSE(first["episodes"].empty());
  EXPECT_FALSE(first["units"].empty());
  EXPECT_EQ(inferred["excess_calls"][0]["error"], "EAGAIN");
  EXPECT_EQ(inferred["null_rows"], 0);
  EXPECT_GT(inferred["units"].get<int>(), 20);
  EXPECT_GT(inferred["anomalous"].get<int>(), 0);
  EXPECT_TRUE(inferred["stacks"].empty());
  EXPECT_EQ(Run({"infer", buggy, "-p", profile, "--against", normal}), 0);
  EXPECT_TRUE(Says("httpd!unixd_accept"));
  EXPECT_TRUE(Says("mostly EAGAIN"));
}

TEST_F(InferCommandTest, NormalAgainstNormalBlamesNobody) {
  const std::string profile = Profile();
  const std::string a = Write("a.ctrace", {});
  const std::string b = Write("b.ctrace", {.requests = 200});
  EXPECT_TRUE(Inferred({a, "-p", profile, "--against", b})["functions"].empty());
  EXPECT_EQ(Run({"infer", a, "-p", profile}), 0);
  EXPECT_TRUE(Says("nobody is blamed"));
}

TEST_F(InferCommandTest, WhatAnyOfSeveralNormalTracesShowsIsNormal) {
  const std::string profile = Profile();
  const std::string day = Write("day.ctrace", {});
  // A port scanner knocks every night.
  const std::string night = Write("night.ctrace", {.requests = 30, .failed_accepts = 2000});
  const std::string next = Write("next.ctrace", {.requests = 40, .failed_accepts = 2500});
  EXPECT_FALSE(Inferred({next, "-p", profile, "--against", day})["functions"].empty());
  const json both = Inferred({next, "-p", profile, "--against", day, "--against", night});
  EXPECT_TRUE(both["functions"].empty());
  EXPECT_EQ(both["against"], json({day, night}));
  EXPECT_EQ(Run({"infer", next, "-p", profile, "--against", day, "--against", night}), 0);
  EXPECT_TRUE(Says(night + " (nearest)"));
  EXPECT_TRUE(Says("nobody is blamed"));
}

TEST_F(InferCommandTest, InstancesOfTheTraceAreItsUnits) {
  const std::string profile = Profile();
  SyscallTrace made = Server({.requests = 60});
  // Of every fourth request the accept and the read, as sampled units of guards are.
  for (int64_t i = 0; i < 15; ++i) {
    const int64_t t0_ns = 1'000 + 4 * i * 1'008'000;
    made.small.AddInstance("httpd: process", "httpd", t0_ns, t0_ns + 3'500);
  }
  const std::string path = folder_ / "units.ctrace";
  ASSERT_TRUE(WriteTrace(made.small.trace, path, Overwrite::kRefuse).ok());
  const json by_instances = Inferred({path, "-p", profile});
  EXPECT_EQ(by_instances["unit_instances"], 15);
  const json by_gaps = Inferred({path, "-p", profile, "--units", "gaps"});
  EXPECT_EQ(by_gaps["unit_instances"], 0);
  // All gaps are alike; the first instance begins where the trace does.
  EXPECT_EQ(by_gaps["units"], 1);
  EXPECT_EQ(by_instances["units"], 30);
  EXPECT_EQ(Run({"infer", path, "-p", profile}), 0);
  EXPECT_TRUE(Says("cut at 15 instances and gaps"));
}

TEST_F(InferCommandTest, ThePapersMethodIsThereToo) {
  const std::string profile = Profile();
  const std::string buggy = Write("buggy.ctrace", {.requests = 60, .failed_accepts = 2000});
  const json inferred = Inferred({buggy, "-p", profile, "--method", "paper"});
  EXPECT_EQ(inferred["method"], "paper");
  ASSERT_FALSE(inferred["functions"].empty());
  EXPECT_EQ(inferred["functions"][0]["function"], "httpd!unixd_accept");
  EXPECT_EQ(Run({"infer", buggy, "-p", profile, "--method", "paper"}), 0);
  EXPECT_TRUE(Says("episodes the unusual units have"));
}

TEST_F(InferCommandTest, StacksOfTheTraceStandBeside) {
  const std::string profile = Profile();
  const std::string buggy =
      Write("buggy.ctrace", {.stacks = true, .requests = 30, .failed_accepts = 2000});
  const json inferred = Inferred({buggy, "-p", profile});
  ASSERT_FALSE(inferred["stacks"].empty());
  EXPECT_EQ(inferred["stacks"][0]["function"], "httpd!unixd_accept");
  EXPECT_EQ(Run({"infer", buggy, "-p", profile}), 0);
  EXPECT_TRUE(Says("they are seen, not inferred"));
}

TEST_F(InferCommandTest, OtherProcessesOfTheMachineAreLeftOut) {
  const std::string profile = Profile();
  SyscallTrace made = Server({.requests = 30});
  for (int64_t i = 0; i < 5'000; ++i) made.Call("backup", "fdatasync", i * 1'000, 10);
  const std::string path = folder_ / "machine.ctrace";
  ASSERT_TRUE(WriteTrace(made.small.trace, path, Overwrite::kRefuse).ok());
  EXPECT_TRUE(Inferred({path, "-p", profile})["functions"].empty());
  const json all = Inferred({path, "-p", profile, "--process", "*"});
  ASSERT_FALSE(all["functions"].empty());
  EXPECT_EQ(all["functions"][0]["function"], "[not in profile]");
}

TEST_F(InferCommandTest, SaysWhatIsMissing) {
  const std::string profile = Profile();
  const std::string none = folder_ / "none.ctrace";
  trace::SmallTrace empty(0, 100);
  ASSERT_TRUE(WriteTrace(empty.trace, none, Overwrite::kRefuse).ok());
  EXPECT_EQ(Run({"infer", none, "-p", profile}), 1);
  EXPECT_TRUE(Says("has no system calls"));
  const std::string bare = Write("bare.ctrace", {});
  EXPECT_EQ(Run({"profile", bare, "-o", folder_ / "x.cprof"}), 1);
  EXPECT_TRUE(Says("no system call has a user stack"));
  EXPECT_EQ(Run({"profile", none, "-o", folder_ / "x.cprof"}), 1);
  EXPECT_TRUE(Says("no system calls"));
  const std::string tiny = Write("tiny.ctrace", {.requests = 2});
  EXPECT_EQ(Run({"infer", tiny, "-p", profile}), 0);
  EXPECT_TRUE(Says("only 8 system calls"));
  EXPECT_EQ(Run({"infer", bare, "-p", bare}), 1);
  EXPECT_TRUE(Says("is not a profile"));
  const std::string other = Write("other.ctrace", {.process = "nginx"});
  EXPECT_EQ(Run({"infer", other, "-p", profile}), 0);
  EXPECT_TRUE(Says("no process named like those of the profile"));
}

TEST_F(InferCommandTest, ProfilesAreMadeOfCorporaMergedAndShown) {
  const std::string corpus_path = folder_ / "fleet";
  auto corpus = corpus::Corpus::Create(corpus_path);
  ASSERT_TRUE(corpus.ok());
  for (const int requests : {10, 20}) {
    const std::string path =
        Write("r" + std::to_string(requests), {.stacks = true, .requests = requests});
    ASSERT_TRUE(corpus.value().Add(path, {}).ok());
  }
  const std::string whole = folder_ / "whole.cprof";
  ASSERT_EQ(Run({"profile", corpus_path, "-o", whole}), 0) << output_->err();
  const std::string a = folder_ / "a.cprof";
  const std::string b = folder_ / "b.cprof";
  const std::string sum = folder_ / "sum.cprof";
  ASSERT_EQ(Run({"profile", folder_ / "r10", "-o", a}), 0);
  ASSERT_EQ(Run({"profile", folder_ / "r20", "-o", b}), 0);
  ASSERT_EQ(Run({"profile", "merge", a, b, "-o", sum}), 0) << output_->err();
  EXPECT_EQ(Run({"profile", "merge", a, b, "-o", sum}), 1);  // it exists
  const auto shown = [&](const std::string& path) {
    EXPECT_EQ(Run({"profile", "show", path, "--json"}), 0);
    return json::parse(output_->out());
  };
  const json one = shown(whole);
  const json two = shown(sum);
  ASSERT_EQ(one["functions"].size(), two["functions"].size());
  for (size_t i = 0; i < one["functions"].size(); ++i) {
    EXPECT_EQ(one["functions"][i]["inclusive"], two["functions"][i]["inclusive"]);
    EXPECT_EQ(one["functions"][i]["innermost"], two["functions"][i]["innermost"]);
  }
  EXPECT_EQ(one["syscalls"], 120);
  ASSERT_EQ(Run({"profile", "show", sum, "--function", "unixd*"}), 0);
  EXPECT_TRUE(Says("httpd!unixd_accept"));
  EXPECT_FALSE(Says("httpd!send"));
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
