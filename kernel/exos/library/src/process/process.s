# fork: registers that C's calls keep, for the copy to go on with.
.section .text.exos_process, "ax", @progbits
.global fork
.global vfork
fork:
vfork:
    leaq fork_state(%rip), %rax
    movq %rbx, 0(%rax)
    movq %rbp, 8(%rax)
    movq %r12, 16(%rax)
    movq %r13, 24(%rax)
    movq %r14, 32(%rax)
    movq %r15, 40(%rax)
    movq (%rsp), %rcx
    movq %rcx, 48(%rax)
    leaq 8(%rsp), %rcx
    movq %rcx, 56(%rax)
    stmxcsr 64(%rax)
    fnstcw 68(%rax)
    jmp exos_fork

.global exos_go_on
exos_go_on:
    leaq fork_state(%rip), %rcx
    movq 0(%rcx), %rbx
    movq 8(%rcx), %rbp
    movq 16(%rcx), %r12
    movq 24(%rcx), %r13
    movq 32(%rcx), %r14
    movq 40(%rcx), %r15
    movq 56(%rcx), %rsp
    ldmxcsr 64(%rcx)
    fldcw 68(%rcx)
    xorl %eax, %eax
    jmp *48(%rcx)

# A signal: the program goes on here, with the registers of what was interrupted in exos_interrupted, in the order of
# entry::Interrupted, and its stack. They go to the stack below the red zone, with vector registers, and come back from there.
.set VECTORS, 896
.set REGISTERS, 144
.global exos_signalled
exos_signalled:
    leaq -128(%rsp), %rsp
    andq $-64, %rsp
    subq $VECTORS, %rsp
    xorl %eax, %eax
    movq %rsp, %rdi
    addq $512, %rdi
    movl $8, %ecx
    cld
    rep stosq
    movl $7, %eax
    xorl %edx, %edx
    xsave64 (%rsp)
    subq $REGISTERS + 48, %rsp
    leaq exos_interrupted(%rip), %rsi
    movq %rsp, %rdi
    movl $18, %ecx
    rep movsq
    movl $0x1f80, REGISTERS(%rsp)
    ldmxcsr REGISTERS(%rsp)
    movq %rsp, %rdi
    call exos_arrived
    movl $7, %eax
    xorl %edx, %edx
    xrstor64 REGISTERS + 48(%rsp)
    movq 56(%rsp), %rcx
    movq 128(%rsp), %rax
    movq %rax, -136(%rcx)
    movq 136(%rsp), %rax
    movq %rax, -144(%rcx)
    movq 0(%rsp), %rax
    movq 8(%rsp), %rbx
    movq 24(%rsp), %rdx
    movq 32(%rsp), %rsi
    movq 40(%rsp), %rdi
    movq 48(%rsp), %rbp
    movq 64(%rsp), %r8
    movq 72(%rsp), %r9
    movq 80(%rsp), %r10
    movq 88(%rsp), %r11
    movq 96(%rsp), %r12
    movq 104(%rsp), %r13
    movq 112(%rsp), %r14
    movq 120(%rsp), %r15
    pushq 16(%rsp)
    leaq -144(%rcx), %rcx
    xchgq %rcx, (%rsp)
    # On the stack is where flags and pointer are; rcx is right.
    popq %rsp
    popfq
    retq $128

# A handler (rdi) of a signal (esi) with what is told (rdx, rcx), on the stack that ends at r8, or on this one if that is 0.
.global exos_handle
exos_handle:
    pushq %rbp
    movq %rsp, %rbp
    movq %rdi, %rax
    movl %esi, %edi
    movq %rdx, %rsi
    movq %rcx, %rdx
    testq %r8, %r8
    cmovnzq %r8, %rsp
    andq $-16, %rsp
    call *%rax
    movq %rbp, %rsp
    popq %rbp
    ret

.section .bss.exos_process, "aw", @nobits
.balign 16
fork_state:
    .skip 56
.global fork_pointer
fork_pointer:
    .skip 24
.global exos_interrupted
exos_interrupted:
    .skip 144
    .text
