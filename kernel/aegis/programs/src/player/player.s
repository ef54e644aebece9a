# Patterns in registers, while slices end and begin.
.text
.global player_registers
player_registers:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, player_stack(%rip)
    movabsq $0x1111111111111111, %rax
    movabsq $0x2222222222222222, %rbx
    movabsq $0x4444444444444444, %rdx
    movabsq $0x5555555555555555, %rsi
    movabsq $0x6666666666666666, %rdi
    movabsq $0x7777777777777777, %rbp
    movabsq $0x8888888888888888, %r8
    movabsq $0x9999999999999999, %r9
    movabsq $0xaaaaaaaaaaaaaaaa, %r10
    movabsq $0xbbbbbbbbbbbbbbbb, %r11
    movabsq $0xcccccccccccccccc, %r12
    movabsq $0xdddddddddddddddd, %r13
    movabsq $0xeeeeeeeeeeeeeeee, %r14
    movabsq $0xf0f0f0f0f0f0f0f0, %r15
    xorl %esp, %esp             # nobody may write where it points
    movl $1000000, %ecx
    stc
1:  leal -1(%rcx), %ecx         # the flags stay, the carry among them
    jnc 3f
    jrcxz 2f
    jmp 1b
2:  movq player_stack(%rip), %rsp
    movq %rax, %rcx
    .macro holds register, pattern
    movabsq $\pattern, %rax
    cmpq %\register, %rax
    jne 4f
    .endm
    holds rcx, 0x1111111111111111
    holds rbx, 0x2222222222222222
    holds rdx, 0x4444444444444444
    holds rsi, 0x5555555555555555
    holds rdi, 0x6666666666666666
    holds rbp, 0x7777777777777777
    holds r8, 0x8888888888888888
    holds r9, 0x9999999999999999
    holds r10, 0xaaaaaaaaaaaaaaaa
    holds r11, 0xbbbbbbbbbbbbbbbb
    holds r12, 0xcccccccccccccccc
    holds r13, 0xdddddddddddddddd
    holds r14, 0xeeeeeeeeeeeeeeee
    holds r15, 0xf0f0f0f0f0f0f0f0
    movl $1, %eax
    jmp 5f
3:  movq player_stack(%rip), %rsp
4:  xorl %eax, %eax
5:  popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret

.global player_vectors
player_vectors:                 # and in the base of gs
    movl %edi, %eax
    wrgsbase %rax
    movq %rdi, %xmm0
    notq %rdi
    movq %rdi, %xmm15
    fld1
    movl $1000000, %ecx
1:  decl %ecx
    jnz 1b
    xorl %eax, %eax
    movq %xmm15, %rdx
    cmpq %rdi, %rdx
    jne 2f
    notq %rdi
    movq %xmm0, %rdx
    cmpq %rdi, %rdx
    jne 2f
    movl %edi, %ecx
    rdgsbase %rdx
    cmpq %rcx, %rdx
    jne 2f
    fistpll player_one(%rip)
    cmpq $1, player_one(%rip)
    jne 2f
    movl $1, %eax
2:  ret

# Loads from an address with patterns in the registers that the kernel keeps of whom it submits, but rsi.
.global player_fault
player_fault:
    movl $0x1111, %ebx
    movl $0x2222, %edx
    movq %rdi, %rsi
    movl $0x5555, %ebp
    movl $0x6666, %esp
    movl $0x7777, %r8d
    movl $0x8888, %r9d
    movl $0x9999, %r10d
    movl $0xaaaa, %r12d
    movl $0xbbbb, %r13d
    movl $0xcccc, %r14d
    movl $0xdddd, %r15d
    movl $0x4444, %edi
    movq (%rsi), %rax
    ud2

.global player_spin
player_spin:
    jmp player_spin

.section .data.player, "aw", @progbits
.balign 8
player_stack: .quad 0
player_one: .quad 0
    .text
