# Upcalls and events. Macros and words are those of `entry.s`.

.section .handlers.text, "ax", @progbits
.macro keep from:req, to:req
    movq \from(%rax), %r11
    movq %r11, A_INTERRUPTED+\to(%rcx)
.endm

# As `end`, but no register other than rax, rcx and r11 is changed and the last instruction is the one that counts: until then `end` can
# do all of it instead. Where `end` would have the beginning of a request finished, this goes back to it, and the events are told at
# the next begin.
.balign 16
upcall:
    movabsq $CONTEXT + UPCALLED, %rax
    movq S_RIP(%rax), %rcx
    within landed, begin_restore, notify
    within begin_restore, begin_restored, upcall_again
    within notify, notified, notify
    within take, taken, notify
    within synchronous, queued, upcall_back
    within answer, answered, upcall_back
    within call_arrives, call_taken, upcall_back
    within call_answers, call_answered, upcall_back
    within call_again, call_refused, upcall_back
    within reply_again, reply_refused, upcall_back
    within park, park_end, upcall_back
    jmp upcall_save
upcall_again:
    movq top(%rip), %rcx
    movq restoring(%rip), %r11
    movq %r11, A_RESUME(%rcx)
    jmp notify
upcall_back:
    go_on upcall
upcall_save:
    movq top(%rip), %rcx
    leaq A_INTERRUPTED(%rcx), %r11
    save_most %r11
    keep S_RAX, R_RAX
    keep S_RCX, R_RCX
    keep S_R11, R_R11
    keep S_RIP, R_RIP
    keep S_RFLAGS, R_RFLAGS
    movq A_RESUME(%rcx), %r11
    movq %r11, A_INTERRUPTED+R_PREVIOUS(%rcx)
    movq vectors(%rip), %r11
    movq %r11, A_INTERRUPTED+R_VECTORS(%rcx)
    testq %r11, %r11
    jz 1f
    movl $7, %eax               # what is in edx selects nothing that there is
    xsave64 A_VECTORS(%rcx)
    keep_base
1:  leaq A_INTERRUPTED(%rcx), %r11
    movq %r11, A_RESUME(%rcx)
notify:
    movq top(%rip), %rcx
    movq notifying(%rip), %rax
    testq %rax, %rax
    jz 1f
    cmpq %rcx, %rax
    jbe begin                   # they are being told
1:  leaq last_activation(%rip), %rax
    cmpq %rax, %rcx
    jae begin
    addq $A_SIZE, %rcx
    cmpq %rcx, serving(%rip)
    jne 1f
    movq $0, serving(%rip)      # that was over: this activation is another one now
1:  push_activation
    movq %rcx, notifying(%rip)
    leaq notify_stack_top(%rip), %rsp
    xorl %ebp, %ebp
    movq %rcx, top(%rip)
notified:
    movabsq $aegis_notified, %rax
    call *%rax
    movq notifying(%rip), %rcx
    pop_activation
    subq $A_SIZE, %rcx
    jmp leave_activation
