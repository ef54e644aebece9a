# Calls of procedures in other environments, by registers: asynchronous transfers there and back. The caller waits on its stack, the
# server is parked on its own; nothing is queued and no activation is pushed. Words and macros are those of `entry.s`.
#
# A message: r9 what it is (a number of the caller's in the upper bytes), rsi, rdx, r10, r8 four words. An answer: r8 0 or an error,
# rdx a word. Nothing in registers is believed: an answer counts if it is from the environment that was called (`called`, 0 if none)
# and has the number of the call (`expected`).
#
# A tick never finds this half done: `end` takes a call back whose registers are complete (from call_again, reply_again), or completes
# what has arrived (end_arrives), and saves it as it saves everything.

.set KEPT, 48                   # bytes of registers below the pointer of who trusts

.section .handlers.text, "ax", @progbits

# aegis_call(environment, four words): an error or 0 in rax, a word in rdx. Registers that a function keeps are kept here.
.balign 16
call_keeping:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    modes_kept %rsp
    call call_procedure
call_came:
    modes_back %rsp
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret

# The same, but the server is trusted to keep them: they are put back only after an error, when it has not. They stand below the
# stack's pointer, where nothing is written meanwhile: signals interrupt the program's own code alone, and events have stacks.
.balign 16
call_trusting:
    movq %rbx, -8(%rsp)
    movq %rbp, -16(%rsp)
    movq %r12, -24(%rsp)
    movq %r13, -32(%rsp)
    movq %r14, -40(%rsp)
    movq %r15, -48(%rsp)
call_procedure:
    cmpl $0, called(%rip)
    jne call_nested
    movq %rcx, %r10
    movl $0, looks(%rip)
    movq sequence(%rip), %r9
    addq $256, %r9
    movq %r9, sequence(%rip)
    orq $KIND_CALL, %r9
call_again:
    movq top(%rip), %rax
    leaq waits(%rip), %rcx
    movq %rsp, R_RSP(%rcx)
    leaq call_waits(%rip), %r11
    movq %r11, R_RIP(%rcx)
    movq $0x202, R_RFLAGS(%rcx)
    movq %rcx, A_RESUME(%rax)
    leaq 1(%r9), %rcx
    movq %rcx, expected(%rip)
    movq %rax, calling(%rip)
    movl %edi, called(%rip)
    movzbl %dil, %eax
    shll $8, %eax
    orl $CALL_ASYNCHRONOUS, %eax
    syscall
call_refused:
    movl $0, called(%rip)
    movq top(%rip), %rcx
    movq $0, A_RESUME(%rcx)
    xorl %edx, %edx
    ret
# A slice of the caller's begins before there is an answer: it goes to the server.
call_waits:
    cmpl $0, late(%rip)
    jne call_late
    subq $KEPT + 8, %rsp
    incl looks(%rip)
    movl called(%rip), %edi
    movl looks(%rip), %esi
    movabsq $aegis_call_looks, %rax
    call *%rax
    addq $KEPT + 8, %rsp
    testq %rax, %rax
    jnz call_fails
    movq top(%rip), %rax
    leaq waits(%rip), %rcx
    movq %rcx, A_RESUME(%rax)
    movzbl called(%rip), %eax
    shll $8, %eax
    orl $YIELD, %eax
    syscall
    movl $YIELD, %eax
    syscall
    jmp call_waits
call_fails:
    movl $0, called(%rip)
    xorl %edx, %edx
call_restores:                  # after an error, in rax
    leaq call_came(%rip), %rcx
    cmpq %rcx, (%rsp)
    je 1f
    movq -8(%rsp), %rbx
    movq -16(%rsp), %rbp
    movq -24(%rsp), %r12
    movq -32(%rsp), %r13
    movq -40(%rsp), %r14
    movq -48(%rsp), %r15
1:  ret
call_nested:                    # by events that are told while the program waits for an answer
    movq $-BUSY, %rax
    xorl %edx, %edx
    ret
call_late:                      # the answer came while a request was served or events were told
    movl $0, late(%rip)
    leaq waits(%rip), %rcx
    movq R_RBX(%rcx), %rbx
    movq R_RBP(%rcx), %rbp
    movq R_R12(%rcx), %r12
    movq R_R13(%rcx), %r13
    movq R_R14(%rcx), %r14
    movq R_R15(%rcx), %r15
    movq R_RDX(%rcx), %rdx
    movq R_R8(%rcx), %rax
    testq %rax, %rax
    jnz call_restores
    ret

# aegis_serve(procedure, address of a word of 32 bits): the environment is its procedure until the word is not 0.
serve:
    leaq activations(%rip), %rcx
    movq $-1, %rax
    cmpq top(%rip), %rcx
    jne 1f
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    pushq %rsi
    movq %rdi, procedure(%rip)
serve_again:
    leaq parks(%rip), %rax
    movq %rsp, R_RSP(%rax)
    leaq serve_goes_on(%rip), %rcx
    movq %rcx, R_RIP(%rax)
    movq $0x202, R_RFLAGS(%rax)
park:
    leaq parks(%rip), %rax
    leaq activations(%rip), %rcx
    movq %rax, A_RESUME(%rcx)
    movq %rcx, parked(%rip)
    movl $YIELD, %eax
    syscall
park_end:
    jmp park
serve_goes_on:
    movq $0, parked(%rip)
    movl $0, replies(%rip)
    movabsq $aegis_serve_begins, %rax
    call *%rax
    movq (%rsp), %rax
    cmpl $0, (%rax)
    je serve_again
    popq %rsi
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    xorl %eax, %eax
1:  ret

# What arrives at `asynchronous`: until the last instruction before a label of what goes on nothing has happened, so that `end` can
# do the rest of it.
.balign 16
call_arrives:
    movq top(%rip), %rcx
    cmpq %rcx, parked(%rip)
    jne call_refuse
    movq $0, parked(%rip)
call_taken:                     # who calls is in eax
    movq parks+R_RSP(%rip), %rsp
    movl %eax, caller(%rip)
    movq %r9, tag(%rip)
    movl %eax, %edi
    movq %r10, %rcx
    cmpq $0, vectors(%rip)
    je 1f
    fninit
    ldmxcsr modes(%rip)
1:  call *procedure(%rip)
    movq %rax, %rdx
reply_again:
    movq tag(%rip), %r9
    incq %r9
    xorl %r8d, %r8d
    leaq activations(%rip), %rcx
    leaq parks(%rip), %rax
    movq %rax, A_RESUME(%rcx)
    movq %rcx, parked(%rip)
    movl caller(%rip), %eax
    shll $8, %eax
    orl $CALL_ASYNCHRONOUS, %eax
    syscall
reply_refused:
    movq $0, parked(%rip)
    cmpq $-NO_ENVIRONMENT, %rax
    je 1f
    incl replies(%rip)
    cmpl $ATTEMPTS_RUNNING, replies(%rip)
    jae 1f
    pushq %rdx
    pushq %rdx
    xorl %edi, %edi
    xorl %esi, %esi
    movl $YIELD, %edx
    call give_away
    popq %rdx
    popq %rdx
    jmp reply_again
1:  jmp serve_goes_on           # the answer is lost


.balign 16
call_answers:
    cmpl %eax, called(%rip)
    jne not_called
    movq top(%rip), %rcx
    cmpq %rcx, calling(%rip)
    jne call_comes_late
    movq $0, A_RESUME(%rcx)
    movl $0, called(%rip)
call_answered:
    movq waits+R_RSP(%rip), %rsp
    movq %r8, %rax
    testq %rax, %rax
    jnz call_restores
    ret


.balign 4
modes: .long 0x1f80

# What `end` does with these. rax: what was interrupted.
end_call:
    movl $0, called(%rip)
    leaq call_again(%rip), %rcx
    movq %rcx, S_RIP(%rax)
    movq top(%rip), %rcx
    movq $0, A_RESUME(%rcx)
    jmp end_save
end_reply:
    movq $0, parked(%rip)
    leaq reply_again(%rip), %rcx
    movq %rcx, S_RIP(%rax)
    jmp end_save
end_refuse:                     # it waits in the queue: nobody is given what is left of a slice that is over
    leaq call_refuse(%rip), %r11
    cmpq %r11, %rcx
    jne 1f
end_refuse_now:
    movl S_RAX(%rax), %r13d
1:  movb $KIND_CALL, %r9b
    movl queue_tail(%rip), %r11d
    subl queue_head(%rip), %r11d
    cmpl $QUEUE, %r11d
    jae give_up                 # the caller hears nothing, until it has no patience left
    movl queue_tail(%rip), %r11d
    andl $QUEUE-1, %r11d
    imull $M_SIZE, %r11d, %r11d
    leaq queue(%rip), %rcx
    addq %rcx, %r11
    movq %r13, M_CALLER(%r11)
    movq %r9, M_KIND(%r11)
    incl queue_tail(%rip)
    jmp give_up
end_park:
    leaq parks(%rip), %rax
    leaq activations(%rip), %rcx
    movq %rax, A_RESUME(%rcx)
    movq %rcx, parked(%rip)
    jmp give_up
end_arrives:
    cmpq %r9, expected(%rip)
    jne 1f
    movl S_RAX(%rax), %r11d
    cmpl %r11d, called(%rip)
    jne 1f
    movq top(%rip), %r11
    cmpq %r11, calling(%rip)
    jne forward
    movq $0, A_RESUME(%r11)
    movl $0, called(%rip)
    leaq call_answered(%rip), %rcx
    movq %rcx, S_RIP(%rax)
    jmp end_save
1:  cmpb $KIND_CALL, %r9b
    jne forward
    movq top(%rip), %r11
    cmpq %r11, parked(%rip)
    jne end_refuse_now
    movq $0, parked(%rip)
    leaq call_taken(%rip), %rcx
    movq %rcx, S_RIP(%rax)
    jmp end_save

.section .handlers.data, "aw", @progbits
.balign 8
waits:          .fill R_SIZE, 1, 0  # where a caller goes on before it has its answer
parks:          .fill R_SIZE, 1, 0  # where a parked server goes on
expected:       .quad 0         # what the answer's r9 is
calling:        .quad 0         # the activation that waits
parked:         .quad 0         # the activation that waits for calls: 0 or the program itself
procedure:      .quad 0
tag:            .quad 0         # r9 of the call that is served
sequence:       .quad 0
called:         .long 0         # whose answer is waited for
caller:         .long 0
late:           .long 0
looks:          .long 0         # times that a slice began meanwhile
replies:        .long 0

# Where programs call them: the entries can be too far for an address in an instruction.
.text
.irp name, call, call_trusting, serve
.balign 16
.global aegis_\name
aegis_\name:
    .ifc \name,call
    movabsq $call_keeping, %rax
    .else
    movabsq $\name, %rax
    .endif
    jmp *%rax
.endr
