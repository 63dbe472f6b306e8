// SPDX-License-Identifier: Apache-2.0
#include "record/load_failure.h"

#include <errno.h>
#include <gtest/gtest.h>

namespace culprit::record::TEST_FILE {
namespace {

constexpr std::string_view kRefused =
    "libbpf: prog 'on_sample': BPF program load failed: Permission denied\n"
    "libbpf: prog 'on_sample': -- BEGIN PROG LOAD LOG --\n"
    "0: R1=ctx(off=0,imm=0) R10=fp0\n"
    "; const uint64_t now = bpf_ktime_get_ns();\n"
    "0: (85) call bpf_ktime_get_ns#5\n"
    "R1 invalid mem access 'scalar'\n"
    "processed 12 insns (limit 1000000) max_states_per_insn 0 total_states 0\n"
    "-- END PROG LOAD LOG --\n"
    "libbpf: prog 'on_sample': failed to load: -13\n"
    "libbpf: failed to load object 'engine'\n";

TEST(LoadFailure, ARefusalOfTheVerifierIsNotAMissingPermission) {
  // The verifier says EACCES as often as EINVAL.
  for (const int code : {-EACCES, -EINVAL, E2BIG}) {
    const Error error = ExplainLoadFailure({.code = code, .said = kRefused, .may_load = true});
    EXPECT_EQ(error.message,
              "this kernel's verifier does not accept the recorder's program on_sample: R1 invalid "
              "mem access 'scalar'");
    EXPECT_EQ(error.hint.find("root"), std::string::npos);
  }
}

TEST(LoadFailure, WhoLacksTheCapabilitiesIsToldWhich) {
  const Error error =
      ExplainLoadFailure({.code = -EPERM, .said = "libbpf: failed\n", .may_load = false});
  EXPECT_NE(error.message.find("Operation not permitted"), std::string::npos);
  EXPECT_NE(error.hint.find("CAP_BPF and CAP_PERFMON"), std::string::npos);
}

TEST(LoadFailure, WhoHasThemIsNotSentToGetThem) {
  const Error error = ExplainLoadFailure({.code = -EPERM, .said = "", .may_load = true});
  EXPECT_EQ(error.hint.find("run as root"), std::string::npos);
  EXPECT_NE(error.hint.find("lockdown"), std::string::npos);
}

TEST(LoadFailure, OtherwiseBtfOrLibbpfIsToBlame) {
  EXPECT_NE(ExplainLoadFailure({.code = -ENOENT, .said = "x", .has_btf = false}).hint.find("BTF"),
            std::string::npos);
  EXPECT_EQ(
      ExplainLoadFailure({.code = -ENOMEM, .said = "libbpf: no memory\nmore\n", .has_btf = true})
          .hint,
      "libbpf: no memory");
}

TEST(LoadFailure, CapabilitiesAreReadFromTheStatusOfTheProcess) {
  EXPECT_TRUE(MayLoadPrograms("Name:\tx\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n"));
  EXPECT_TRUE(MayLoadPrograms("CapEff:\t000000c000000000\n"));   // BPF and PERFMON
  EXPECT_FALSE(MayLoadPrograms("CapEff:\t0000008000000000\n"));  // BPF alone
  EXPECT_TRUE(MayLoadPrograms("CapEff:\t0000000000200000\n"));   // SYS_ADMIN
  EXPECT_FALSE(MayLoadPrograms("CapEff:\t0000000000000000\n"));
  EXPECT_FALSE(MayLoadPrograms(""));
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
