# Into the kernel and out of it. What is done often is done here, without a stack and without a call: the null call, the
# coprocessor, translations, transfers and yields, exceptions. Everything else goes to Rust with all registers saved.
#
# In the kernel: interrupts are off; gs is the processor's own area ({{...}} are offsets in it), the environment's gs base is in the
# other gs; no user address is ever read or written. rax, rcx and r11 are free in a call; no other register changes. An address that
# an environment's context names loses its upper 17 bits before it is used: `sysretq` must not meet one that is not canonical.

.section .text
.balign 64
.global syscall_entry
syscall_entry:
    swapgs
    movq %rcx, %gs:{RIP}
    movq %r11, %gs:{FLAGS}
    movzbl %al, %ecx
    jmp *call_table(,%rcx,8)

.balign 16
call_null:
    xorl %eax, %eax
leave:
    movq %gs:{RIP}, %rcx
    swapgs
    sysretq

call_none:
    movq $-{NO_CALL}, %rax
    jmp leave

# Whose state the coprocessor has is known by birth ({{FPU_OWNER}}): switched on by another environment, it is cleared.
.balign 16
call_fpu:
    testl $1, %edi
    jnz 1f
    movl $0, %gs:{FPU}
    movq %cr0, %rcx
    orq $8, %rcx
    movq %rcx, %cr0
    xorl %eax, %eax
    jmp leave
1:  movq %gs:{CURRENT}, %rcx
    movl {E_BIRTH}(%rcx), %ecx
    movl $1, %gs:{FPU}
    clts
    xorl %eax, %eax
    cmpl %ecx, %gs:{FPU_OWNER}
    je leave
    movl %ecx, %gs:{FPU_OWNER}
    movq %rdx, %gs:{KEPT}
    movl $7, %eax
    xorl %edx, %edx
    xrstor64 clean_state
    movq %gs:{KEPT}, %rdx
    xorl %eax, %eax
    jmp leave

.balign 16
call_flush:
    invlpg (%rdi)
    xorl %eax, %eax
    jmp leave

.balign 16
call_flush_all:
    movq %cr3, %rcx
    movq %rcx, %cr3
    xorl %eax, %eax
    jmp leave

# Another environment goes on in this one's time, as `donate` of the books says. Guard clauses first; from the new root table on
# nothing can fail. The claim is taken before anything of the callee is believed, and given back after its tables are left.
.macro transfer entry:req, donate:req
    movzbl %ah, %eax
    shll $8, %eax               # records are 256 bytes
    movq %gs:{ENVIRONMENTS}, %r11
    addq %rax, %r11
    movl %gs:{MARK}, %ecx
    xorl %eax, %eax
    lock cmpxchgl %ecx, (%r11)  # its claim: idle -> this processor
    jne not_idle
    cmpl $0, {E_STOPPING}(%r11)
    jne not_ready
    movq {E_CONTEXT}(%r11), %rax
    addq %gs:{PHYSICAL}, %rax
    movq \entry(%rax), %rcx
    shlq $17, %rcx
    shrq $17, %rcx
    jz not_ready
    movq %rcx, %gs:{RIP}
    movq %rax, %gs:{CONTEXT}
    movq {E_TABLE}(%r11), %rcx
    movq %rcx, %cr3
    movq %gs:{CURRENT}, %rcx
    movq %r11, %gs:{CURRENT}
    movzwl {E_NUMBER}(%rcx), %eax
    movl %eax, %gs:{CALLER}
    movl $0, (%rcx)             # the caller is idle, now that its tables are left
    movzwl {E_NUMBER}(%r11), %ecx
    movq %gs:{PROCESSOR}, %r11
    movl %ecx, {P_CURRENT}(%r11)
    .if \donate
    movq %gs:{SLICE}, %r11
    lock cmpxchgw %cx, {S_RUNS}(%r11)   # if the position runs the caller
    .endif
    movq %gs:{CONTEXT}, %rax
    movl {C_FPU}(%rax), %ecx
    andl $1, %ecx
    cmpl %ecx, %gs:{FPU}
    jne switch_fpu_\@
    jecxz fpu_switched_\@
    movq %gs:{CURRENT}, %r11
    movl {E_BIRTH}(%r11), %ecx
    movl %ecx, %gs:{FPU_OWNER}  # registers are the message, these too
