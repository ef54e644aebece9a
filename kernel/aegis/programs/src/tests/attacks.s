# What somebody does at the kernel's entries who wants more than a call: 0 if nothing came of it. The stack at test_recover is as at
# each function's first instruction.

.text
# A base of gs in rdi (the kernel's half, too), with calls of all paths and an exception meanwhile.
.global attack_gs
attack_gs:
    rdgsbase %r9
    wrgsbase %rdi
    xorl %eax, %eax
    syscall
    movl $7, %eax
    syscall
    movl $3, %eax
    syscall
    int3
    rdgsbase %rax
    wrgsbase %r9
    subq %rdi, %rax
    ret

# The same of fs.
.global attack_fs
attack_fs:
    rdfsbase %r9
    wrfsbase %rdi
    movl $7, %eax
    syscall
    int3
    rdfsbase %rax
    wrfsbase %r9
    subq %rdi, %rax
    ret

# Flags in rdi at calls of both paths, and at an exception: which of them are others afterwards.
.global attack_flags
attack_flags:
    movq $7, %r8
1:  pushq %rdi
    popfq
    movl %r8d, %eax
    syscall
    pushfq
    pushq $0x202
    popfq
    popq %rax
    xorq %rdi, %rax
    testq $0x44500, %rax
    jnz 2f
    subq $7, %r8
    jns 1b
    pushq %rdi
    popfq
    int3
    pushfq
    pushq $0x202
    popfq
    popq %rax
    xorq %rdi, %rax
2:  andl $0x44500, %eax
    ret

# A stack segment, whose load keeps traps away from the next instruction, which enters the kernel.
.global attack_segment
attack_segment:
    movl %ss, %r9d
    pushq $0x302
    popfq
    movl %r9d, %ss
    int3
    movl $7, %eax
    pushq $0x302
    popfq
    movl %r9d, %ss
    syscall
    xorl %eax, %eax
    ret

# A step of the instruction that enters the kernel, on all paths. The handler clears the flag.
.global attack_steps
attack_steps:
    .irp call, 0, 7, 2, 200
    movl $\call, %eax
    pushq $0x302
    popfq
    syscall
    .endr
    xorl %eax, %eax
    ret

# A stack pointer that is no address, in the kernel by all paths.
.global attack_stack
attack_stack:
    movq %rsp, %r9
    movq %rdi, %rsp
    xorl %eax, %eax
    syscall
    movl $7, %eax
    syscall
    int3
    subq %rsp, %rdi
    movq %r9, %rsp
    movq %rdi, %rax
    ret

# All data segments are the user's; then the kernel works, and gs stays.
.global attack_segments
attack_segments:
    rdgsbase %r9
    rdfsbase %r10
    movl $0x23, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %gs
    movl %eax, %fs
    movl $7, %eax
    syscall
    int3
    xorl %eax, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %gs
    movl %eax, %fs
    wrgsbase %r9
    wrfsbase %r10
    ret

# A far return to the kernel's code at its own privilege, and to a segment that is none.
.global attack_far
attack_far:
    movq %rsp, %r9
    pushq %rdi
    leaq 1f(%rip), %rax
    pushq %rax
    lretq
1:  movq %r9, %rsp
    xorl %eax, %eax
    ret
