# The peer gate: from one extension to another, assembled behind `gate.s`, whose macros and
# registers are its own, too. The service gate comes here when its test of the stack fails: an entry
# that a peer serves needs more than there is. rax = the caller's control block, rsp = its
# service_rsp (or the host's, if foreign).
#
# Below what the service gate pushed, the frame of the peer's call looks like an entry gate's: six
# registers, under a return address into the caller. What else there is to keep of the caller is in
# its record. Innermost is, by T_CALL_STATE: the caller (INSIDE), nobody (ENTERING), the peer
# (INSIDE), nobody (ENTERING), the caller (INSIDE). An abort of the peer's call comes back by
# postern_peer_failed.
    .p2align 6
GLOBAL postern_peer
    cmp     dword ptr [r11 + {S_STACK} + 4], {PEER_HIGH}
    jne     postern_peer_none
    mov     rbp, [r11 + {S_CONTEXT}]        # the Peer, which begins with its Entry
    cmp     dword ptr fs:[r10 + {T_FOREIGN}], 0
    jne     postern_peer_slow
    mov     rax, rsp
    sub     rax, [rbp + {P_GATE_STACK}]
    cmp     rax, fs:[r10 + {T_STACK_LOW}]
    jl      postern_peer_stack
    SAVE_FIVE
    mov     rbx, [rbp + {E_CONTROL}]
    mov     r12d, fs:[r10 + {T_SLOT}]
    mov     r13, fs:[r10 + {T_RECORD}]
    mov     rax, fs:[r10 + {T_CONTROL}]
    cmp     r13, fs:[r10 + {T_LAST_RECORD}]
    je      postern_peer_pop                # too deep
    cmp     rbx, rax
    je      postern_peer_pop                # itself
    mov     r14, [rbx + r12 + {C_SLOTS}]
    mov     [r13 + {R_R15}], r15d
    lea     r15, [r14 - 1]
    shr     r15, 32
    jnz     postern_peer_pop                # no data stack for this thread yet, or a call of it waits on this thread
    mov     r15d, r14d
    mov     r14, fs:[r10 + {T_SEQUENCE}]
    cmp     r14, fs:[r10 + {T_REQUEST}]
    je      postern_peer_pop                # the caller's time is up
    mov     [r13 + {R_CONTROL}], rax
    mov     [r13 + {R_SERVICE}], r11
    mov     [r13 + {R_CONTEXT}], rbp
    mov     [r13 + {R_SEQUENCE}], r14       # shown
    mov     r14, fs:[r10 + {T_FRAME}]
    mov     [r13 + {R_FRAME}], r14
    inc     dword ptr [rax + r12 + {C_SLOTS} + 4]
    mov     r14, fs:[r10 + {T_NESTED}]
    inc     r14
    mov     fs:[r10 + {T_NESTED}], r14
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {ENTERING}
    mov     rax, [rbp + {P_LIMIT}]
    add     r13, {RECORD_SIZE}
    mov     [r13 + {R_LIMIT}], rax
    mov     fs:[r10 + {T_RECORD}], r13
    mov     fs:[r10 + {T_SEQUENCE}], r14
    mov     fs:[r10 + {T_FRAME}], rsp
    mov     fs:[r10 + {T_CONTROL}], rbx
    cmp     dword ptr [rbp + {P_VECTORS}], 0
    jne     781f
782:
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {INSIDE}
GLOBAL postern_peer_marked
    mov     rax, [rbp + {E_EXPECTED}]
    cmp     rax, [rbx + {C_LIFECYCLE}]
    jne     postern_peer_unmark
    cmp     dword ptr [r11 + {S_STACK} + 4], {PEER_HIGH}
    jne     postern_peer_unmark             # revoked meanwhile: whoever did that waits for those that it sees
    inc     qword ptr [rbx + r12 + {C_SLOTS} + 8]
    inc     qword ptr [r11 + {S_CALLS}]
    mov     r13, [rbx + {C_BASE}]
    wrgsbase r13
    mov     r11d, [rbp + {E_OFFSET}]
    or      r11, r13
    MASK_INTEGERS rbp
    CLEAR_SCALARS
    call    r11
GLOBAL postern_peer_returned
    # The caller's base is what its return address begins with, so this need not wait for what
    # follows. (After a jump to the slot that is the address of a gate, and no text runs before a
    # gate has set the base again.)
    mov     esi, [rsp + {FRAME_RETURN} + 4]
    shl     rsi, 32
    wrgsbase rsi
    THREAD  r10
    mov     rbx, fs:[r10 + {T_RECORD}]
    mov     r12d, fs:[r10 + {T_SLOT}]
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {ENTERING}
    inc     qword ptr fs:[r10 + {T_NESTED}] # before the caller's number comes back
    sub     rbx, {RECORD_SIZE}
    mov     fs:[r10 + {T_RECORD}], rbx
    mov     r11, [rbx + {R_CONTROL}]
    mov     fs:[r10 + {T_CONTROL}], r11
    mov     r9, [rbx + {R_SEQUENCE}]
    mov     fs:[r10 + {T_SEQUENCE}], r9
    mov     rcx, [rbx + {R_FRAME}]
    mov     fs:[r10 + {T_FRAME}], rcx
    mov     rcx, [rbx + {R_CONTEXT}]
    cmp     dword ptr [rcx + {P_VECTORS}], 0
    jne     785f
784:
    mov     qword ptr fs:[r10 + {T_PEER_FAILED}], 0
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {INSIDE}
GLOBAL postern_peer_back
    dec     dword ptr [r11 + r12 + {C_SLOTS} + 4]
    mov     qword ptr [rbx + {R_SEQUENCE}], 0   # not shown any more
    cmp     r9, [rbx + {R_REQUEST}]
    je      postern_peer_request            # after it was hidden, so that no wish is lost
    cmp     dword ptr [r11 + {C_LIFECYCLE}], {OPEN}
    jne     postern_peer_state