fpu_switched_\@:
    movq {C_FS}(%rax), %rcx
    shlq $17, %rcx
    shrq $17, %rcx
    wrfsbase %rcx
    movq {C_GS}(%rax), %r11
    shlq $17, %r11
    shrq $17, %r11
    movq %gs:{RIP}, %rcx
    movl %gs:{CALLER}, %eax
    swapgs
    wrgsbase %r11
    movl $0x202, %r11d
    sysretq
switch_fpu_\@:
    movl %ecx, %gs:{FPU}
    jecxz 1f
    clts
    movq %gs:{CURRENT}, %r11
    movl {E_BIRTH}(%r11), %ecx
    cmpl %ecx, %gs:{FPU_OWNER}
    je fpu_switched_\@
    movl %ecx, %gs:{FPU_OWNER}
    movq %rdx, %gs:{KEPT}
    movl $7, %eax
    xorl %edx, %edx
    xrstor64 clean_state
    movq %gs:{KEPT}, %rdx
    movq %gs:{CONTEXT}, %rax
    jmp fpu_switched_\@
1:  movq %cr0, %rcx
    orq $8, %rcx
    movq %rcx, %cr0
    jmp fpu_switched_\@
.endm

# Naming nobody, or when the slice has ended already, a yield ends the slice.
.balign 16
call_yield:
    testb %ah, %ah
    jz call_stack
    movq %gs:{PROCESSOR}, %rcx
    cmpl $0, {P_TOLD}(%rcx)
    jne call_stack
    transfer {C_BEGIN}, 0

.balign 16
call_synchronous:
    transfer {C_SYNCHRONOUS}, 1

.balign 16
call_asynchronous:
    transfer {C_ASYNCHRONOUS}, 0

not_ready:
    movl $0, (%r11)
    movq $-{BUSY}, %rax
    jmp leave_flags
not_idle:
    cmpl ${CHANGING}, %eax
    movq $-{BUSY}, %rax
    movq $-{NO_ENVIRONMENT}, %rcx
    cmovaeq %rcx, %rax
leave_flags:
    movq %gs:{FLAGS}, %r11
    jmp leave

# Calls that Rust does, by a table of functions: their arguments are an array of the six argument registers, and the number.
.balign 16
call_stack:
    movq %rsp, %gs:{RSP}
    movq %gs:{STACK}, %rsp
    pushq %r9
    pushq %r8
    pushq %r10
    pushq %rdx
    pushq %rsi
    pushq %rdi
    movzbl %al, %esi
    movq %rsp, %rdi
    call *kernel_calls(,%rsi,8)
    movq %gs:{CURRENT}, %rcx
    cmpl ${SUBMIT}, {E_STOPPING}(%rcx)
    jae kernel_leave            # the caller has ended or was handed over
    popq %rdi
    popq %rsi
    popq %rdx
    popq %r10
    popq %r8
    popq %r9
    movq %gs:{RSP}, %rsp
    movq %gs:{FLAGS}, %r11
    movq %gs:{RIP}, %rcx
    swapgs
    sysretq

# Exceptions of environments. The context gets what a handler needs to go on without the kernel; the handler starts with the
# vector in rax and every register but rax, rcx and r11 as it was.
.macro exception vector:req, code:req
.balign 16
exception_\vector:
    testb $3, 8+8*\code(%rsp)
    jz 8f
    swapgs
    clac
    pushq %rax
    .if \vector == 14
    pushq %rcx
    movq %cr2, %rcx
    cmpq %gs:{SEGMENT}, %rcx    # the second segment: the kernel looks first
    jae 7f
    movq %gs:{CONTEXT}, %rax
    cmpq {C_HANDLERS}+8*14(%rax), %rcx
    je 7f                       # the handler's own page
    movq %rcx, {X_ADDRESS}(%rax)
    popq %rcx
    .else
    movq %gs:{CONTEXT}, %rax
    .endif
    movq %rcx, {X_RCX}(%rax)
    movq %r11, {X_R11}(%rax)
    popq %rcx
    movq %rcx, {X_RAX}(%rax)
    .if \code
    popq %rcx
    movq %rcx, {X_CODE}(%rax)
    .else
    movq $0, {X_CODE}(%rax)
    .endif
    movq (%rsp), %rcx
    movq %rcx, {X_RIP}(%rax)
    movq 16(%rsp), %r11
    movq %r11, {X_FLAGS}(%rax)
    movq $\vector, {X_VECTOR}(%rax)
    movq {C_HANDLERS}+8*\vector(%rax), %rcx
    shlq $17, %rcx
    shrq $17, %rcx
    jz 9f
    movq 24(%rsp), %rsp
    movl $\vector, %eax
    movl $0x202, %r11d
    swapgs
    sysretq
    .if \vector == 14
