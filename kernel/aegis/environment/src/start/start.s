# The first instruction of a program. It may be entered again before the program has set where its
# slices end, with everything lost but memory: then the program begins anew. A link script may name another stack.
.section .start, "ax", @progbits
.global _start
_start:
    leaq program_stack_top(%rip), %rsp
    xorl %ebp, %ebp
    cld
    call aegis_main
    ud2

.section .bss.stack, "aw", @nobits
.balign 16
    .skip 65536
main_stack_top:
.weak program_stack_top
.set program_stack_top, main_stack_top
    .text
