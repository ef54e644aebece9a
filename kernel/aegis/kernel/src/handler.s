# Into a handler and out of it. It runs on the kernel's own stack, of which the verifier bounds what it takes, behind fs.
#
# Invariant: from the way in to a way out {{HANDLER}} of the processor's area is the stack's pointer, so every way out finds what it
# left there, however deep the handler is; and no register that it can read has anything of the kernel's but rsp, which it cannot name.

.section .text
# run_handler(entry, window, stack, message, length, endpoint): what it returns. Interrupts are on while it runs if {{LOOPS}} says so.
.balign 16
.global run_handler
run_handler:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    rdfsbase %rax
    pushq %rax
    movq %rsp, %gs:{HANDLER}
    movq %rdi, %gs:{ENTRY}
    wrfsbase %rsi
    movl %edx, %r15d
    movl %ecx, %edi
    movl %r8d, %esi
    movl %r9d, %edx
    xorl %eax, %eax
    xorl %ebx, %ebx
    xorl %ecx, %ecx
    xorl %ebp, %ebp
    xorl %r8d, %r8d
    xorl %r9d, %r9d
    xorl %r10d, %r10d
    xorl %r11d, %r11d
    xorl %r12d, %r12d
    xorl %r13d, %r13d
    xorl %r14d, %r14d
    cmpl $0, %gs:{LOOPS}
    je 1f
    sti
1:  call *%gs:{ENTRY}
    cli
out:
    cld
    movq $0, %gs:{HANDLER}
    popq %rcx
    wrfsbase %rcx
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret

# Interrupts and exceptions return to here, with interrupts off, to end it.
.balign 16
.global leave_handler
leave_handler:
    movq %gs:{HANDLER}, %rsp
    jmp out

# A slot comes here, with the service's number in eax.
.balign 16
.global serve_handler
serve_handler:
    cli
    cld
    pushq %r9
    pushq %r8
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    movq %rsp, %rdi
    movl %eax, %esi
    call kernel_service
    addq $48, %rsp
    cmpl $0, %gs:{ENDED}
    jne leave_handler
    xorl %ecx, %ecx
    xorl %edx, %edx
    xorl %esi, %esi
    xorl %edi, %edi
    xorl %r8d, %r8d
    xorl %r9d, %r9d
    xorl %r10d, %r10d
    xorl %r11d, %r11d
    cmpl $0, %gs:{LOOPS}
    je 1f
    sti
1:  ret
