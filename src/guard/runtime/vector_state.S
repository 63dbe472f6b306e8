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
        sub     sp, sp, #608
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
        mov     x2, x0
        mov     x0, x1
        blr     x2
        ldp     x8, x9, [sp, #16]
        ldp     x10, x11, [sp, #32]
        ldp     x12, x13, [sp, #48]
        ldp     x14, x15, [sp, #64]
        ldr     x18, [sp, #80]
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
        subq    $512, %rsp
        andq    $-16, %rsp
        fxsave64 (%rsp)
        cld
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        fxrstor64 (%rsp)
        leave
        .cfi_def_cfa 7, 8
        .cfi_restore 6
        ret
#endif
        .cfi_endproc
        .size   culprit_call_saving_vectors, .-culprit_call_saving_vectors
        .section .note.GNU-stack, "", %progbits
