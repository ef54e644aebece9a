# The runner: all that is left in a child's address space besides the window. It unmaps the rest, then executes one snippet
# after the other and notes what came of each. It uses no stack but its own and calls nobody.
#
# The whole file is copied to two pages: code (r-x), then state (rw-). References between them are relative.

    .section .rodata.postern_runner,"a",@progbits
    .p2align 12
    .globl  postern_runner
    .hidden postern_runner
postern_runner:
    lea     rsp, [rip + st_scratch]
    lea     r12, [rip + st_gaps]
20: mov     rdi, [r12]
    mov     rsi, [r12 + 8]
    test    rsi, rsi
    jz      21f
    mov     eax, 11                         # munmap
    syscall
    test    rax, rax
    jnz     finish
    add     r12, 16
    jmp     20b
21: mov     rax, [rip + st_fs]
    wrfsbase rax
    mov     rax, [rip + st_gs]
    wrgsbase rax
    call    selectors
    mov     [rip + st_selectors], rax
    mov     qword ptr [rip + st_result], 1

next:
    mov     rbx, [rip + st_index]
    cmp     rbx, [rip + st_count]
    jae     finish
    imul    rcx, rbx, {OUTPUT}
    shl     rbx, 8
    add     rbx, [rip + st_inputs]
    add     rcx, [rip + st_outputs]
    mov     [rip + st_input], rbx
    mov     [rip + st_output], rcx
    mov     qword ptr [rip + st_steps], 0
    fninit
    ldmxcsr [rbx + {I_MXCSR}]
    mov     rcx, [rbx + {I_VECTORS}]
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovdqu ymm\n, [rcx + 32 * \n]
    .endr
    mov     rax, [rip + st_stack]
    lea     rcx, [rip + returned]
    mov     [rax - 8], rcx
    sub     rax, 8
    mov     [rip + st_frame_rsp], rax
    mov     rax, [rbx + {I_ENTRY}]
    mov     [rip + st_frame_rip], rax
    mov     eax, [rbx + {I_RFLAGS}]
    mov     [rip + st_frame_flags], rax
    mov     eax, cs
    mov     [rip + st_frame_cs], rax
    mov     eax, ss
    mov     [rip + st_frame_ss], rax
    mov     rax, [rbx + {I_GPRS}]
    mov     rcx, [rbx + {I_GPRS} + 8]
    mov     rdx, [rbx + {I_GPRS} + 16]
    mov     rbp, [rbx + {I_GPRS} + 40]
    mov     rsi, [rbx + {I_GPRS} + 48]
    mov     rdi, [rbx + {I_GPRS} + 56]
    mov     r8,  [rbx + {I_GPRS} + 64]
    mov     r9,  [rbx + {I_GPRS} + 72]
    mov     r10, [rbx + {I_GPRS} + 80]
    mov     r11, [rbx + {I_GPRS} + 88]
    mov     r12, [rbx + {I_GPRS} + 96]
    mov     r13, [rbx + {I_GPRS} + 104]
    mov     r14, [rbx + {I_GPRS} + 112]
    mov     r15, [rbx + {I_GPRS} + 120]
    mov     rbx, [rbx + {I_GPRS} + 24]
    lea     rsp, [rip + st_frame_rip]
    iretq                                   # with TF in the flags, the trap comes after the snippet's first instruction

returned:                                   # the snippet's `ret` arrives here
    mov     [rip + st_rsp], rsp
    lea     rsp, [rip + st_scratch]
    pushfq
    pop     rax
    push    2
    popfq
    mov     rcx, [rip + st_output]
    mov     dword ptr [rcx], {RETURNED}
    mov     [rcx + 20], eax
    mov     rax, [rip + st_rsp]
    mov     [rcx + 40], rax

