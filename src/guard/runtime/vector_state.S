// SPDX-License-Identifier: Apache-2.0
// culprit_call_saving_vectors(function, argument): see vector_state.h.
        .text
        .globl  culprit_call_saving_vectors
        .hidden culprit_call_saving_vectors
        .type   culprit_call_saving_vectors, %function
        .p2align 4
culprit_call_saving_vectors:
        .cfi_startproc
#if defined(__aarch64__)
        .arch   armv8-a+sve
        adrp    x3, culprit_vector_state
        ldr     w3, [x3, :lo12:culprit_vector_state]
        tbz     w3, #1, 1f
        mrs     x4, S3_3_C4_C2_2  // SVCR
        tbz     x4, #0, 1f
        ret                       // streaming mode: a system call would end it
1:      sub     sp, sp, #608
        .cfi_def_cfa_offset 608
        stp     x29, x30, [sp]
        .cfi_offset 29, -608
        .cfi_offset 30, -600
        mov     x29, sp
        .cfi_def_cfa_register 29
        stp     x8, x9, [sp, #16]
        stp     x10, x11, [sp, #32]
        stp     x12, x13, [sp, #48]
        stp     x14, x15, [sp, #64]
        str     x18, [sp, #80]
        mov     x2, x0
        mov     x0, x1
        tbnz    w3, #0, 2f
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        stp     q8, q9, [sp, #224]
        stp     q10, q11, [sp, #256]
        stp     q12, q13, [sp, #288]
        stp     q14, q15, [sp, #320]
        stp     q16, q17, [sp, #352]
        stp     q18, q19, [sp, #384]
        stp     q20, q21, [sp, #416]
        stp     q22, q23, [sp, #448]
        stp     q24, q25, [sp, #480]
        stp     q26, q27, [sp, #512]
        stp     q28, q29, [sp, #544]
        stp     q30, q31, [sp, #576]
        blr     x2
        ldp     q0, q1, [sp, #96]
        ldp     q2, q3, [sp, #128]
        ldp     q4, q5, [sp, #160]
        ldp     q6, q7, [sp, #192]
        ldp     q8, q9, [sp, #224]
        ldp     q10, q11, [sp, #256]
        ldp     q12, q13, [sp, #288]
        ldp     q14, q15, [sp, #320]
        ldp     q16, q17, [sp, #352]
        ldp     q18, q19, [sp, #384]
        ldp     q20, q21, [sp, #416]
        ldp     q22, q23, [sp, #448]
        ldp     q24, q25, [sp, #480]
        ldp     q26, q27, [sp, #512]
        ldp     q28, q29, [sp, #544]
        ldp     q30, q31, [sp, #576]
        b       3f
        // Writing q0 clears the rest of z0, and a system call the rest of all.
2:      addvl   sp, sp, #-32
        str     z0, [sp, #0, mul vl]
        str     z1, [sp, #1, mul vl]
        str     z2, [sp, #2, mul vl]
        str     z3, [sp, #3, mul vl]
        str     z4, [sp, #4, mul vl]
        str     z5, [sp, #5, mul vl]
        str     z6, [sp, #6, mul vl]
        str     z7, [sp, #7, mul vl]
        str     z8, [sp, #8, mul vl]
        str     z9, [sp, #9, mul vl]
        str     z10, [sp, #10, mul vl]
        str     z11, [sp, #11, mul vl]
        str     z12, [sp, #12, mul vl]
        str     z13, [sp, #13, mul vl]
        str     z14, [sp, #14, mul vl]
        str     z15, [sp, #15, mul vl]
        str     z16, [sp, #16, mul vl]
        str     z17, [sp, #17, mul vl]
        str     z18, [sp, #18, mul vl]
        str     z19, [sp, #19, mul vl]
        str     z20, [sp, #20, mul vl]
        str     z21, [sp, #21, mul vl]
        str     z22, [sp, #22, mul vl]
        str     z23, [sp, #23, mul vl]
        str     z24, [sp, #24, mul vl]
        str     z25, [sp, #25, mul vl]
        str     z26, [sp, #26, mul vl]
        str     z27, [sp, #27, mul vl]
        str     z28, [sp, #28, mul vl]
        str     z29, [sp, #29, mul vl]
        str     z30, [sp, #30, mul vl]
        str     z31, [sp, #31, mul vl]
        addvl   sp, sp, #-3
        str     p0, [sp, #0, mul vl]
        str     p1, [sp, #1, mul vl]
        str     p2, [sp, #2, mul vl]
        str     p3, [sp, #3, mul vl]
        str     p4, [sp, #4, mul vl]
        str     p5, [sp, #5, mul vl]
        str     p6, [sp, #6, mul vl]
        str     p7, [sp, #7, mul vl]
        str     p8, [sp, #8, mul vl]
        str     p9, [sp, #9, mul vl]
        str     p10, [sp, #10, mul vl]
        str     p11, [sp, #11, mul vl]
        str     p12, [sp, #12, mul vl]
        str     p13, [sp, #13, mul vl]
        str     p14, [sp, #14, mul vl]
        str     p15, [sp, #15, mul vl]
        rdffr   p0.b
        str     p0, [sp, #16, mul vl]
        blr     x2
        ldr     p0, [sp, #16, mul vl]
        wrffr   p0.b
        ldr     p0, [sp, #0, mul vl]
        ldr     p1, [sp, #1, mul vl]
        ldr     p2, [sp, #2, mul vl]
        ldr     p3, [sp, #3, mul vl]
        ldr     p4, [sp, #4, mul vl]
        ldr     p5, [sp, #5, mul vl]
        ldr     p6, [sp, #6, mul vl]
        ldr     p7, [sp, #7, mul vl]
        ldr     p8, [sp, #8, mul vl]
        ldr     p9, [sp, #9, mul vl]
        ldr     p10, [sp, #10, mul vl]
        ldr     p11, [sp, #11, mul vl]
        ldr     p12, [sp, #12, mul vl]
        ldr     p13, [sp, #13, mul vl]
        ldr     p14, [sp, #14, mul vl]
        ldr     p15, [sp, #15, mul vl]
        addvl   sp, sp, #3
        ldr     z0, [sp, #0, mul vl]
        ldr     z1, [sp, #1, mul vl]
        ldr     z2, [sp, #2, mul vl]
        ldr     z3, [sp, #3, mul vl]
        ldr     z4, [sp, #4, mul vl]
        ldr     z5, [sp, #5, mul vl]
        ldr     z6, [sp, #6, mul vl]
        ldr     z7, [sp, #7, mul vl]
        ldr     z8, [sp, #8, mul vl]
        ldr     z9, [sp, #9, mul vl]
        ldr     z10, [sp, #10, mul vl]
        ldr     z11, [sp, #11, mul vl]
        ldr     z12, [sp, #12, mul vl]
        ldr     z13, [sp, #13, mul vl]
        ldr     z14, [sp, #14, mul vl]
        ldr     z15, [sp, #15, mul vl]
        ldr     z16, [sp, #16, mul vl]
        ldr     z17, [sp, #17, mul vl]
        ldr     z18, [sp, #18, mul vl]
        ldr     z19, [sp, #19, mul vl]
        ldr     z20, [sp, #20, mul vl]
        ldr     z21, [sp, #21, mul vl]
        ldr     z22, [sp, #22, mul vl]
        ldr     z23, [sp, #23, mul vl]
        ldr     z24, [sp, #24, mul vl]
        ldr     z25, [sp, #25, mul vl]
        ldr     z26, [sp, #26, mul vl]
        ldr     z27, [sp, #27, mul vl]
        ldr     z28, [sp, #28, mul vl]
        ldr     z29, [sp, #29, mul vl]
        ldr     z30, [sp, #30, mul vl]
        ldr     z31, [sp, #31, mul vl]
        mov     sp, x29
3:      ldp     x8, x9, [sp, #16]
        ldp     x10, x11, [sp, #32]
        ldp     x12, x13, [sp, #48]
        ldp     x14, x15, [sp, #64]
        ldr     x18, [sp, #80]
        ldp     x29, x30, [sp]
        add     sp, sp, #608
        .cfi_def_cfa 31, 0
        .cfi_restore 29
        .cfi_restore 30
        ret
#else
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        movl    culprit_vector_state(%rip), %ecx
        movq    %rdi, %r8
        movq    %rsi, %rdi
        testl   %ecx, %ecx
        jz      1f
        // The area of xsave: 64 bytes aligned, the header behind the first 512 zero.
        subq    %rcx, %rsp
        andq    $-64, %rsp
        xorl    %eax, %eax
        movq    %rax, 512(%rsp)
        movq    %rax, 520(%rsp)
        movq    %rax, 528(%rsp)
        movq    %rax, 536(%rsp)
        movq    %rax, 544(%rsp)
        movq    %rax, 552(%rsp)
        movq    %rax, 560(%rsp)
        movq    %rax, 568(%rsp)
        movl    $0xe7, %eax  // x87, SSE, AVX, AVX-512
        xorl    %edx, %edx
        xsave64 (%rsp)
        cld
        call    *%r8
        movl    $0xe7, %eax
        xorl    %edx, %edx
        xrstor64 (%rsp)
        jmp     2f
1:      subq    $512, %rsp
        andq    $-16, %rsp
        fxsave64 (%rsp)
        cld
        call    *%r8
        fxrstor64 (%rsp)
2:      leave
        .cfi_def_cfa 7, 8
        .cfi_restore 6
        ret
#endif
        .cfi_endproc
        .size   culprit_call_saving_vectors, .-culprit_call_saving_vectors
        .section .note.GNU-stack, "", %progbits
