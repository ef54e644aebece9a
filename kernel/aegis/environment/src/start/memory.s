# What the compiler takes from a C library: memory moved, filled, compared.
.section .text.memory, "ax", @progbits
.global memcpy, memmove, memset, memcmp, bcmp
memcpy:
    movq %rdi, %rax
    movq %rdx, %rcx
    rep movsb
    ret
memmove:
    movq %rdi, %rax
    movq %rdi, %rcx
    subq %rsi, %rcx
    cmpq %rdx, %rcx
    jae memcpy                  # also if it goes down: the difference is huge without a sign
    leaq -1(%rdi,%rdx), %rdi
    leaq -1(%rsi,%rdx), %rsi
    movq %rdx, %rcx
    std
    rep movsb
    cld
    ret
memset:
    movq %rdi, %r8
    movl %esi, %eax
    movq %rdx, %rcx
    rep stosb
    movq %r8, %rax
    ret
memcmp:
bcmp:
    xorl %ecx, %ecx
1:  cmpq %rdx, %rcx
    je 2f
    movzbl (%rdi,%rcx), %eax
    movzbl (%rsi,%rcx), %r8d
    incq %rcx
    subl %r8d, %eax
    je 1b
    ret
2:  xorl %eax, %eax
    ret
    .text
