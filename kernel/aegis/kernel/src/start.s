# From the loader to the first line of Rust, for the first processor and for the others.
#
# The first one comes by the PVH convention: 32-bit protected mode, flat segments, no paging, ebx = the start information. The
# others come in real mode at the page to which `others16` was copied. Both end in 64-bit mode with tables that map the first GiB
# three times: where it is, where the kernel sees memory, and in the highest 2 GiB. The kernel leaves these tables at once.
.section .note.pvh, "a", @note
.balign 4
    .long 4, 8, 18              # sizes of name and value; the 32-bit physical entry
    .asciz "Xen"
    .quad start32

.section .start, "awx", @progbits
.code32
.global start32
start32:
    cli
    cld
    movl $start_stack, %esp
    movl %ebx, %edi             # the start information: first argument
    movl $first_gib, %eax       # 512 pages of 2 MiB: present, writable, large
    movl $0x83, %ecx
1:  movl %ecx, (%eax)
    addl $8, %eax
    addl $0x200000, %ecx
    cmpl $0x40000083, %ecx
    jne 1b
    movl $first64, %ebx
    jmp to_long_mode

others32:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %ss
    movl $others64, %ebx

to_long_mode:
    movl $start_table, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x20, %eax             # physical address extension
    movl %eax, %cr4
    movl $0xc0000080, %ecx      # EFER: syscall, long mode, no-execute
    rdmsr
    orl $0x901, %eax
    wrmsr
    movl %cr0, %eax
    andl $0x9fffffff, %eax      # caches on
    orl $0x80010001, %eax       # paging, write protection, protected mode
    movl %eax, %cr0
    lgdt start_gdt_pointer
    ljmp $0x08, $long_mode
.code64
long_mode:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    xorl %ebp, %ebp
    jmp *%rbx
first64:
    movabsq $first_stack, %rsp
    movabsq $kernel_first, %rax
    call *%rax
    ud2
others64:
    movabsq $other_stack, %rax  # set for each processor before it is started
    movq (%rax), %rsp
    movabsq $kernel_other, %rax
    call *%rax
    ud2

.code16
.global others16, others16_end
others16:                       # runs at any page below 1 MiB: cs is the page
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    lgdtl others16_pointer - others16
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x18, $others32
.balign 4
others16_pointer:
    .word 31
    .long start_gdt
others16_end:

.balign 8
start_gdt:
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff
start_gdt_pointer:
    .word 31
    .long start_gdt
.balign 4096
.global start_table
start_table:
    .quad start_low + 3
    .fill 255, 8, 0
    .quad start_low + 3
    .fill 254, 8, 0
    .quad start_high + 3
start_low:
    .quad first_gib + 3
    .fill 511, 8, 0
start_high:
    .fill 510, 8, 0
    .quad first_gib + 3
    .quad 0
first_gib:
    .fill 512, 8, 0
    .fill 64, 8, 0
start_stack:

.section .bss.first_stack, "aw", @nobits
.balign 4096
.global first_guard             # its lowest page is not mapped in the kernel's own tables
first_guard:
    .skip 36864
.global first_stack
first_stack:

# What the compiler may call for copies; the host's target leaves these to a C library.
.section .text
.code64
.global memcpy, memmove, memset, memcmp, bcmp
memcpy:
    movq %rdi, %rax
    movq %rdx, %rcx
    shrq $3, %rcx
    rep movsq
    movl %edx, %ecx
    andl $7, %ecx
    rep movsb
    ret
memmove:
    movq %rdi, %rax
    movq %rdi, %rcx
    subq %rsi, %rcx
    cmpq %rdx, %rcx             # destination inside the source: backwards
    jae memcpy
    movq %rdx, %rcx
    leaq -1(%rdi,%rdx), %rdi
    leaq -1(%rsi,%rdx), %rsi
    std
    rep movsb
    cld
    ret
memset:
    movq %rdi, %r8
    movzbl %sil, %eax
    movabsq $0x0101010101010101, %rcx
    imulq %rcx, %rax
    movq %rdx, %rcx
    shrq $3, %rcx
    rep stosq
    movl %edx, %ecx
    andl $7, %ecx
    rep stosb
    movq %r8, %rax
    ret
memcmp:
bcmp:
    xorl %eax, %eax
    xorl %ecx, %ecx
1:  cmpq %rdx, %rcx
    je 2f
    movzbl (%rdi,%rcx), %eax
    movzbl (%rsi,%rcx), %r8d
    incq %rcx
    subl %r8d, %eax
    je 1b
2:  ret
