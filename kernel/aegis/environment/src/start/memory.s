# What the compiler takes from a C library: memory moved, filled, compared.
#
# Up to 32 bytes go by words that overlap, all of them read before one is written, whichever way
# they go; more by the processor's own repetition, eight at a time, and the odd ones by a word.
.section .text.memory, "ax", @progbits
.global memcpy, memmove, memset, memcmp, bcmp
memcpy:
    movq %rdi, %rax
    cmpq $8, %rdx
    jb 2f
    movq -8(%rsi,%rdx), %r9
    cmpq $32, %rdx
    ja 1f
    movq (%rsi), %r8
    cmpq $16, %rdx
    jbe 0f
    movq 8(%rsi), %r10
    movq -16(%rsi,%rdx), %r11
    movq %r10, 8(%rdi)
    movq %r11, -16(%rdi,%rdx)
0:  movq %r8, (%rdi)
    movq %r9, -8(%rdi,%rdx)
    ret
1:  leaq -8(%rdi,%rdx), %r8
    movq %rdx, %rcx
    shrq $3, %rcx
    rep movsq
    movq %r9, (%r8)
    ret
2:  cmpl $4, %edx
    jb 3f
    movl (%rsi), %r8d
    movl -4(%rsi,%rdx), %r9d
    movl %r8d, (%rdi)
    movl %r9d, -4(%rdi,%rdx)
    ret
3:  movl %edx, %ecx
    shrl $1, %ecx
    testl %edx, %edx
    je 4f
    movzbl (%rsi), %r8d
    movzbl (%rsi,%rcx), %r10d
    movzbl -1(%rsi,%rdx), %r9d
    movb %r8b, (%rdi)
    movb %r10b, (%rdi,%rcx)
    movb %r9b, -1(%rdi,%rdx)
4:  ret
memmove:
    movq %rdi, %rax
    movq %rdi, %rcx
    subq %rsi, %rcx
    cmpq %rdx, %rcx
    jae memcpy                  # also if it goes down: the difference is huge without a sign
    cmpq $32, %rdx
    jbe memcpy
    movq (%rsi), %r9
    leaq -8(%rdi,%rdx), %rdi
    leaq -8(%rsi,%rdx), %rsi
    movq %rdx, %rcx
    shrq $3, %rcx
    std
    rep movsq
    cld
    movq %r9, (%rax)
    ret
memset:
    movq %rdi, %r8
    movzbl %sil, %eax
    movabsq $0x0101010101010101, %rcx
    imulq %rcx, %rax
    cmpq $8, %rdx
    jb 2f
    movq %rax, -8(%rdi,%rdx)
    cmpq $32, %rdx
    ja 1f
    movq %rax, (%rdi)
    cmpq $16, %rdx
    jbe 0f
    movq %rax, 8(%rdi)
    movq %rax, -16(%rdi,%rdx)
0:  movq %r8, %rax
    ret
1:  movq %rdx, %rcx
    shrq $3, %rcx
    rep stosq
    movq %r8, %rax
    ret
2:  movl %edx, %ecx
    shrl $1, %ecx
    testl %edx, %edx
    je 0b
    movb %al, -1(%rdi,%rdx)
    cmpl $4, %edx
    jae 3f
    movb %al, (%rdi)
    movb %al, (%rdi,%rcx)
    jmp 0b
3:  movl %eax, (%rdi)
    movl %eax, -4(%rdi,%rdx)
    jmp 0b
memcmp:
bcmp:
    xorl %ecx, %ecx
    leaq -8(%rdx), %r9
    cmpq $8, %rdx
    jb 3f
1:  movq (%rdi,%rcx), %rax
    movq (%rsi,%rcx), %r8
    cmpq %r8, %rax
    jne 2f
    cmpq %r9, %rcx              # these were the last eight
    je 5f
    addq $8, %rcx
    cmpq %r9, %rcx
    cmovaq %r9, %rcx            # fewer than eight are left: the last eight
    jmp 1b
2:  bswapq %rax
    bswapq %r8
    cmpq %r8, %rax
    sbbl %eax, %eax
    orl $1, %eax
    ret
3:  cmpq %rdx, %rcx
    je 5f
    movzbl (%rdi,%rcx), %eax
    movzbl (%rsi,%rcx), %r8d
    incq %rcx
    subl %r8d, %eax
    je 3b
    ret
5:  xorl %eax, %eax
    ret
    .text