# What a snippet must not change, beyond what the caller sees in rsp and the flags.
check:
    mov     r15, [rip + st_output]
    mov     r14, [rip + st_input]
    xor     r8d, r8d
    rdfsbase rax
    cmp     rax, [rip + st_fs]
    je      30f
    or      r8d, {BAD_FS}
    mov     rax, [rip + st_fs]
    wrfsbase rax
30: rdgsbase rax
    cmp     rax, [rip + st_gs]
    je      31f
    or      r8d, {BAD_GS}
    mov     rax, [rip + st_gs]
    wrgsbase rax
31: stmxcsr [rip + st_word]
    mov     ebx, [r14 + {I_FACTS}]
    mov     eax, [rip + st_word]
    mov     [r15 + {O_MXCSR}], eax
    xor     eax, [r14 + {I_MXCSR}]
    test    eax, 0xffffffc0
    jz      32f
    or      r8d, {BAD_MXCSR}
32: test    eax, 0x3f
    jz      51f
    test    ebx, {FLOAT}
    jnz     51f
    or      r8d, {BAD_FLAGS}
51: fnstenv [rip + st_x87]
    test    ebx, {X87}
    jnz     34f
    cmp     word ptr [rip + st_x87], 0x37f
    jne     33f
    cmp     word ptr [rip + st_x87 + 4], 0
    jne     33f
    cmp     word ptr [rip + st_x87 + 8], 0xffff
    je      34f
33: or      r8d, {BAD_X87}
34: call    selectors
    cmp     rax, [rip + st_selectors]
    je      35f
    or      r8d, {BAD_SELECTOR}
35: mov     rdx, [r15 + {O_DIGEST}]
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovdqu [rip + st_vectors + 32 * \n], ymm\n
    .endr
    lea     rsi, [rip + st_vectors]
    mov     edi, 64
    call    digest
    mov     [r15 + {O_DIGEST}], rdx
    mov     r13, [r14 + {I_VECTORS}]
    test    ebx, {YMM}
    jnz     39f
    test    ebx, {XMM}
    jnz     37f
    vpcmpeqb ymm0, ymm0, [r13]
    .irp n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vpcmpeqb ymm\n, ymm\n, [r13 + 32 * \n]
    vpand   ymm0, ymm0, ymm\n
    .endr
    vpmovmskb eax, ymm0
    cmp     eax, -1
    je      39f
    or      r8d, {BAD_VECTOR}
    jmp     39f
37: .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vextracti128 [rip + st_word], ymm\n, 1
    mov     rax, [rip + st_word]
    mov     rcx, [rip + st_word + 8]
    mov     rdx, rax
    or      rdx, rcx
    jz      38f
    xor     rax, [r13 + 32 * \n + 16]
    xor     rcx, [r13 + 32 * \n + 24]
    or      rax, rcx
    jz      38f
    or      r8d, {BAD_UPPER}
38:
    .endr
39: mov     [r15 + 4], r8d
    inc     qword ptr [rip + st_index]
    jmp     next

finish:
    mov     rdi, [rip + st_result]
    xor     edi, 1
    mov     eax, 231                        # exit_group
    syscall
    ud2

# rax = the six selectors, mixed into one number that changes with each of them.
selectors:
    xor     eax, eax
    .irp s, ds, es, ss, cs, fs, gs
    mov     edx, \s
    rol     rax, 10
    xor     rax, rdx
    .endr
    ret

# Mixes the edi words at rsi into rdx. A change of one word changes it.
digest:
    movabs  rcx, 0x9e3779b97f4a7c15
52: xor     rdx, [rsi]
    imul    rdx, rcx
    rol     rdx, 31
    add     rsi, 8
    dec     edi
    jnz     52b
    ret

    .globl  postern_runner_restorer
    .hidden postern_runner_restorer
postern_runner_restorer:
    mov     eax, 15                         # rt_sigreturn
    syscall
    ud2

# Signal handler: edi = signal, rdx = ucontext. All signals are blocked, the stack is the alternate one.
    .globl  postern_runner_handler
    .hidden postern_runner_handler
