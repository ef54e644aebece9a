# The upcall gate: into a handler of a domain's, on a control stack of the thread's own for upcalls,
# while the thread is interrupted at any instruction (`upcall.rs`).
#
# It has the shape of an entry gate, so that an abort finds what it expects: T_FRAME is the stack
# pointer below six saved registers, stored before T_CALL_STATE becomes INSIDE. Nothing that is
# saved here goes back to the host: the kernel's own frame of the interrupted thread has all that.
#
# rdi = the Entry, esi = the data stack, edx and rcx = the handler's arguments, r8 = phase and
# generation with which it is let in. Returns eax = 0, or 1 if the domain did not let it in.
    .text
    .p2align 6
    .globl  postern_upcall_enter
    .hidden postern_upcall_enter
postern_upcall_enter:
    push    rbp
    push    rbx
    push    r12
    push    r13
    push    r14
    push    r15
    mov     r14, qword ptr [rip + postern_thread@GOTTPOFF]
    mov     r10, [rdi + {E_CONTROL}]
    mov     fs:[r14 + {T_FRAME}], rsp
    mov     dword ptr fs:[r14 + {T_CALL_STATE}], {INSIDE}
    # Published, as an entry gate's call is.
    .globl  postern_upcall_marked
    .hidden postern_upcall_marked
postern_upcall_marked:
    cmp     r8, [r10 + {C_LIFECYCLE}]
    jne     postern_upcall_closed
    mov     r15d, esi
    mov     r11d, [rdi + {E_OFFSET}]
    mov     r13, [r10 + {C_BASE}]
    rdgsbase rbx
    cmp     rbx, r13
    je      1f
    wrgsbase r13
1:
    mov     edi, edx
    mov     rsi, rcx
    mov     ebx, [r10 + {C_FACTS}]
    # The kernel gave the signal's handler the initial state of both; services find the same.
    ldmxcsr fs:[r14 + {T_MXCSR}]
    test    ebx, {FACT_COMMON}
    jz      6f
    mov     ecx, fs:[r14 + {T_INSIDE_AT}]   # as INSIDE_WORD of `gate.s`
    add     rcx, [r10 + {C_INSIDE}]
    mov     [rcx], r11d
6:
    or      r11, r13
    test    ebx, {FACT_X87}
    jz      2f
    fninit
2:
    test    ebx, {FACT_YMM}
    jnz     3f
    test    ebx, {FACT_XMM}
    jz      4f
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    xorps   xmm\n, xmm\n
    .endr
    jmp     4f
3:
    vzeroall
4:
    xor     eax, eax
    xor     ebx, ebx
    xor     ecx, ecx
    xor     edx, edx
    xor     ebp, ebp
    xor     r8d, r8d
    xor     r9d, r9d
    xor     r10d, r10d
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
    call    r11
    .globl  postern_upcall_returned
    .hidden postern_upcall_returned
postern_upcall_returned:
    mov     r14, qword ptr [rip + postern_thread@GOTTPOFF]
    xor     eax, eax
5:
    mov     dword ptr fs:[r14 + {T_CALL_STATE}], {LEAVING}
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbx
    pop     rbp
    ret
postern_upcall_closed:
    mov     eax, 1
    jmp     5b

# Where a handler's gate slots lead instead of to the service gate. r11d = slot number, as there. A
# service that handlers may not call ends the upcall; or if the domain has threads of its own for
# that, the handler is suspended: its registers are kept, which with the data stack and the return
# addresses above rsp are all that it has, and `U_SUSPEND` goes on, below them on this stack.
    .p2align 4
    .globl  postern_upcall_service
    .hidden postern_upcall_service
postern_upcall_service:
    mov     r10, qword ptr [rip + postern_thread@GOTTPOFF]
    mov     rax, fs:[r10 + {T_UPCALL}]
    mov     rax, [rax + {U_ALLOWED}]
    cmp     byte ptr [rax + r11], 0
    jne     postern_service
    mov     rax, fs:[r10 + {T_UPCALL}]
    cmp     qword ptr [rax + {U_SUSPEND}], 0
    je      7f
    mov     [rax + {U_RSP}], rsp
    mov     [rax + {U_SERVICE}], r11
    mov     r11, fs:[r10 + {T_FRAME}]
    sub     r11, rsp
    cmp     r11, {DEEPEST}
    ja      8f
    .set    at, {U_INTEGERS}
    .irp    r, rdi, rsi, rdx, rcx, r8, r9, rbx, rbp, r12, r13, r14, r15
    mov     [rax + at], \r
    .set    at, at + 8
    .endr
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    movups  [rax + {U_FLOATS} + 16 * \n], xmm\n
    .endr
    # The call is over: nobody ends it any more.
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {LEAVING}
    cld
    and     rsp, -16
    mov     rdi, r10
    add     rdi, fs:0
    call    [rax + {U_SUSPEND}]
    ud2
7:
    mov     dword ptr fs:[r10 + {T_ABORT_KIND}], {KIND_NOT_ALLOWED}
    jmp     postern_aborted
8:
    mov     dword ptr fs:[r10 + {T_ABORT_KIND}], {KIND_TOO_DEEP}
    jmp     postern_aborted
    .globl  postern_upcall_service_end
    .hidden postern_upcall_service_end
postern_upcall_service_end:

# Goes on in the function rdx with the argument rdi, on the stack whose top is rsi; never returns.
    .p2align 4
    .globl  postern_upcall_switch
    .hidden postern_upcall_switch
postern_upcall_switch:
    mov     rsp, rsi
    xor     ebp, ebp
    call    rdx
    ud2
