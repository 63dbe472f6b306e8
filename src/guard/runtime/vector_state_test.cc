// SPDX-License-Identifier: Apache-2.0
// All vector registers are as before behind a function that destroys them. The
// same test runs once more in an emulator whose processor has all there is (SVE,
// AVX): see cmake/guard_x86.cmake.
#include "guard/runtime/vector_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#if defined(__aarch64__)
// pass_*(in, out, in_p, out_p): loads the registers, calls the function that
// destroys them, and stores them.
asm(R"(
        .text
        .arch armv8-a+sve
        .macro  pass_begin
        stp     x29, x30, [sp, #-112]!
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     d8, d9, [sp, #48]
        stp     d10, d11, [sp, #64]
        stp     d12, d13, [sp, #80]
        stp     d14, d15, [sp, #96]
        mov     x19, x0
        mov     x20, x1
        mov     x21, x2
        mov     x22, x3
        .endm
        .macro  pass_end
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     d8, d9, [sp, #48]
        ldp     d10, d11, [sp, #64]
        ldp     d12, d13, [sp, #80]
        ldp     d14, d15, [sp, #96]
        ldp     x29, x30, [sp], #112
        ret
        .endm

pass_basic:
        pass_begin
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        ldr     q\n, [x19, #(\n * 16)]
        .endr
        adr     x0, destroy_basic
        bl      culprit_call_saving_vectors
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        str     q\n, [x20, #(\n * 16)]
        .endr
        pass_end
destroy_basic:
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        movi    v\n\().16b, #\n
        .endr
        ret

pass_long:
        pass_begin
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        ldr     z\n, [x19, #\n, mul vl]
        .endr
        setffr
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        ldr     p\n, [x21, #\n, mul vl]
        .endr
        adr     x0, destroy_long
        bl      culprit_call_saving_vectors
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        str     z\n, [x20, #\n, mul vl]
        .endr
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        str     p\n, [x22, #\n, mul vl]
        .endr
        rdffr   p0.b
        str     p0, [x22, #16, mul vl]
        pass_end
destroy_long:
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        dup     z\n\().b, #\n
        .endr
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        pfalse  p\n\().b
        .endr
        wrffr   p0.b
        ret
long_bytes:
        rdvl    x0, #1
        ret
)");
#else
asm(R"(
        .text
pass_basic:
        pushq   %rbx
        movq    %rsi, %rbx
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups  (\n * 16)(%rdi), %xmm\n
        .endr
        leaq    destroy_basic(%rip), %rdi
        call    culprit_call_saving_vectors
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        movups  %xmm\n, (\n * 16)(%rbx)
        .endr
        popq    %rbx
        ret
destroy_basic:
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        pxor    %xmm\n, %xmm\n
        .endr
        ret

pass_long:
        pushq   %rbx
        movq    %rsi, %rbx
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovups (\n * 32)(%rdi), %ymm\n
        .endr
        leaq    destroy_long(%rip), %rdi
        call    culprit_call_saving_vectors
        .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vmovups %ymm\n, (\n * 32)(%rbx)
        .endr
        vzeroupper
        popq    %rbx
        ret
destroy_long:
        vzeroall
        ret
)");
#endif

extern "C" void pass_basic(const uint8_t* in, uint8_t* out, const uint8_t* in_p, uint8_t* out_p);
extern "C" void pass_long(const uint8_t* in, uint8_t* out, const uint8_t* in_p, uint8_t* out_p);

namespace culprit::guard::runtime::TEST_FILE {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes RandomBytes(size_t size) {
  std::mt19937_64 random(size);
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(VectorState, BasicRegistersAreAsBefore) {
  FindVectorState();
  const Bytes in = RandomBytes(512);
  Bytes out(512);
  pass_basic(in.data(), out.data(), nullptr, nullptr);
#if defined(__aarch64__)
  EXPECT_EQ(in, out);
#else
  EXPECT_EQ(Bytes(in.begin(), in.begin() + 256), Bytes(out.begin(), out.begin() + 256));
#endif
}

#if defined(__aarch64__)

extern "C" uint64_t long_bytes();

TEST(VectorState, RegistersOfSveAreAsBefore) {
  FindVectorState();
  if ((culprit_vector_state & 1) == 0) GTEST_SKIP() << "no SVE here";
  const uint64_t bytes = long_bytes();
  const Bytes in = RandomBytes(32 * bytes);
  const Bytes in_p = RandomBytes(16 * bytes / 8);
  Bytes out(in.size());
  Bytes out_p(17 * bytes / 8);
  pass_long(in.data(), out.data(), in_p.data(), out_p.data());
  EXPECT_EQ(in, out);
  EXPECT_EQ(in_p, Bytes(out_p.begin(), out_p.begin() + static_cast<ptrdiff_t>(in_p.size())));
  EXPECT_EQ(Bytes(bytes / 8, 0xff),
            Bytes(out_p.begin() + static_cast<ptrdiff_t>(in_p.size()), out_p.end()));
}

#else

TEST(VectorState, RegistersOfAvxAreAsBefore) {
  FindVectorState();
  if (!__builtin_cpu_supports("avx")) GTEST_SKIP() << "no AVX here";
  ASSERT_GT(culprit_vector_state, 0U);
  const Bytes in = RandomBytes(512);
  Bytes out(512);
  pass_long(in.data(), out.data(), nullptr, nullptr);
  EXPECT_EQ(in, out);
}

#endif

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
