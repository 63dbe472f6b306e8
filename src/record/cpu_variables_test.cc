// SPDX-License-Identifier: Apache-2.0
#ifdef CULPRIT_HAS_BPF_ENGINE
#include "record/cpu_variables.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

namespace culprit::record::TEST_FILE {
namespace {

class CpuVariables : public testing::Test {
 protected:
  using Types = std::unique_ptr<btf, decltype(&btf__free)>;

  void SetUp() override {
    ASSERT_NE(types_, nullptr);
    int_ = btf__add_int(types_.get(), "int", 4, BTF_INT_SIGNED);
    ASSERT_GT(btf__add_struct(types_.get(), "rq", 64), 0);
  }
  int Variable(const char* name, int type) {
    return btf__add_var(types_.get(), name, BTF_VAR_GLOBAL_ALLOCATED, type);
  }

  Types types_{btf__new_empty(), &btf__free};
  int int_ = 0;
};

TEST_F(CpuVariables, TheCountIsFoundWhereItIsAVariable) {
  const int count = Variable("__preempt_count", int_);
  const int queue = Variable("runqueues", int_ + 1);
  ASSERT_GT(btf__add_datasec(types_.get(), ".data..percpu", 4096), 0);
  btf__add_datasec_var_info(types_.get(), count, 100, 4);
  btf__add_datasec_var_info(types_.get(), queue, 1024, 64);
  EXPECT_EQ(PreemptCountFromQueue(types_.get()), 100 - 1024);
}

// In 6.2 it lies in a structure without a name, of a union without a name.
TEST_F(CpuVariables, TheCountIsFoundWhereItIsAMember) {
  const int members = btf__add_struct(types_.get(), nullptr, 16);
  btf__add_field(types_.get(), "current_task", int_, 0, 0);
  btf__add_field(types_.get(), "preempt_count", int_, 64, 0);
  const int either = btf__add_union(types_.get(), nullptr, 64);
  btf__add_field(types_.get(), nullptr, members, 0, 0);
  const int hot_type = btf__add_struct(types_.get(), "pcpu_hot", 128);
  btf__add_field(types_.get(), nullptr, either, 64 * 8, 0);
  const int queue = Variable("runqueues", int_ + 1);
  const int hot = Variable("pcpu_hot", hot_type);
  ASSERT_GT(btf__add_datasec(types_.get(), ".data..percpu", 4096), 0);
  btf__add_datasec_var_info(types_.get(), queue, 128, 64);
  btf__add_datasec_var_info(types_.get(), hot, 512, 128);
  EXPECT_EQ(PreemptCountFromQueue(types_.get()), 512 + 64 + 8 - 128);
}

TEST_F(CpuVariables, TypesThatDoNotTellAreNoAnswer) {
  EXPECT_EQ(PreemptCountFromQueue(types_.get()), std::nullopt);
  const int queue = Variable("runqueues", int_ + 1);
  const int count = Variable("__preempt_count", int_);
  ASSERT_GT(btf__add_datasec(types_.get(), ".data..percpu", 4096), 0);
  btf__add_datasec_var_info(types_.get(), queue, 128, 64);
  EXPECT_EQ(PreemptCountFromQueue(types_.get()), std::nullopt);
  EXPECT_GT(count, 0);
}

#if defined(__x86_64__)
TEST(CpuVariablesOfThisKernel, TellWhereTheCountIs) {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) GTEST_SKIP() << "no BTF";
  const std::unique_ptr<btf, decltype(&btf__free)> types(btf__load_vmlinux_btf(), &btf__free);
  ASSERT_NE(types, nullptr);
  EXPECT_TRUE(PreemptCountFromQueue(types.get()));
}
#endif

}  // namespace
}  // namespace culprit::record::TEST_FILE
#endif
