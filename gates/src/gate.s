# The gates: every instruction that runs between the host and an extension.
#
# The *entry gates*, one for each class of vector state that verified text can reach (none, SSE,
# AVX; of SSE and AVX with MXCSR and without), share one shape: straight guard clauses, each leaving
# to the slow path, then publish, clear, call. Whatever is not the common case (first entry of a
# thread, foreign stacks, nesting, x87, arguments in memory) takes the slow path, whose decisions
# are made in Rust (`slow.rs`) and carried out by the *full gate*.
#
# Registers at an entry gate: rax = the Entry, arguments where System V puts them, return address on
# the stack. A gate returns r11d = status (0: rax/xmm0 hold the result), which C callers ignore.
#
# T_CALL_STATE (`call_state.rs`) is ENTERING while a gate writes the state of a new call, so that
# nothing of it is overwritten in between. To publish the call is to store INSIDE there. What an
# abort relies on (`signal.rs`): T_FRAME is the stack pointer below the six saved registers, stored
# before T_CALL_STATE becomes INSIDE, and unchanged until it leaves INSIDE. In between an abort may
# at any instruction set rsp = T_FRAME and continue at postern_aborted; the label ranges below tell
# it where it is.

    .section .tbss,"awT",@nobits
    .p2align 6
    .globl  postern_thread
    .hidden postern_thread
    .type   postern_thread, @object
    .size   postern_thread, {THREAD_SIZE}
postern_thread:
    .zero {THREAD_SIZE}

    .section .rodata
    .p2align 2
postern_default_mxcsr:
    .long {MXCSR_DEFAULT}

    .text

# fs-relative thread state: \reg becomes the offset of postern_thread from the thread pointer.
.macro THREAD reg
    mov     \reg, qword ptr [rip + postern_thread@GOTTPOFF]
.endm

# Set gs base to r13 if it differs. Reading it is 3 cycles and never stale, which a cached value
# would be: new threads inherit it, signal returns and other libraries change it. Writing it takes
# tens of cycles.
.macro LOAD_GS old
    rdgsbase \old
    cmp     \old, r13
    je      771f
    wrgsbase r13
771:
.endm

# MXCSR. Invariant: while the innermost call's domain has instructions that MXCSR governs
# (FACT_FLOAT), the host's word is in T_MXCSR, and from INSIDE on the processor may have the
# extension's: the default control bits, and whatever flags the extension raised, which no verified
# text can read. Everywhere else the processor has the host's. Loading MXCSR costs next to nothing,
# if not from a word that was stored just before; so T_MXCSR is written only if it changes.
.macro SAVE_MXCSR thread, scratch
    stmxcsr fs:[\thread + {T_MXCSR_NOW}]
    mov     \scratch, fs:[\thread + {T_MXCSR_NOW}]
    cmp     \scratch, fs:[\thread + {T_MXCSR}]
    je      761f
    mov     fs:[\thread + {T_MXCSR}], \scratch
761:
.endm
.macro DEFAULT_MXCSR                        # when the host's is saved
    ldmxcsr [rip + postern_default_mxcsr]
.endm
.macro HOST_MXCSR thread                    # twice does no harm
    ldmxcsr fs:[\thread + {T_MXCSR}]
.endm

# Cut the integer argument registers to the widths of the signature. \entry = the Entry.
.macro MASK_INTEGERS entry
    and     rdi, [\entry + {E_INT_MASKS}]
    and     rsi, [\entry + {E_INT_MASKS} + 8]
    and     rdx, [\entry + {E_INT_MASKS} + 16]
    and     rcx, [\entry + {E_INT_MASKS} + 24]
    and     r8,  [\entry + {E_INT_MASKS} + 32]
    and     r9,  [\entry + {E_INT_MASKS} + 40]
.endm

.macro ZERO_sse registers:vararg
    .irp    n, \registers
    xorps   xmm\n, xmm\n
    .endr
