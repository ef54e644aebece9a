# What is measured, between two readings of the time stamp counter, which under the emulator counts instructions. A measurement is
# between two marks, too (`nopl` with a number), by which a plugin of the emulator's knows what belongs to it. r12 has the first
# reading: neither the kernel nor another environment changes it.
.set BEGIN, 0x41450001
.set END, 0x41450002
.set ROW, 0x41450003

.macro start_clock marked=1
    .if \marked
    nopl BEGIN(%rax)
    .endif
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movq %rax, %r12
.endm

.macro stop_clock marked=1
    rdtsc
    .if \marked
    nopl END(%rax)
    .endif
    shlq $32, %rdx
    orq %rdx, %rax
    subq %r12, %rax
.endm

.text
# Ends a row for the plugin.
.global bench_row
bench_row:
    nopl ROW(%rax)
    ret

# Begins and ends a measurement of what waits, for the plugin alone.
.global bench_begin
bench_begin:
    nopl BEGIN(%rax)
    ret
.global bench_end
bench_end:
    nopl END(%rax)
    ret

# bench_nothing(): what the readings take; no row's, so without marks.
.global bench_nothing
bench_nothing:
    pushq %r12
    start_clock 0
    stop_clock 0
    popq %r12
    ret

# bench_procedure(): a procedure that does nothing, and back.
.global bench_procedure
bench_procedure:
    pushq %r12
    start_clock
    call 1f
    stop_clock
    popq %r12
    ret
1:  ret

# bench_call(number, array of six arguments): a call. bench_call_frame the same without it.
.macro measured_call name:req, calls:req
.global \name
\name:
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    movq %rdi, %rbx
    movq %rsi, %rax
    movq (%rax), %rdi
    movq 8(%rax), %rsi
    movq 16(%rax), %r13
    movq 24(%rax), %r10
    movq 32(%rax), %r8
    movq 40(%rax), %r9
    start_clock \calls
    movq %r13, %rdx             # the clock takes rdx
    .if \calls
    movl %ebx, %eax
    syscall
    .endif
    movq %rax, %r14
    stop_clock \calls
    movq %r14, bench_result(%rip)
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    ret
.endm
measured_call bench_call, 1
measured_call bench_call_frame, 0

# bench_NAME(address): an instruction that raises an exception, up to where the program goes on.
.macro faults name:req, instruction:vararg
.global bench_\name
bench_\name:
    pushq %rbx
    pushq %r12
    leaq 1f(%rip), %rbx         # where a handler goes on that only says that it was reached
    xorl %ecx, %ecx
    start_clock
    \instruction
1:  stop_clock
    popq %r12
    popq %rbx
    ret
.endm
faults divides, idivl %ecx
faults moves_unaligned, movaps (%rdi), %xmm0
faults uses_coprocessor, movd %xmm0, %ecx
faults stores, movl %ecx, (%rdi)
faults loads, movl (%rdi), %ecx

# Handlers. The first only says that it was reached.
.global bench_arrives
bench_arrives:
    stop_clock
    movq %rax, bench_arrived(%rip)
    jmp *%rbx

# Serves a missing page by a call, keeping the registers of its arguments, and goes on at the same instruction.
.global bench_maps
bench_maps:
    movq %rdi, kept+8(%rip)
    movq %rsi, kept+16(%rip)
    movq %rdx, kept+24(%rip)
    movq %r10, kept+32(%rip)
    movq %r8, kept+40(%rip)
    movabsq $CONTEXT+X_ADDRESS, %rcx
    movq (%rcx), %rdi
    andq $-4096, %rdi
    movq bench_mapping(%rip), %rsi
    xorl %edx, %edx
    xorl %r10d, %r10d
    xorl %r8d, %r8d
    movl $MAP, %eax
    syscall
    movq kept+8(%rip), %rdi
    movq kept+16(%rip), %rsi
    movq kept+24(%rip), %rdx
    movq kept+32(%rip), %r10
    movq kept+40(%rip), %r8

# Goes on as an application would: everything as it was, flags too, but so many bytes further.
.global bench_returns
bench_returns:
    movq %rsp, kept(%rip)
    leaq handler_stack(%rip), %rsp
    movabsq $CONTEXT, %rcx
    movq X_RIP(%rcx), %rax
    addq bench_skip(%rip), %rax
    movq %rax, kept+48(%rip)
    movq X_R11(%rcx), %r11
    movq X_RAX(%rcx), %rax
    pushq X_FLAGS(%rcx)
    movq X_RCX(%rcx), %rcx
    popfq
    movq kept(%rip), %rsp
    jmp *kept+48(%rip)

# bench_transfer(number of the call and of the callee): there and back. What comes back comes to bench_back, by the entry that the
# context names; all ones: it was refused.
.global bench_transfer
bench_transfer:
    pushq %rbx
    pushq %r12
    movl %edi, %ebx
    start_clock
    movl %ebx, %eax
    syscall
    orq $-1, %rax
    popq %r12
    popq %rbx
    ret
.global bench_back
bench_back:
    stop_clock
    popq %r12
    popq %rbx
    ret

# bench_touch(address, pages): a byte of each page.
.global bench_touch
bench_touch:
    pushq %r12
    start_clock
1:  movb (%rdi), %al
    addq $4096, %rdi
    decl %esi
    jnz 1b
    stop_clock
    popq %r12
    ret

.bss
.balign 16
    .skip 64
handler_stack:
kept: .skip 56
.global bench_arrived, bench_result, bench_skip, bench_mapping
bench_arrived: .skip 8
bench_result: .skip 8
bench_skip: .skip 8
bench_mapping: .skip 8
.text
