# Where the kernel enters a program, and how the program goes on from there without the kernel.
#
# What runs is a stack of activations: the program itself, above it a request that is served, or events that are told. Each activation
# has two areas for registers: one for when the end of a slice interrupts it, one for when it gives the processor away itself. Its
# word A_RESUME is the area that it goes on from at the next begin; 0: none, it begins anew.
#
#   upcall     (upcall.s) a device's event while the program runs: saves as `end` does, and goes on at notify
#   end        saves everything in the interrupted activation's area and ends the slice; if a function is registered for that and the
#              program itself was interrupted, it may change what the program goes on with
#   begin      puts everything back, from the area of the topmost activation
#   notify     events: an activation of their own, then begin
#   synchronous, asynchronous   a request: an activation of its own; or the answer that the program waits for: then begin
#   exception  a frame on the stack of exceptions, a function of Rust, back to where it was; nothing of this enters the kernel
#
# A tick can fall between any two instructions of these, too. `end` looks where: in parts that only put back what is kept, or have
# kept nothing yet, it saves nothing and they are done again (`within`); the beginning of a request, whose registers are nowhere else
# yet, is finished first (`forward`). A fault cannot: all this stands on pages that the kernel itself guarantees.
#
# The interrupted stack is never written to, and its flags and pointer come back last.

.set R_RAX, 0
.set R_RBX, 8
.set R_RCX, 16
.set R_RDX, 24
.set R_RSI, 32
.set R_RDI, 40
.set R_RBP, 48
.set R_RSP, 56
.set R_R8, 64
.set R_R9, 72
.set R_R10, 80
.set R_R11, 88
.set R_R12, 96
.set R_R13, 104
.set R_R14, 112
.set R_R15, 120
.set R_RIP, 128
.set R_RFLAGS, 136
.set R_PREVIOUS, 144            # A_RESUME before
.set R_VECTORS, 152             # whether vector registers were saved
.set R_SIZE, 160
.set F_ADDRESS, 152             # of an exception's frame
.set F_CODE, 160
.set F_VECTOR, 168
.set F_SIZE, 176

.set A_RESUME, 0
.set A_RIP, 8                   # of the activation below, which may stand in a handler: exception_rip and exception_rsp
.set A_RSP, 16
.set A_GIVEN, 32                # the area for giving the processor away
.set A_INTERRUPTED, A_GIVEN + R_SIZE
.set A_EXCEPTED, A_INTERRUPTED + R_SIZE # of the activation below: what its last exception interrupted
.set A_MODES, 416               # of vector and x87 instructions, when it gives the processor away
.set A_VECTORS, 448             # XSAVE: x87, SSE, AVX
.set A_SIZE, 1280

.set S_RAX, 0                   # abi::context::Saved
.set S_RCX, 8
.set S_R11, 16
.set S_RIP, 24
.set S_RFLAGS, 32
.set S_ADDRESS, 40
.set S_CODE, 48
.set S_VECTOR, 56

.set M_CALLER, 0                # entry::Message
.set M_KIND, 8
.set M_WORDS, 16
.set M_SIZE, 56
.set KIND_ANSWER, 1
.set KIND_BUSY, 2
.set KIND_ASYNCHRONOUS, 3
.set KIND_RETURN, 4
.set KIND_CALL, 16              # procedure.s
.set KIND_WAKE, 19              # nothing: that it comes is all

.set QUEUE, 8                   # requests that wait at most: a power of two
.set ATTEMPTS, 64               # to answer somebody who cannot be entered
.set ATTEMPTS_RUNNING, 1 << 20  # to answer somebody who runs on another processor
.set REFUSALS, 1 << 12          # attempts to say that the queue is full

.section .handlers.text, "ax", @progbits

.macro save_most area:req       # all but rax, rcx, r11, rip, rflags
    movq %rbx, R_RBX(\area)
    movq %rdx, R_RDX(\area)
    movq %rsi, R_RSI(\area)
    movq %rdi, R_RDI(\area)
    movq %rbp, R_RBP(\area)
    movq %rsp, R_RSP(\area)
    movq %r8, R_R8(\area)
    movq %r9, R_R9(\area)
    movq %r10, R_R10(\area)
    movq %r12, R_R12(\area)
    movq %r13, R_R13(\area)
    movq %r14, R_R14(\area)
    movq %r15, R_R15(\area)
.endm