.endm
.macro ZERO_avx registers:vararg
    .irp    n, \registers
    vxorps  xmm\n, xmm\n, xmm\n
    .endr
.endm

# xmm8 to xmm15, which never carry arguments or results.
.macro ZERO_UPPER_REGISTERS class
    ZERO_\class 8, 9, 10, 11, 12, 13, 14, 15
.endm

# What is left after a function of the host's or a peer: a result in xmm0, by its \mask.
.macro MASK_RESULT_sse mask:vararg
    andps   xmm0, xmmword ptr [\mask]
    ZERO_sse 1, 2, 3, 4, 5, 6, 7
    ZERO_UPPER_REGISTERS sse
.endm
.macro MASK_RESULT_avx mask:vararg
    vandps  xmm0, xmm0, xmmword ptr [\mask]
    ZERO_avx 1, 2, 3, 4, 5, 6, 7
    ZERO_UPPER_REGISTERS avx
.endm

# Zero every vector register that no argument occupies, by the masks of the signature.
# rax = the Entry. The VEX forms also zero the upper halves.
.macro CLEAR_VECTORS_none
.endm
.macro CLEAR_VECTORS_sse
    test    dword ptr [rax + {E_FLAGS}], {F_FLOATS}
    jnz     772f
    ZERO_sse 0, 1, 2, 3, 4, 5, 6, 7
    jmp     773f
772:
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    andps   xmm\n, xmmword ptr [rax + {E_FLOAT_MASKS} + 16 * \n]
    .endr
773:
    ZERO_UPPER_REGISTERS sse
.endm
.macro CLEAR_VECTORS_avx
    test    dword ptr [rax + {E_FLAGS}], {F_FLOATS}
    jnz     772f
    vzeroall
    jmp     773f
772:
    .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
    vandps  xmm\n, xmm\n, xmmword ptr [rax + {E_FLOAT_MASKS} + 16 * \n]
    .endr
    ZERO_UPPER_REGISTERS avx
773:
.endm

# After the extension returned: leave no dirty upper halves that would slow the host's SSE code.
.macro LEAVE_VECTORS_none
.endm
.macro LEAVE_VECTORS_sse
.endm
.macro LEAVE_VECTORS_avx
    vzeroupper
.endm

# Before an extension's function: what is neither an argument nor the data stack.
.macro CLEAR_SCALARS
    xor     eax, eax
    xor     ebx, ebx
    xor     ebp, ebp
    xor     r10d, r10d
    xor     r12d, r12d
    xor     r13d, r13d
    xor     r14d, r14d
.endm

# Behind a result in rax, and xmm0, for an extension.
.macro CLEAR_BEHIND_RESULT
    xor     ecx, ecx
    xor     edx, edx
    xor     esi, esi
    xor     edi, edi
    xor     r8d, r8d
    xor     r9d, r9d
    xor     r10d, r10d
    xor     r11d, r11d
.endm

.macro SAVE_FIVE
    push    rbx
    push    r12
    push    r13
    push    r14
    push    r15
.endm
.macro RESTORE_FIVE
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbx
.endm
.macro SAVE_HOST
    push    rbp
    SAVE_FIVE
.endm
.macro RESTORE_HOST
    RESTORE_FIVE
    pop     rbp
.endm

.macro GLOBAL name
    .globl  \name
    .hidden \name
\name:
.endm

# Where other processes see which function this thread of a common domain is inside, from before the
# extension's first instruction to behind its last one; 0 is none. What is stored there lasts also
# if the process is killed between any two instructions. \thread, \control, and a register for it.
.macro INSIDE_WORD to, thread, control
    mov     e\to, fs:[\thread + {T_INSIDE_AT}]
    add     r\to, [\control + {C_INSIDE}]
.endm

# \class: what is cleared. \float: whether MXCSR is the extension's. \noted: whether other processes
# see who is inside. \name: of all three.
.macro ENTRY_GATE name, class, float, noted
    .p2align 6