postern_runner_handler:
    mov     rax, [rdx + 168]                # rip
    mov     rcx, [rip + st_output]
    cmp     edi, 26                         # SIGVTALRM
    je      alarm
    mov     esi, {SIGNALLED}
    cmp     edi, 5                          # SIGTRAP
    jne     save
    cmp     qword ptr [rdx + 200], 1        # trap number: single step
    jne     save
    mov     r8, [rip + st_steps]
    lea     r9, [rip + returned]
    cmp     rax, r9
    je      41f
    sub     rax, [rip + st_gs]
    mov     r9, rax
    shr     r9, 32
    jnz     save
    mov     [rcx + {O_TRACE} + 4 * r8], eax
    inc     r8
    mov     [rip + st_steps], r8
    mov     r9, [rip + st_input]
    cmp     r8, [r9 + {I_LIMIT}]
    jae     40f
    ret
40: mov     esi, {STEPPED}
    jmp     save
41: mov     esi, {RETURNED}
save:
    mov     [rcx], esi
    mov     [rcx + 8], edi
    mov     r8, [rdx + 200]
    mov     [rcx + 12], r8d
    mov     r8, [rdx + 192]
    mov     [rcx + 16], r8d
    mov     r8, [rdx + 176]
    mov     [rcx + 20], r8d
    mov     r8, [rdx + 216]
    mov     [rcx + 24], r8
    mov     r8, [rdx + 168]
    mov     [rcx + 32], r8
    mov     r8, [rdx + 160]
    mov     [rcx + 40], r8
    mov     r9, [rip + st_steps]
    mov     [rcx + 48], r9
    mov     r9, [rip + st_stack]
    sub     r9, r8
    cmp     r9, 4096
    ja      42f
    cmp     r9, 8
    jb      42f
    mov     r8, [r8]
    mov     [rcx + 56], r8
42: mov     r10, rdx
    mov     r11, rcx
    lea     rsi, [r10 + 40]                 # r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx
    mov     edi, 15
    xor     edx, edx
    call    digest
    mov     [r11 + {O_DIGEST}], rdx
    mov     rdx, r10
    lea     r8, [rip + check]
    mov     [rdx + 168], r8
    lea     r8, [rip + st_scratch]
    mov     [rdx + 160], r8
    mov     qword ptr [rdx + 176], 0x202
    ret

alarm:
    mov     r8, rax
    sub     r8, [rip + st_text]
    cmp     r8, [rip + st_text_len]
    jae     43f
    mov     r8, [rip + st_index]
    xchg    r8, [rip + st_alarm]
    cmp     r8, [rip + st_index]
    jne     43f
    mov     esi, {ENDLESS}
    jmp     save
43: ret

    .p2align 12
    .globl  postern_runner_state
    .hidden postern_runner_state
postern_runner_state:
st_inputs:      .quad 0
st_outputs:     .quad 0
st_count:       .quad 0
st_index:       .quad 0
st_stack:       .quad 0
st_fs:          .quad 0
st_gs:          .quad 0
st_text:        .quad 0
st_text_len:    .quad 0
st_alarm:       .quad -1
st_result:      .quad 0
st_gaps:        .zero 64 * 16
st_input:       .quad 0
st_output:      .quad 0
st_steps:       .quad 0
st_rsp:         .quad 0
st_selectors:   .quad 0
st_word:        .zero 16
st_x87:         .zero 32
st_vectors:     .zero 512
st_frame_rip:   .quad 0
st_frame_cs:    .quad 0
st_frame_flags: .quad 0
st_frame_rsp:   .quad 0
st_frame_ss:    .quad 0
                .zero 512
st_scratch:     .quad 0
    .p2align 12
    .globl  postern_runner_end
    .hidden postern_runner_end
postern_runner_end:
    .byte 0
    .text