.macro restore_most area:req    # all but rax, rcx, r11, rsp, rip, rflags
    movq R_RBX(\area), %rbx
    movq R_RDX(\area), %rdx
    movq R_RSI(\area), %rsi
    movq R_RDI(\area), %rdi
    movq R_RBP(\area), %rbp
    movq R_R8(\area), %r8
    movq R_R9(\area), %r9
    movq R_R10(\area), %r10
    movq R_R12(\area), %r12
    movq R_R13(\area), %r13
    movq R_R14(\area), %r14
    movq R_R15(\area), %r15
.endm

.macro copy from:req, to:req, offset:req, target:req
    movq \offset(\from), %rbx
    movq %rbx, \target(\to)
.endm

.macro push_activation          # rcx: the new one
    movq $0, A_RESUME(%rcx)
    movq exception_rip(%rip), %rax
    movq %rax, A_RIP(%rcx)
    movq exception_rsp(%rip), %rax
    movq %rax, A_RSP(%rcx)
    movabsq $CONTEXT + EXCEPTED, %rdx
    .irp word, S_RAX, S_RCX, S_R11, S_RIP, S_RFLAGS, S_ADDRESS, S_CODE, S_VECTOR
    movq \word(%rdx), %rax
    movq %rax, A_EXCEPTED+\word(%rcx)
    .endr
.endm

.macro pop_activation           # rcx: the one that is over
    movq A_RIP(%rcx), %rax
    movq %rax, exception_rip(%rip)
    movq A_RSP(%rcx), %rax
    movq %rax, exception_rsp(%rip)
    movabsq $CONTEXT + EXCEPTED, %rdx
    .irp word, S_RAX, S_RCX, S_R11, S_RIP, S_RFLAGS, S_ADDRESS, S_CODE, S_VECTOR
    movq A_EXCEPTED+\word(%rcx), %rax
    movq %rax, \word(%rdx)
    .endr
.endm

# Slices of its own begin from now on: it slept.
.macro awake                    # takes rcx and r11
    leaq begin(%rip), %r11
    movabsq $CONTEXT + BEGIN, %rcx
    movq %r11, (%rcx)
.endm

# Who has the coprocessor on may have set its own base of gs, which the kernel takes from the context at every begin.
.macro keep_base                # takes rax
    rdgsbase %rax
    movabsq %rax, CONTEXT + GS
.endm

.macro modes_kept to:req, at=0   # modes of vector and x87 instructions, which others may have changed at a begin
    stmxcsr \at(\to)
    fnstcw 4+\at(\to)
.endm
.macro modes_back from:req, at=0
    fninit
    fldcw 4+\at(\from)
    ldmxcsr \at(\from)
.endm

.macro within first:req, last:req, target:req
    leaq \first(%rip), %r11
    cmpq %r11, %rcx
    jb 77f
    leaq \last(%rip), %r11
    cmpq %r11, %rcx
    jb \target
77:
.endm

# On at %rcx with all registers as %rax says: for what interrupts, where it does nothing (or not yet). Each has words of its own for
# both pointers, since one can come in the middle of another.
.macro go_on who:req
    movq %rcx, \who\()_rip(%rip)
    movq %rsp, \who\()_rsp(%rip)
    leaq flags_top(%rip), %rsp
    pushq S_RFLAGS(%rax)
    movq S_RCX(%rax), %rcx
    movq S_R11(%rax), %r11
    movq S_RAX(%rax), %rax
    popfq
    movq \who\()_rsp(%rip), %rsp
    jmp *\who\()_rip(%rip)
.endm

# ------------------------------------------------------------------ the end of a slice

.balign 16
end:
    movabsq $CONTEXT + INTERRUPTED, %rax
    movq S_RIP(%rax), %rcx
    within upcall, notify, end_upcalled
end_of:                         # rax: what was interrupted, rcx: where
    within landed, begin_restore, give_up
    within begin_restore, begin_restored, again
    within notify, notified, give_up
    within take, taken, give_up
    within asynchronous, call_refuse, end_arrives
    within call_arrives, call_taken, end_arrives
    within call_answers, call_answered, end_arrives
    within call_refuse, call_comes_late, end_refuse
    within synchronous, queued, forward
    within answer, answered, answer_again
    within call_again, call_refused, end_call
    within reply_again, reply_refused, end_reply
    within park, park_end, end_park