# From C: the caller may leave anything in registers, and in parts of registers, that hold no
# argument.
GLOBAL postern_masked_\name
    MASK_INTEGERS rax
# From Rust: all six integer registers are arguments or zero.
GLOBAL postern_gate_\name
    SAVE_HOST
GLOBAL postern_body_\name
    THREAD  r14
    mov     rbx, rsp
    mov     r10, [rax + {E_CONTROL}]
    sub     rbx, fs:[r14 + {T_STACK_LOW}]
    cmp     rbx, fs:[r14 + {T_STACK_SPAN}]
    jae     postern_slow                    # unregistered thread, foreign stack, or too little of it
    cmp     dword ptr fs:[r14 + {T_CALL_STATE}], {OUTSIDE}
    jne     postern_slow                    # nested, or from a signal handler
    mov     dword ptr fs:[r14 + {T_CALL_STATE}], {ENTERING}    # a signal handler that calls extensions from here on is refused
    inc     qword ptr fs:[r14 + {T_SEQUENCE}]
    mov     fs:[r14 + {T_FRAME}], rsp
    mov     fs:[r14 + {T_CONTROL}], r10
    .if \float
    SAVE_MXCSR r14, ebx
    .endif
    mov     dword ptr fs:[r14 + {T_CALL_STATE}], {INSIDE}
    # Published; whoever closes the domain changes its lifecycle, then runs membarrier, then looks
    # at call states. So do those who want the thread's next call on the slow path: they send it to
    # nobody's slot, which is why the slot is loaded only here.
GLOBAL postern_marked_\name
    mov     rbx, [rax + {E_EXPECTED}]
    cmp     rbx, [r10 + {C_LIFECYCLE}]
    jne     postern_unmark                  # not open, or not the entry's domain any more
    mov     r12d, fs:[r14 + {T_ENTRY_SLOT}]
    mov     r15d, [r10 + r12 + {C_SLOTS}]
    test    r15d, r15d
    jz      postern_unmark                  # no data stack for this thread yet, or diverted
    inc     qword ptr [r10 + r12 + {C_SLOTS} + 8]
    mov     r11d, [rax + {E_OFFSET}]        # not before: now the entry cannot become another domain's (`stub.rs`)
    mov     r13, [r10 + {C_BASE}]
    .if \noted
    INSIDE_WORD bx, r14, r10
    mov     [rbx], r11d
    .endif
    LOAD_GS rbx
    or      r11, r13
    .if \float
    DEFAULT_MXCSR
    .endif
    CLEAR_VECTORS_\class
    CLEAR_SCALARS
    call    r11
GLOBAL postern_returned_\name
    LEAVE_VECTORS_\class
    THREAD  r10
    .if \float
    HOST_MXCSR r10
    .endif
    .if \noted
    mov     r11, fs:[r10 + {T_CONTROL}]
    INSIDE_WORD cx, r10, r11
    mov     dword ptr [rcx], 0
    .endif
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {OUTSIDE}
GLOBAL postern_left_\name
    xor     r11d, r11d
    RESTORE_HOST
    ret
.endm

ENTRY_GATE none, none, 0, 0
ENTRY_GATE sse, sse, 0, 0
ENTRY_GATE sse_float, sse, 1, 0
ENTRY_GATE avx, avx, 0, 0
ENTRY_GATE avx_float, avx, 1, 0
ENTRY_GATE none_noted, none, 0, 1
ENTRY_GATE sse_noted, sse, 0, 1
ENTRY_GATE sse_float_noted, sse, 1, 1
ENTRY_GATE avx_noted, avx, 0, 1
ENTRY_GATE avx_float_noted, avx, 1, 1

# Entries that always need the full gate (arguments in memory, x87, a call-depth limit).
    .p2align 4
GLOBAL postern_masked_full
    MASK_INTEGERS rax
GLOBAL postern_gate_full
    SAVE_HOST
GLOBAL postern_body_full
    jmp     postern_slow

# From C, for results of 8 and 16 bits: compilers may trust the callee to extend them, and a _Bool
# to be 0 or 1.
.macro NARROW name, extend:vararg
    .p2align 4
GLOBAL postern_narrow_\name
    sub     rsp, 8
    call    [rax + {E_INNER}]
    \extend
    add     rsp, 8
    ret
.endm
NARROW i8, movsx eax, al
NARROW u8, movzx eax, al
NARROW i16, movsx eax, ax
NARROW u16, movzx eax, ax
NARROW bool, and eax, 1

GLOBAL postern_unmark
    mov     dword ptr fs:[r14 + {T_CALL_STATE}], {OUTSIDE}
# The slow path. rax = the Entry, rsp = below the saved registers (8 mod 16). Keeps the argument
# registers while `postern_slow_entry(thread, entry, frame)` decides: 0 try again, 1 go through the
# full gate, 2 refused; and with which Entry, for calls of a module may go to another version than
# the one that they were made for.
GLOBAL postern_slow
    mov     rbp, rsp
    mov     rbx, rax
    sub     rsp, {SAVED}
    mov     [rsp], rdi
    mov     [rsp + 8], rsi
    mov     [rsp + 16], rdx
    mov     [rsp + 24], rcx
    mov     [rsp + 32], r8
    mov     [rsp + 40], r9
    movups  [rsp + 48], xmm0
    movups  [rsp + 64], xmm1
    movups  [rsp + 80], xmm2
    movups  [rsp + 96], xmm3
    movups  [rsp + 112], xmm4
    movups  [rsp + 128], xmm5
    movups  [rsp + 144], xmm6
    movups  [rsp + 160], xmm7
    THREAD  rdi
    add     rdi, fs:0
    mov     rsi, rbx
    mov     rdx, rbp
    call    {slow_entry}
    mov     rbx, rdx
    mov     rdi, [rsp]
    mov     rsi, [rsp + 8]
    mov     rdx, [rsp + 16]
    mov     rcx, [rsp + 24]
    mov     r8,  [rsp + 32]
    mov     r9,  [rsp + 40]
    movups  xmm0, [rsp + 48]
    movups  xmm1, [rsp + 64]
    movups  xmm2, [rsp + 80]
    movups  xmm3, [rsp + 96]
    movups  xmm4, [rsp + 112]
    movups  xmm5, [rsp + 128]
    movups  xmm6, [rsp + 144]
    movups  xmm7, [rsp + 160]
    mov     rsp, rbp
    mov     r11d, eax
    mov     rax, rbx
    cmp     r11d, 1
    je      postern_full
    ja      771f
    jmp     [rax + {E_BODY}]
771:                                        # refused: the reason is in the thread's state
    xor     eax, eax
    pxor    xmm0, xmm0
    RESTORE_HOST
    ret

# The full gate: `postern_slow_entry` has published the call and left its plan in the thread's
# state.
GLOBAL postern_full
    THREAD  r14
    mov     r10, fs:[r14 + {T_CONTROL}]
    mov     r15d, fs:[r14 + {T_PLAN_R15}]
    mov     r13, [r10 + {C_BASE}]
    LOAD_GS rbx
    mov     r11d, [rax + {E_OFFSET}]
    or      r11, r13
    mov     rsp, fs:[r14 + {T_PLAN_RSP}]
    mov     ebx, [r10 + {C_FACTS}]
    test    ebx, {FACT_X87}
    jz      771f
    fninit
771:
    test    ebx, {FACT_FLOAT}
    jz      776f
    DEFAULT_MXCSR
776:
    test    ebx, {FACT_XMM}
    jz      775f
    test    ebx, {FACT_YMM}
    jnz     774f
    CLEAR_VECTORS_sse
    jmp     775f
774:
    CLEAR_VECTORS_avx
775:
    CLEAR_SCALARS
    call    r11
    # Where the resume gate's calls return to, too (`resume.s`).
    .globl  postern_full_back
    .hidden postern_full_back
