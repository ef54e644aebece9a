# A C host that is careful: sets every register before a call, calls, and notes every register that must be as before.
#
# rdi = the HostCall. The second copy stops in a debugger right before and right after the call.

.macro HOST_CALL name, stop
    .globl  \name
    .hidden \name
\name:
    push    rbp
    push    rbx
    push    r12
    push    r13
    push    r14
    push    r15
    sub     rsp, {GUARD} + 24
    mov     rbx, rdi
    stmxcsr [rsp + {GUARD}]
    fnstcw  [rsp + {GUARD} + 8]
    # Words above the call's frame that nobody may change.
    mov     rax, [rbx + {H_SECRET}]
    mov     rdi, rsp
    mov     ecx, {GUARD} / 8
    rep stosq
    ldmxcsr [rbx + {H_MXCSR}]
    fninit
    fldcw   [rbx + {H_X87}]
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovdqu ymm\n, [rbx + {H_VECTORS} + 32 * \n]
    .endr
    mov     [rbx + {H_RSP}], rsp
    mov     rdi, [rbx + {H_INTEGERS}]
    mov     rsi, [rbx + {H_INTEGERS} + 8]
    mov     rdx, [rbx + {H_INTEGERS} + 16]
    mov     rcx, [rbx + {H_INTEGERS} + 24]
    mov     r8,  [rbx + {H_INTEGERS} + 32]
    mov     r9,  [rbx + {H_INTEGERS} + 40]
    mov     rax, [rbx + {H_SECRET}]
    mov     r10, rax
    mov     r11, rax
    mov     rbp, [rbx + {H_KEPT}]
    mov     r12, [rbx + {H_KEPT} + 8]
    mov     r13, [rbx + {H_KEPT} + 16]
    mov     r14, [rbx + {H_KEPT} + 24]
    mov     r15, [rbx + {H_KEPT} + 32]
    .if \stop
    .globl  \name\()_begins
    .hidden \name\()_begins
    int3
\name\()_begins:
    .endif
    call    [rbx + {H_FUNCTION}]
    .if \stop
    .globl  \name\()_ended
    .hidden \name\()_ended
    int3
\name\()_ended:
    .endif
    mov     [rbx + {H_RAX}], rax
    mov     [rbx + {H_AFTER}], rbp
    mov     [rbx + {H_AFTER} + 8], r12
    mov     [rbx + {H_AFTER} + 16], r13
    mov     [rbx + {H_AFTER} + 24], r14
    mov     [rbx + {H_AFTER} + 32], r15
    movq    [rbx + {H_XMM}], xmm0
    mov     rax, rsp
    sub     rax, [rbx + {H_RSP}]
    mov     [rbx + {H_RSP}], rax
    sub     rsp, rax
    pushfq
    pop     rax
    mov     [rbx + {H_FLAGS}], rax
    cld
    stmxcsr [rbx + {H_MXCSR_AFTER}]
    fnstenv [rbx + {H_X87_AFTER}]
    mov     rax, [rbx + {H_SECRET}]
    mov     rdi, rsp
    mov     ecx, {GUARD} / 8
    repe scasq
    setne   byte ptr [rbx + {H_TRAMPLED}]
    fninit
    fldcw   [rsp + {GUARD} + 8]
    ldmxcsr [rsp + {GUARD}]
    vzeroupper
    add     rsp, {GUARD} + 24
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbx
    pop     rbp
    ret
.endm

    .text
    HOST_CALL postern_host_call, 0
    HOST_CALL postern_stepped_call, 1

# A service that leaves secrets in every register that it may change, and returns one.
    .globl  postern_scribble
    .hidden postern_scribble
postern_scribble:
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovdqu ymm\n, [rip + {SECRETS} + 32 * \n]
    .endr
    mov     rax, [rip + {SECRETS}]
    .irp r, rcx, rdx, rsi, rdi, r8, r9, r10, r11
    mov     \r, rax
    .endr
    ret