end_save:
    movq top(%rip), %rcx
    leaq A_INTERRUPTED(%rcx), %r11
    save_most %r11
    leaq begin(%rip), %rdx      # what runs is awake: who was about to sleep looks once more
    movabsq $CONTEXT + BEGIN, %rbx
    movq %rdx, (%rbx)
    copy %rax, %r11, S_RAX, R_RAX
    copy %rax, %r11, S_RCX, R_RCX
    copy %rax, %r11, S_R11, R_R11
    copy %rax, %r11, S_RIP, R_RIP
    copy %rax, %r11, S_RFLAGS, R_RFLAGS
    copy %rcx, %r11, A_RESUME, R_PREVIOUS
    movq vectors(%rip), %rbx
    movq %rbx, R_VECTORS(%r11)
    testq %rbx, %rbx
    jz 1f
    movl $7, %eax
    xorl %edx, %edx
    xsave64 A_VECTORS(%rcx)
    keep_base
    movq %r11, A_RESUME(%rcx)
    movq ending(%rip), %rax
    testq %rax, %rax
    jz give_up
    leaq activations(%rip), %rdx
    cmpq %rdx, %rcx
    jne give_up
    leaq notify_stack_top(%rip), %rsp   # no events are being told: their activation would be the topmost
    xorl %ebp, %ebp
    movq %r11, %rdi
    call *%rax
    jmp give_up
1:  movq %r11, A_RESUME(%rcx)
give_up:
    movl $0, pending(%rip)
    movl $YIELD, %eax
    syscall
    jmp give_up

end_upcalled:                   # an upcall has changed nothing but rax, rcx and r11
    movabsq $CONTEXT + UPCALLED, %rax
    movq S_RIP(%rax), %rcx
    jmp end_of

again:                          # begin is begun once more, from the same area
    movq top(%rip), %rcx
    movq restoring(%rip), %r11
    movq %r11, A_RESUME(%rcx)
    jmp give_up

answer_again:                   # the request stays as it was before its answer
    movq serving(%rip), %rcx
    leaq A_GIVEN(%rcx), %r11
    movq %r11, A_RESUME(%rcx)
    leaq answer_begin(%rip), %rax
    movq %rax, R_RIP(%r11)
    movq $0x202, R_RFLAGS(%r11)
    movq $0, R_PREVIOUS(%r11)
    movq $0, R_VECTORS(%r11)
    leaq serve_stack_top(%rip), %rax
    movq %rax, R_RSP(%r11)
    movl served(%rip), %eax
    movl %eax, queue_head(%rip)
    movq %rcx, top(%rip)
    jmp give_up

forward:                        # on, as if nothing was, with a note that the slice is over
    movl $1, pending(%rip)
    go_on forward

# ------------------------------------------------------------------ the begin of a slice

leave_activation:               # rcx: the one below
    movq %rcx, top(%rip)
landed:                         # nothing is in registers
    cmpl $0, pending(%rip)
    jne give_up
.balign 16
begin:
    movq top(%rip), %rax
    movl queue_tail(%rip), %ecx
    cmpl queue_head(%rip), %ecx
    je begin_topmost
    movq serving(%rip), %rcx
    testq %rcx, %rcx
    jz take
    cmpq %rax, %rcx
    ja take                     # none is being served
begin_topmost:
    movq A_RESUME(%rax), %rcx
    testq %rcx, %rcx
    jz anew
    movq %rcx, restoring(%rip)
begin_restore:
    cmpq $0, R_VECTORS(%rcx)
    jz 1f
    movq %rax, %rbx
    movl $7, %eax
    xorl %edx, %edx
    xrstor64 A_VECTORS(%rbx)
    movq %rbx, %rax
1:  movq R_PREVIOUS(%rcx), %rdx
    movq %rdx, A_RESUME(%rax)
    movq R_RIP(%rcx), %rdx
    movq %rdx, begin_rip(%rip)
    movq R_RSP(%rcx), %rdx
    movq %rdx, begin_rsp(%rip)
    restore_most %rcx
    movq R_RAX(%rcx), %rax
    movq R_R11(%rcx), %r11
    leaq flags_top(%rip), %rsp
    pushq R_RFLAGS(%rcx)
    movq R_RCX(%rcx), %rcx
    popfq
    movq begin_rsp(%rip), %rsp
    jmp *begin_rip(%rip)
begin_restored:
anew:
    movabsq $_start, %rax
    jmp *%rax

# ------------------------------------------------------------------ requests and answers

# A request comes: it is put into the queue, and begin takes it from there, unless one is being served: that one goes on then, in the
# time of the caller. The caller is in rax, the message in rdi, rsi, rdx, r8, r10, what it is in r9. rcx and r11 are free.
.balign 16
synchronous:
    cmpq $KIND_RETURN, %r9      # a slice of its own comes back
    je landed
    cmpl %eax, waiting(%rip)
    je 2f
1:  xorl %ecx, %ecx
    jmp request
2:  testq %r9, %r9
    jz 1b                       # who is waited for asks something itself
    movq %r9, reply+M_KIND(%rip)
    movq %rdi, reply+M_WORDS(%rip)
    movq %rsi, reply+M_WORDS+8(%rip)
    movq %rdx, reply+M_WORDS+16(%rip)
    movq %r8, reply+M_WORDS+24(%rip)
    movq %r10, reply+M_WORDS+32(%rip)
    movl $0, waiting(%rip)
    movl $1, replied(%rip)
    jmp landed
.balign 16
asynchronous:
    cmpq %r9, expected(%rip)
    je call_answers
not_called:
    cmpb $KIND_CALL, %r9b
    je call_arrives
    jmp 2f
call_refuse:                    # it is busy: with another call, or with itself
    movl %eax, %r13d
    movl $REFUSALS, %r12d
3:  movb $KIND_CALL + 1, %r9b
    movq $-BUSY, %r8
    movl %r13d, %eax
    shll $8, %eax
    orl $CALL_ASYNCHRONOUS, %eax
    syscall
    cmpq $-NO_ENVIRONMENT, %rax
    je landed
    decl %r12d
    jnz 3b
    movb $KIND_CALL, %r9b       # it runs elsewhere, and hears it later
    movl queue_tail(%rip), %r11d
    subl queue_head(%rip), %r11d
    cmpl $QUEUE, %r11d
    jae landed
    movl queue_tail(%rip), %r11d
    andl $QUEUE-1, %r11d
    imull $M_SIZE, %r11d, %r11d
    leaq queue(%rip), %rcx
    addq %rcx, %r11
    movq %r13, M_CALLER(%r11)
    movq %r9, M_KIND(%r11)
    incl queue_tail(%rip)
    jmp landed
call_comes_late:
    leaq waits(%rip), %rcx
    movq %rbx, R_RBX(%rcx)
    movq %rbp, R_RBP(%rcx)
    movq %r12, R_R12(%rcx)
    movq %r13, R_R13(%rcx)
    movq %r14, R_R14(%rcx)
    movq %r15, R_R15(%rcx)
    movq %rdx, R_RDX(%rcx)
    movq %r8, R_R8(%rcx)
    movl $0, called(%rip)
    movl $1, late(%rip)
    jmp landed
2:  cmpb $KIND_WAKE, %r9b
    jne 3f
    awake
    jmp landed
3:  movl $KIND_ASYNCHRONOUS, %ecx
request:
    movl queue_tail(%rip), %r11d
    subl queue_head(%rip), %r11d
    cmpl $QUEUE, %r11d
    jae full
    movl queue_tail(%rip), %r11d
    andl $QUEUE-1, %r11d
    imull $M_SIZE, %r11d, %r11d
    leaq queue(%rip), %r9
    addq %r9, %r11
    movq %rax, M_CALLER(%r11)
    movq %rcx, M_KIND(%r11)
    movq %rdi, M_WORDS(%r11)
    movq %rsi, M_WORDS+8(%r11)
    movq %rdx, M_WORDS+16(%r11)
    movq %r8, M_WORDS+24(%r11)
    movq %r10, M_WORDS+32(%r11)
    incl queue_tail(%rip)
    leaq begin(%rip), %rax      # who sleeps is awake: it serves this over the ends of slices, and looks what came of it
    movabsq %rax, CONTEXT + BEGIN
    jmp landed
full:                           # the caller hears that, though it may run elsewhere for a moment
    testl %ecx, %ecx
    jnz 2f
    movl $KIND_BUSY, %r9d
    shll $8, %eax
    orl $CALL_SYNCHRONOUS, %eax
    movl %eax, %ebx
    movl $REFUSALS, %r12d
1:  movl %ebx, %eax
    syscall
    cmpq $-NO_ENVIRONMENT, %rax
    je 2f
    decl %r12d
    jnz 1b
2:  jmp landed
queued:

# Begin found a request. rax: the topmost activation.
.balign 16
take:
    leaq last_activation(%rip), %rcx
    cmpq %rcx, %rax
    jae begin_topmost
    leaq A_SIZE(%rax), %rcx
    cmpq %rcx, notifying(%rip)
    jne 1f
    movq $0, notifying(%rip)    # that was over: this activation is another one now
1:  push_activation
    movq %rcx, serving(%rip)
    movl $0, attempts(%rip)
    leaq serve_stack_top(%rip), %rsp
    xorl %ebp, %ebp
    movq %rcx, top(%rip)
taken:
    movl queue_head(%rip), %eax
    movl %eax, served(%rip)
    andl $QUEUE-1, %eax
    imull $M_SIZE, %eax, %eax
    leaq queue(%rip), %rbx
    addq %rax, %rbx
    movq %rbx, message(%rip)
    movq %rbx, %rdi
    movabsq $aegis_requested, %rax
    call *%rax
    movq serving(%rip), %rcx
    pop_activation
    movq message(%rip), %rbx
    cmpq $KIND_ASYNCHRONOUS, M_KIND(%rbx)
    jne answer_begin
    incl queue_head(%rip)
    subq $A_SIZE, %rcx
    jmp leave_activation

answer_begin:
    movq message(%rip), %rbx
    movq M_WORDS(%rbx), %rdi
    movq M_WORDS+8(%rbx), %rsi
    movq M_WORDS+16(%rbx), %rdx
    movq M_WORDS+24(%rbx), %r8
    movq M_WORDS+32(%rbx), %r10
    movl $KIND_ANSWER, %r9d
    movl M_CALLER(%rbx), %eax
    shll $8, %eax
    orl $CALL_SYNCHRONOUS, %eax
    movq serving(%rip), %rcx
    subq $A_SIZE, %rcx
answer:                         # what begins after the call is the activation below, without the request
    incl queue_head(%rip)
    movq %rcx, top(%rip)
    syscall
    # Refused. Nobody there, or nobody who can be entered for long: the answer is lost. Otherwise once more, and far oftener for who
    # runs: it waits by yielding, so it can be entered now and then.
    cmpq $-NO_ENVIRONMENT, %rax
    je landed
    movl $ATTEMPTS, %ecx
    movzbl M_CALLER(%rbx), %edx
    shll $RECORD_SHIFT, %edx
    movabsq $ENVIRONMENTS, %r11
    movl (%r11,%rdx), %edx      # its claim
    decl %edx
    cmpl $LAST_PROCESSOR, %edx
    jae 1f
    movl $ATTEMPTS_RUNNING, %ecx
1:  cmpl %ecx, attempts(%rip)
    jae landed
    incl attempts(%rip)
    movl served(%rip), %eax
    movl %eax, queue_head(%rip)
    movq serving(%rip), %rcx
    movq %rcx, top(%rip)
answered:
    leaq serve_stack_top(%rip), %rsp
    xorl %edi, %edi
    xorl %esi, %esi
    movl $YIELD, %edx
    call give_away
    jmp answer_begin

# ------------------------------------------------------------------ giving the processor away

# give_away(environment, message or 0, call): yields, or transfers with a message, and comes back at a begin: 0, or the error.
.balign 16
give_away:
    movq top(%rip), %rax
    leaq A_GIVEN(%rax), %rcx
    movq %rbx, R_RBX(%rcx)
    movq %rbp, R_RBP(%rcx)
    movq %rsp, R_RSP(%rcx)
    movq %r12, R_R12(%rcx)
    movq %r13, R_R13(%rcx)
    movq %r14, R_R14(%rcx)
    movq %r15, R_R15(%rcx)
    leaq given(%rip), %r11
    movq %r11, R_RIP(%rcx)
    movq $0x202, R_RFLAGS(%rcx)
    movq $0, R_PREVIOUS(%rcx)
    movq $0, R_VECTORS(%rcx)
    cmpq $0, vectors(%rip)
    je 2f
    modes_kept %rax, A_MODES
2:  movq %rcx, A_RESUME(%rax)
    movzbl %dil, %eax
    shll $8, %eax
    orl %edx, %eax
    testq %rsi, %rsi
    jz 1f
    movq M_WORDS(%rsi), %rdi
    movq M_WORDS+16(%rsi), %rdx
    movq M_WORDS+24(%rsi), %r8
    movq M_WORDS+32(%rsi), %r10
    movq M_KIND(%rsi), %r9
    movq M_WORDS+8(%rsi), %rsi
1:  syscall
    movq top(%rip), %rcx        # refused: nothing was given
    movq $0, A_RESUME(%rcx)
    ret
given:                          # who ran before may have left any modes
    cmpq $0, vectors(%rip)
    je 1f
    movq top(%rip), %rax
    modes_back %rax, A_MODES
1:  xorl %eax, %eax
    ret

# ------------------------------------------------------------------ exceptions

# A frame stands below what is used already of a handler's stack, if an exception comes there, otherwise on top of the stack of exceptions.
.macro exceptional from:req
    movq %rsp, %rcx
    leaq handler_stacks(%rip), %rax
    cmpq %rax, %rcx
    jb 1f
    leaq exception_stack_top(%rip), %rax
    cmpq %rax, %rcx
    jbe 2f
1:  leaq exception_stack_top(%rip), %rcx
2:  andq $-16, %rcx
    subq $F_SIZE, %rcx
    movabsq $CONTEXT + \from, %rax
    save_most %rcx
    copy %rax, %rcx, S_RAX, R_RAX
    copy %rax, %rcx, S_RCX, R_RCX
    copy %rax, %rcx, S_R11, R_R11
    copy %rax, %rcx, S_RIP, R_RIP
    copy %rax, %rcx, S_RFLAGS, R_RFLAGS
    copy %rax, %rcx, S_ADDRESS, F_ADDRESS
    copy %rax, %rcx, S_CODE, F_CODE
    copy %rax, %rcx, S_VECTOR, F_VECTOR
    movq %rcx, %rsp
.endm

.balign 16
emergency:
    exceptional EMERGED
    jmp handle
.balign 16
exception:
    exceptional EXCEPTED
handle:
    movq %rsp, %rdi
    xorl %ebp, %ebp
    movabsq $aegis_excepted, %rax
    call *%rax
    movq R_RIP(%rsp), %rax
    movq %rax, exception_rip(%rip)
    movq R_RSP(%rsp), %rax
    movq %rax, exception_rsp(%rip)
    movq R_RAX(%rsp), %rax
    movq R_RCX(%rsp), %rcx
    movq R_R11(%rsp), %r11
    restore_most %rsp
    leaq R_RFLAGS(%rsp), %rsp
    popfq
    movq exception_rsp(%rip), %rsp
    jmp *exception_rip(%rip)

# ------------------------------------------------------------------ memory

.section .handlers.data, "aw", @progbits
.balign 64
activations:
    .fill 6 * A_SIZE, 1, 0
.set last_activation, activations + 5 * A_SIZE
queue:
    .fill QUEUE * M_SIZE, 1, 0
reply:
    .fill M_SIZE, 1, 0
.balign 8
top:            .quad activations
restoring:      .quad 0         # the area that begin puts back
begin_rip:      .quad 0
begin_rsp:      .quad 0
forward_rip:    .quad 0
forward_rsp:    .quad 0
upcall_rip:     .quad 0
upcall_rsp:     .quad 0
exception_rip:  .quad 0
exception_rsp:  .quad 0
notifying:      .quad 0         # the activation that tells events, as long as it is not above the topmost
serving:        .quad 0         # the activation that serves a request, as long as it is not above the topmost
message:        .quad 0         # that request
served:         .long 0         # its number in the queue
attempts:       .long 0         # to answer it
queue_head:     .long 0
queue_tail:     .long 0
.balign 8
vectors:        .quad 0         # whether vector registers are saved: only if the coprocessor is on for sure
ending:         .quad 0         # a function for the ends of slices, where vector registers are saved
pending:        .long 0         # the slice is over
waiting:        .long 0         # for an answer of this environment
replied:        .long 0         # the answer is there
.balign 16
    .fill 32, 1, 0
flags_top:
handler_stacks:
    .fill 3072, 1, 0
notify_stack_top:
    .fill 8192, 1, 0
serve_stack_top:
    .fill 8192, 1, 0
exception_stack_top:

# What Rust knows of it: entry::trusted::Entries. The entries can be too far for addresses in instructions.
.section .data.entries, "aw", @progbits
.balign 8
.global aegis_entries
aegis_entries:
    .quad top, activations, begin, end, notify, synchronous, asynchronous, exception, emergency, upcall, give_away, waiting, replied, reply, vectors, ending
    .text