postern_full_back:
    THREAD  r10
    mov     rsp, fs:[r10 + {T_FRAME}]
    # Up to here rsp may be in a small stack of ours, where a handler of the host's that uses the
    # current stack finds no room: that fault is the extension's, so these two belong to the range
    # in which calls can be ended.
GLOBAL postern_returned_full
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {LEAVING}
GLOBAL postern_left_full
    sub     rsp, 40
    mov     [rsp], rax
    mov     [rsp + 8], rdx
    movups  [rsp + 16], xmm0
    mov     rdi, r10
    add     rdi, fs:0
    call    {slow_exit}
    movups  xmm0, [rsp + 16]
    mov     rdx, [rsp + 8]
    mov     rax, [rsp]
    add     rsp, 40
    xor     r11d, r11d
    RESTORE_HOST
    ret

# Where every ended call arrives: rsp = T_FRAME, T_CALL_STATE still INSIDE.
GLOBAL postern_aborted
    THREAD  r10
    mov     rsp, fs:[r10 + {T_FRAME}]
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {LEAVING}
GLOBAL postern_aborted_left
    cld
    mov     rdi, r10
    add     rdi, fs:0
    mov     rbx, rsp
    and     rsp, -16                        # a frame of the peer gate's is aligned to 8 only
    call    {abort_exit}
    mov     rsp, rbx
    cmp     eax, {STATUS_PEER}
    je      postern_peer_failed
    mov     r11d, eax
    xor     eax, eax
    xor     edx, edx
    pxor    xmm0, xmm0
    RESTORE_HOST
    ret

# The service gate: a slot's jump arrives here. r11d = slot number, return address into the
# extension on the stack.
    .p2align 6
GLOBAL postern_service
    THREAD  r10
    push    rbp
    mov     fs:[r10 + {T_SERVICE_RSP}], rsp
    mov     fs:[r10 + {T_SERVICE_R15}], r15d
    mov     rax, fs:[r10 + {T_CONTROL}]
    shl     r11, 6
    add     r11, [rax + {C_SERVICES}]
    mov     rbp, rsp
    cmp     dword ptr fs:[r10 + {T_FOREIGN}], 0
    jne     771f
    sub     rbp, [r11 + {S_STACK}]
    cmp     rbp, fs:[r10 + {T_STACK_LOW}]
    jl      postern_peer                    # both are user addresses, so signed comparison is right
postern_service_go:
    inc     qword ptr [r11 + {S_CALLS}]
    test    dword ptr [rax + {C_FACTS}], {FACT_HOST_STATE}
    jnz     773f
774:
    and     rsp, -16
    xor     ebp, ebp
    mov     rax, [r11 + {S_CONTEXT}]
    mov     fs:[r10 + {T_SERVICE}], r11
    mov     fs:[r10 + {T_CONTEXT}], rax
    mov     fs:[r10 + {T_HOST_RSP}], rsp
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {IN_SERVICE}
GLOBAL postern_service_out
    call    [r11 + {S_FUNCTION}]
    THREAD  r10
    # Not T_SERVICE_RSP, which an extension's longjmp has changed; and what an earlier service left
    # is not to be compared with.
    cmp     rsp, fs:[r10 + {T_HOST_RSP}]
    jne     postern_service_stray           # not the service that was called last on this thread
    mov     qword ptr fs:[r10 + {T_HOST_RSP}], 0
postern_service_returned:
    mov     r11, fs:[r10 + {T_CONTROL}]
    mov     rcx, fs:[r10 + {T_SERVICE}]
    mov     r9, fs:[r10 + {T_SEQUENCE}]
    mov     ebp, [r11 + {C_FACTS}]
    test    ebp, {FACT_HOST_STATE}
    jnz     781f
782:
    mov     dword ptr fs:[r10 + {T_CALL_STATE}], {INSIDE}
