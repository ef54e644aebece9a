# The resume gate: a handler that was suspended at a gate slot of an interrupted thread goes on at
# that slot, on the calling thread (`resume.rs`).
#
# It has the shape of an entry gate: six saved registers below T_FRAME. `resume_entry` publishes the
# call as the slow path does, so that at postern_resume_in an abort finds what it expects. What the
# extension had on its control stack were return addresses only; they are pushed again, below one
# into the full gate, to which the handler returns at its end.
#
# rdi = the Resume. Returns r11d = status, as entry gates do.
    .text
    .p2align 6
    .globl  postern_resume
    .hidden postern_resume
postern_resume:
    push    rbp
    push    rbx
    push    r12
    push    r13
    push    r14
    push    r15
    mov     rsi, rdi
    mov     rbx, [rdi + {R_SUSPENDED}]
    mov     r14, qword ptr [rip + postern_thread@GOTTPOFF]
    mov     rdi, r14
    add     rdi, fs:0
    mov     rdx, rsp
    sub     rsp, 8
    call    {resume_entry}
    add     rsp, 8
    test    eax, eax
    jnz     postern_resume_refused
    .globl  postern_resume_in
    .hidden postern_resume_in
postern_resume_in:
    mov     r10, fs:[r14 + {T_CONTROL}]
    mov     rsp, fs:[r14 + {T_PLAN_RSP}]
    mov     r13, [r10 + {C_BASE}]
    rdgsbase rax
    cmp     rax, r13
    je      1f
    wrgsbase r13
1:
    lea     rax, [rip + postern_full_back]
    push    rax
    mov     ecx, [rbx + {W_CALLS}]
    lea     rsi, [rbx + {W_RETURNS}]
    test    ecx, ecx                        # none, if the handler's last act was a jump to the slot
    jz      3f
2:
    mov     eax, [rsi]
    or      rax, r13
    push    rax
    add     rsi, 4
    dec     ecx
    jnz     2b
3:
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    movups  xmm\n, [rbx + {W_FLOATS} + 16 * \n]
    .endr
    mov     r11, [rbx + {W_SERVICE}]
    mov     rax, rbx
    .set    at, {W_INTEGERS}
    .irp    r, rdi, rsi, rdx, rcx, r8, r9, rbx, rbp, r12, r13, r14, r15
    mov     \r, [rax + at]
    .set    at, at + 8
    .endr
    jmp     postern_service
    .globl  postern_resume_refused
    .hidden postern_resume_refused
postern_resume_refused:
    mov     r11d, eax
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbx
    pop     rbp
    ret
    .globl  postern_resume_end
    .hidden postern_resume_end
postern_resume_end:
