# Instructions that may raise an exception, one function each: 0 if there was none. A handler goes on at test_recover, with the stack as
# it is at each function's first instruction.

.text
.macro probe name
.global test_\name
test_\name:
.endm
.macro fine
    xorl %eax, %eax
    ret
.endm

.global test_recover
test_recover:
    movl $1, %eax
    ret

probe read
    movq (%rdi), %rax
    fine
probe write
    movq %rax, (%rdi)
    fine
probe jump                      # to a page whose first instruction returns
    xorl %eax, %eax
    jmp *%rdi
probe divide
    xorl %ecx, %ecx
    xorl %edx, %edx
    divl %ecx
    fine
probe breakpoint
    int3
    fine
probe overflow
    int $4
    fine
probe undefined
    ud2
    fine
probe unaligned
    movaps 1(%rdi), %xmm0
    fine
probe vector
    movq %rdi, %xmm0
    fine
probe x87
    fld1
    fstp %st(0)
    fine
probe sgdt
    sgdt -64(%rsp)
    fine
probe sidt
    sidt -64(%rsp)
    fine
probe sldt
    sldt %rax
    fine
probe str
    str %rax
    fine
probe smsw
    smsw %rax
    fine
probe cli
    cli
    fine
probe sti
    sti
    fine
probe hlt
    hlt
    fine
probe in
    inb $0x60, %al
    fine
probe out
    movw $0xf4, %dx
    outb %al, %dx
    fine
probe rdmsr
    movl $0xc0000082, %ecx
    rdmsr
    fine
probe wrmsr
    movl $0xc0000082, %ecx
    wrmsr
    fine
probe read_cr3
    movq %cr3, %rax
    fine
probe write_cr3
    movq %rdi, %cr3
    fine
probe invlpg
    invlpg (%rdi)
    fine
probe clts
    clts
    fine
probe swapgs
    swapgs
    fine
probe stac
    stac
    fine
probe lgdt
    lgdt -64(%rsp)
    fine
probe iopl                      # flags of privilege stay as they are
    pushfq
    orq $0x3000, (%rsp)
    popfq
    pushfq
    popq %rax
    andl $0x3000, %eax
    ret
probe rdfs
    rdfsbase %rax
    ret
probe rdgs
    rdgsbase %rax
    ret

.macro patterns
    movabsq $0x2222222222222222, %rbx
    movabsq $0x4444444444444444, %rdx
    movabsq $0x5555555555555555, %rsi
    movabsq $0x6666666666666666, %rdi
    movabsq $0x7777777777777777, %rbp
    movabsq $0x8888888888888888, %r8
    movabsq $0x9999999999999999, %r9
    movabsq $0xaaaaaaaaaaaaaaaa, %r10
    movabsq $0xcccccccccccccccc, %r12
    movabsq $0xdddddddddddddddd, %r13
    movabsq $0xeeeeeeeeeeeeeeee, %r14
    movabsq $0xf0f0f0f0f0f0f0f0, %r15
.endm
.macro holds register:req, pattern:req
    movabsq $\pattern, %rax
    cmpq %\register, %rax
    jne 9f
.endm
.macro hold
    holds rbx, 0x2222222222222222
    holds rdx, 0x4444444444444444
    holds rsi, 0x5555555555555555
    holds rdi, 0x6666666666666666
    holds rbp, 0x7777777777777777
    holds r8, 0x8888888888888888
    holds r9, 0x9999999999999999
    holds r10, 0xaaaaaaaaaaaaaaaa
    holds r12, 0xcccccccccccccccc
    holds r13, 0xdddddddddddddddd
    holds r14, 0xeeeeeeeeeeeeeeee
    holds r15, 0xf0f0f0f0f0f0f0f0
.endm
.macro enter_patterns
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, test_stack(%rip)
    xorl %esp, %esp             # nobody may write where it points
.endm
.macro leave_patterns
    movl $1, %eax
    jmp 8f
9:  xorl %eax, %eax
8:  movq test_stack(%rip), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret
.endm

# test_registers_call(number): 1 if a call keeps all registers but three.
.global test_registers_call
test_registers_call:
    movl %edi, %eax
    enter_patterns
    patterns
    syscall
    testq %rsp, %rsp
    jne 9f
    hold
    leave_patterns

# 1 if all registers and the carry are back after an exception.
.global test_registers_exception
test_registers_exception:
    enter_patterns
    patterns
    movabsq $0x1111111111111111, %rax
    movabsq $0x3333333333333333, %rcx
    movabsq $0xbbbbbbbbbbbbbbbb, %r11
    stc
    int3
    jnc 9f
    testq %rsp, %rsp
    jne 9f
    movq %rax, test_word(%rip)
    holds rcx, 0x3333333333333333
    holds r11, 0xbbbbbbbbbbbbbbbb
    movq test_word(%rip), %rcx
    holds rcx, 0x1111111111111111
    hold
    leave_patterns

# Spins until somebody else changes rax: what it is then.
.global test_spin, test_spins
test_spin:
    xorl %eax, %eax
test_spins:
    testq %rax, %rax
    jz test_spins
    ret

.section .data.test, "aw", @progbits
.balign 16
test_stack: .quad 0
test_word: .quad 0
    .text