GLOBAL postern_service_back
    # Not before INSIDE: a small stack of ours has no room for handlers of the host's, and in any
    # other phase such a fault would be the host's.
    mov     rsp, fs:[r10 + {T_SERVICE_RSP}]
    cmp     r9, fs:[r10 + {T_PENDING}]
    je      postern_aborted
    rdgsbase rsi
    cmp     rsi, [r11 + {C_BASE}]
    jne     775f
776:
    and     rax, [rcx + {S_RESULT_MASK}]
    test    ebp, {FACT_XMM}
    jnz     777f
778:
    CLEAR_BEHIND_RESULT
    pop     rbp
    ret
771:                                        # on a control stack of ours: the service runs on the host's own
    mov     rbp, fs:[r10 + {T_FRAME}]
    mov     rsp, rbp
    sub     rbp, fs:[r10 + {T_STACK_LOW}]
    cmp     rbp, fs:[r10 + {T_STACK_SIZE}]
    jae     postern_service_go              # a coroutine's: only the host knows how large it is
    cmp     rbp, [r11 + {S_STACK}]
    jb      postern_peer
    jmp     postern_service_go
773:                                        # the host's own floating-point control, and gs base if it wants it
    mov     ebp, [rax + {C_FACTS}]
    test    ebp, {FACT_FLOAT}
    jz      783f
    HOST_MXCSR r10
783:
    test    ebp, {FACT_X87}
    jz      784f
    mov     rax, fs:[r10 + {T_EXTRA}]
    fninit                                  # no exception of the extension's may be pending
    cmp     word ptr [rax + {X_X87}], {X87_CONTROL}
    jne     785f
    cmp     word ptr [rax + {X_X87} + 4], 0
    je      784f                            # the host's is what fninit left
785:
    fldenv  [rax + {X_X87}]
784:
    test    ebp, {FACT_GS}
    jz      774b
    mov     rax, fs:[r10 + {T_HOST_GS}]
    wrgsbase rax
    jmp     774b
781:                                        # what the service left of these is the host's from now on
    test    ebp, {FACT_FLOAT}
    jz      783f
    SAVE_MXCSR r10, esi
    DEFAULT_MXCSR
783:
    test    ebp, {FACT_X87}
    jz      784f
    mov     rsi, fs:[r10 + {T_EXTRA}]
    # Control and status alone first: the whole environment takes five times as long, and by their
    # calling convention functions leave nothing else in it.
    fnstcw  word ptr [rsi + {X_X87}]
    fnstsw  word ptr [rsi + {X_X87} + 4]
    cmp     word ptr [rsi + {X_X87}], {X87_CONTROL}
    jne     785f
    cmp     word ptr [rsi + {X_X87} + 4], 0
    je      786f
785:
    fnstenv [rsi + {X_X87}]
786:
    fninit
784:
    test    ebp, {FACT_GS}
    jz      782b
    rdgsbase rsi
    mov     fs:[r10 + {T_HOST_GS}], rsi
    jmp     782b
775:
    mov     rsi, [r11 + {C_BASE}]
    wrgsbase rsi
    jmp     776b
777:
    test    ebp, {FACT_YMM}
    jnz     780f
    MASK_RESULT_sse rcx + {S_FLOAT_MASK}
    jmp     778b
780:
    MASK_RESULT_avx rcx + {S_FLOAT_MASK}
    jmp     778b

# A service of a coroutine's returns while a call that began later, on another coroutine of the
# thread, has not ended. The call state says that the innermost call is in its own service, which is
# so. `service_stray` takes the call of the present stack out of those that wait, and says with
# which frame the host goes on.
postern_service_stray:
    mov     rdi, r10
    add     rdi, fs:0
    mov     rsi, rsp
    call    {service_stray}
    mov     rsp, rax
    mov     r11d, {STATUS_ENDED}
    xor     eax, eax
    xor     edx, edx
    pxor    xmm0, xmm0
    RESTORE_HOST
    ret