7:  popq %rcx
    popq %rax
    swapgs
    .endif
8:  .if !\code
    pushq $0
    .endif
    pushq $\vector
    jmp trap
9:  movq (%rsp), %rsi           # no handler: the environment ends at this instruction
    movq %gs:{STACK}, %rsp
    movl $\vector, %edi
    cld
    call kernel_unhandled
    ud2
.endm

.irp v, 0,3,4,5,6,7,9,15,16,19,20,22,23,24,25,26,27,28,31
    exception \v, 0
.endr
.irp v, 10,11,12,13,14,17,21,29,30
    exception \v, 1
.endr

# A single step or a watch is the environment's like any other exception; one of the kernel's own, which a step over the first
# instruction of an entry leaves behind, is nothing.
exception 1, 0
.balign 16
debug_entry:
    testb $3, 8(%rsp)
    jnz exception_1
nothing_entry:
    iretq

.macro direct name:req, vector:req, code:req
.balign 16
\name:
    .if !\code
    pushq $0
    .endif
    pushq $\vector
    jmp trap
.endm
direct double_fault_entry, 8, 1
direct machine_check_entry, 18, 0
direct clock_entry, {CLOCK}, 0
direct request_entry, {REQUEST}, 0
direct spurious_entry, {SPURIOUS}, 0
direct network_entry, {NETWORK}, 0
direct disk_entry, {DISK}, 0

.balign 16
trap:
    testb $3, 24(%rsp)
    jz 1f
    swapgs
1:  pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    cld
    clac
    movq %rsp, %rdi
    call kernel_trap
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rdx
    popq %rcx
    popq %rax
    testb $3, 24(%rsp)
    jz 1f
    swapgs
1:  addq $16, %rsp
    iretq

# enter(rip, rax, fs base, gs base): an environment begins. All other registers are clear.
.global enter
enter:
    wrfsbase %rdx
    movq %rdi, %rbx
    movq %rsi, %rax
    swapgs
    wrgsbase %rcx
    movq %rbx, %rcx
    movl $0x202, %r11d
    xorl %ebx, %ebx
    xorl %edx, %edx
    xorl %esi, %esi
    xorl %edi, %edi
    xorl %ebp, %ebp
    xorl %r8d, %r8d
    xorl %r9d, %r9d
    xorl %r10d, %r10d
    xorl %r12d, %r12d
    xorl %r13d, %r13d
    xorl %r14d, %r14d
    xorl %r15d, %r15d
    xorl %esp, %esp
    sysretq

# Leaves whatever was done on this processor's stack and asks who runs next.
.global schedule
schedule:
    movq %gs:{STACK}, %rsp
    xorl %ebp, %ebp
    call kernel_schedule
    ud2

# Fills the coprocessor's registers with what they are after a reset.
.global clean_fpu
clean_fpu:
    movl $7, %eax
    xorl %edx, %edx
    xrstor64 clean_state
    ret

.section .rodata
.balign 64
clean_state:
    .word 0x37f
    .fill 22, 1, 0
    .long 0x1f80, 0
    .fill 544, 1, 0             # the header says that every part is as after a reset
    .fill 256, 1, 0
.balign 8
call_table:
    .quad call_null, call_fpu, call_flush, call_flush_all, call_yield, call_synchronous, call_asynchronous
    .rept {CALLS} - 7
    .quad call_stack
    .endr
    .rept 256 - {CALLS}
    .quad call_none
    .endr

# The entry of each vector, as the interrupt table has it.
.global vectors
vectors:
    .quad exception_0, debug_entry, nothing_entry, exception_3, exception_4, exception_5, exception_6, exception_7
    .quad double_fault_entry, exception_9, exception_10, exception_11, exception_12, exception_13, exception_14, exception_15
    .quad exception_16, exception_17, machine_check_entry, exception_19, exception_20, exception_21, exception_22, exception_23
    .quad exception_24, exception_25, exception_26, exception_27, exception_28, exception_29, exception_30, exception_31
    .quad clock_entry, request_entry, spurious_entry, network_entry, disk_entry