783:
    and     rax, [rcx + {P_RESULT_MASK}]
    CLEAR_BEHIND_RESULT
    RESTORE_HOST                            # that is, the caller's
    ret
781:                                        # the vector registers that the peer can read, and MXCSR as it must find it
    mov     rax, rbp
    test    dword ptr [rbx + {C_FACTS}], {FACT_YMM}
    jnz     786f
    test    dword ptr [rbx + {C_FACTS}], {FACT_XMM}
    jz      790f
    CLEAR_VECTORS_sse
    jmp     790f
786:
    CLEAR_VECTORS_avx
790:
    test    dword ptr [rbp + {P_VECTORS}], {PEER_TO_FLOAT} | {PEER_FROM_FLOAT}
    jz      782b
    test    dword ptr [rbp + {P_VECTORS}], {PEER_TO_FLOAT}
    jz      791f
    SAVE_MXCSR r10, r14d
    DEFAULT_MXCSR
    jmp     782b
791:                                        # the caller's is not for the peer
    HOST_MXCSR r10
    jmp     782b
785:                                        # and the caller
    test    dword ptr [rcx + {P_VECTORS}], {PEER_TO_FLOAT} | {PEER_FROM_FLOAT}
    jz      792f
    test    dword ptr [rcx + {P_VECTORS}], {PEER_TO_FLOAT}
    jz      793f
    HOST_MXCSR r10
    jmp     792f
793:
    SAVE_MXCSR r10, esi
    DEFAULT_MXCSR
792:
    test    dword ptr [r11 + {C_FACTS}], {FACT_YMM}
    jnz     787f
    test    dword ptr [rcx + {P_VECTORS}], {FACT_YMM}
    jz      788f
    vzeroupper
788:
    test    dword ptr [r11 + {C_FACTS}], {FACT_XMM}
    jz      784b
    MASK_RESULT_sse rcx + {P_FLOAT_MASK}
    jmp     784b
787:
    MASK_RESULT_avx rcx + {P_FLOAT_MASK}
    jmp     784b

# The peer is not open: the caller becomes the innermost again, and Rust says why.
GLOBAL postern_peer_unmark
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {ENTERING}
    test    dword ptr [rbp + {P_VECTORS}], {PEER_TO_FLOAT}
    jz      781f
    HOST_MXCSR r10
781:
    test    dword ptr [rbp + {P_VECTORS}], {PEER_FROM_FLOAT}
    jz      782f
    SAVE_MXCSR r10, r14d
    DEFAULT_MXCSR
782:
    inc     qword ptr fs:[r10 + {T_NESTED}]
    mov     r13, fs:[r10 + {T_RECORD}]
    sub     r13, {RECORD_SIZE}
    mov     fs:[r10 + {T_RECORD}], r13
    mov     rax, [r13 + {R_CONTROL}]
    mov     fs:[r10 + {T_CONTROL}], rax
    mov     r14, [r13 + {R_SEQUENCE}]
    mov     fs:[r10 + {T_SEQUENCE}], r14
    mov     r14, [r13 + {R_FRAME}]
    mov     fs:[r10 + {T_FRAME}], r14
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {INSIDE}
    dec     dword ptr [rax + r12 + {C_SLOTS} + 4]
    mov     qword ptr [r13 + {R_SEQUENCE}], 0
# Whatever is not the common case goes on as a service, whose function is in Rust (`peer/call.rs`).
GLOBAL postern_peer_pop
    RESTORE_FIVE
GLOBAL postern_peer_slow
    mov     rax, fs:[r10 + {T_CONTROL}]
    jmp     postern_service_go

# No peer's entry: the stack is too small for a service, or the entry has just got a guard, which is
# one. One look at it decides.
postern_peer_none:
    mov     rax, [r11 + {S_STACK}]
    mov     rbp, rsp
    sub     rbp, rax
    cmp     rbp, fs:[r10 + {T_STACK_LOW}]
    jge     postern_peer_slow
    shr     rax, 32
    cmp     eax, {PEER_HIGH}
    je      postern_peer
    jmp     postern_service_stack

# The peer's call was ended, rsp = its frame: the caller goes on as from a service that returned 0.
GLOBAL postern_peer_failed
    RESTORE_FIVE
    xor     eax, eax
    pxor    xmm0, xmm0
    THREAD  r10
    jmp     postern_service_returned

# Too little control stack for the peer, or one for which the peer gate is not made.
GLOBAL postern_peer_stack
    cmp     dword ptr [rbp + {P_GATE_STACK} + 4], {SLOW_HIGH}
    je      postern_peer_slow
# Too little control stack for the service: a fault of the extension.
GLOBAL postern_service_stack
    mov     dword ptr fs:[r10 + {T_ABORT_KIND}], {KIND_SERVICE_STACK}
    jmp     postern_aborted

# The caller's call is to end now that the peer has returned: by another thread's wish, or because
# its domain is not open.
GLOBAL postern_peer_request
    mov     ecx, [rbx + {R_REQUEST_KIND}]
    jmp     789f
postern_peer_state:
    cmp     dword ptr [r11 + {C_LIFECYCLE}], {POISONED}
    je      788f
    cmp     dword ptr [r11 + {C_LIFECYCLE}], {CLOSED}
    jne     783b                            # somebody tries to reset or to move it, and will find us
788:
    mov     ecx, {KIND_ANOTHER}
789:
    mov     fs:[r10 + {T_ABORT_KIND}], ecx
    jmp     postern_aborted
GLOBAL postern_gates_end
    nop
