/* SPDX-License-Identifier: GPL-2.0 */
/* The ways into an extension and out of it.
 *
 * Invariant: between the way in and a way out, fs has the base of the invocation's window, and the
 * registers that the extension can read hold nothing of the kernel's but rsp, which no instruction
 * of it names. Every way out takes rsp from this processor's invocation, so it does not matter how
 * many calls are under way in the extension, nor what its registers hold. */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/version.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>
#include <asm/unwind_hints.h>
#include "gate.h"

/* No unwinder can see through the calls of an extension: stack traces end here. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define UNWIND_HINT_UNDEFINED UNWIND_HINT_EMPTY
#endif

	.text

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define PREEMPT_COUNT PER_CPU_VAR(__preempt_count)
#else
#define PREEMPT_COUNT PER_CPU_VAR(pcpu_hot + PREEMPT_COUNT_OFFSET)
#endif

/* u32 postern_invoke(struct extension *, u32 function, const u64 arguments[6], enum subject, void *,
 *		      u64 *value, struct postern_outcome *)
 * The common case, in as few instructions as it takes: a task or a softirq calls, interrupts are on,
 * and the window is this processor's alone and free. All else is for postern_invoke_slowly. */
SYM_CODE_START(postern_invoke)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR
	incl	PREEMPT_COUNT
	movl	PREEMPT_COUNT, %eax
	/* NMI and hard interrupts. */
	testl	$0xff0000, %eax
	jnz	.Lslowly
	pushfq
	popq	%r10
	testl	$0x200, %r10d
	jz	.Lslowly
	/* Serving a softirq is the second level. */
	andl	$0x100, %eax
	shrl	$1, %eax
	addq	EXTENSION_INVOCATIONS(%rdi), %rax
	addq	PER_CPU_VAR(this_cpu_off), %rax
	movq	INVOCATION_ONLY(%rax), %r10
	leal	-DOOR_SIZE(%rsi), %r11d
	cmpl	EXTENSION_DOORS_OPEN(%rdi), %r11d
	jae	.Lslowly
	cmpq	$0, WINDOW_BUSY(%r10)
	jne	.Lslowly
	movl	$1, WINDOW_BUSY(%r10)
	movl	%ecx, INVOCATION_KIND(%rax)
	movq	%r8, INVOCATION_SUBJECT(%rax)
	movq	EXTENSION_DOORS(%rdi), %rsi
	addq	%r11, %rsi
	movq	%rax, %rdi
	jmp	.Lenter
.Lslowly:
	jmp	postern_invoke_slowly
SYM_CODE_END(postern_invoke)

/* u32 postern_enter(struct invocation *, const void *door, const u64 arguments[6], u64, u64,
 *		     u64 *value, struct postern_outcome *)
 * With the window taken and preemption off; afterwards it is free, and preemption is as before. */
SYM_CODE_START(postern_enter)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR
.Lenter:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%r9
	rdfsbase %rax
	pushq	%rax
	movq	%rsp, INVOCATION_STACK(%rdi)
	movq	PER_CPU_VAR(postern_current), %rax
	movq	%rax, INVOCATION_OUTER(%rdi)
	movq	$0, INVOCATION_ENDED(%rdi)
	movq	%rdi, PER_CPU_VAR(postern_current)
	movq	INVOCATION_BASE(%rdi), %rax
	wrfsbase %rax
	movl	INVOCATION_STACK_TOP(%rdi), %r15d
	movq	%rsi, %r11
	movq	40(%rdx), %r9
	movq	32(%rdx), %r8
	movq	24(%rdx), %rcx
	movq	8(%rdx), %rsi
	movq	0(%rdx), %rdi
	movq	16(%rdx), %rdx
	xorl	%eax, %eax
	xorl	%ebx, %ebx
	xorl	%ebp, %ebp
	xorl	%r10d, %r10d
	xorl	%r12d, %r12d
	xorl	%r13d, %r13d
	xorl	%r14d, %r14d
	/* The door clears r11. */
	CALL_NOSPEC r11
.Lout:
	movq	PER_CPU_VAR(postern_current), %rdx
	movq	INVOCATION_OUTER(%rdx), %rcx
	movq	%rcx, PER_CPU_VAR(postern_current)
	popq	%rcx
	wrfsbase %rcx
	popq	%rcx
	movq	%rax, (%rcx)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	cmpl	$0, INVOCATION_ENDED(%rdx)
	jne	.Lended
	/* The first of the counters is of calls that return. */
	movq	INVOCATION_COUNTERS(%rdx), %rcx
	incq	(%rcx)
	movq	INVOCATION_WINDOW(%rdx), %rcx
	movl	$0, WINDOW_BUSY(%rcx)
	xorl	%eax, %eax
	decl	PREEMPT_COUNT
	jz	.Lschedule
	RET
.Lended:
	movq	%rdx, %rdi
	movq	8(%rsp), %rsi
	jmp	postern_ended
.Lschedule:
	jmp	postern_schedule
SYM_CODE_END(postern_enter)

/* Ends this processor's invocation, from wherever it is. Interrupts and traps return to here. */
SYM_CODE_START(postern_leave)
	UNWIND_HINT_UNDEFINED
	ENDBR
	movq	PER_CPU_VAR(postern_current), %rdx
	movq	INVOCATION_STACK(%rdx), %rsp
	jmp	.Lout
SYM_CODE_END(postern_leave)

/* A gate slot comes here with its number in eax. The function may be asked to end the invocation,
 * or the tick may have found that it is time to. */
SYM_CODE_START(postern_service_gate)
	UNWIND_HINT_UNDEFINED
	ENDBR
	movq	%r8, %r9
	movq	%rcx, %r8
	movq	%rdx, %rcx
	movq	%rsi, %rdx
	movq	%rdi, %rsi
	movq	PER_CPU_VAR(postern_current), %rdi
	movl	%eax, INVOCATION_SERVICE(%rdi)
	movq	INVOCATION_SERVICES(%rdi), %r11
	movq	(%r11,%rax,8), %r11
	CALL_NOSPEC r11
	movq	PER_CPU_VAR(postern_current), %rdi
	cmpl	$0, INVOCATION_ENDED(%rdi)
	jne	postern_leave
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	xorl	%esi, %esi
	xorl	%edi, %edi
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	xorl	%r10d, %r10d
	xorl	%r11d, %r11d
	RET
SYM_CODE_END(postern_service_gate)

/* Page faults: the exception table's entry puts the low bits of the instruction's place in the
 * arena into rax and goes on at the landing of the others. */
	.balign LANDING_SIZE
SYM_CODE_START(postern_landings)
	ANNOTATE_NOENDBR
	.set landing, 0
	.rept LANDINGS
	UNWIND_HINT_UNDEFINED
	movzwl	%ax, %eax
	orl	$(landing << LANDING_SHARE), %eax
	jmp	postern_faulted
	.balign LANDING_SIZE, 0xcc
	.set landing, landing + 1
	.endr
SYM_CODE_END(postern_landings)

SYM_CODE_START_LOCAL(postern_faulted)
	UNWIND_HINT_UNDEFINED
	movq	%cr2, %rcx
	movq	PER_CPU_VAR(postern_current), %rdx
	leaq	postern_arena(%rip), %rbx
	addq	%rbx, %rax
	movq	%rax, INVOCATION_AT(%rdx)
	movq	%rcx, INVOCATION_TOUCHED(%rdx)
	movl	$1, INVOCATION_ENDED(%rdx)	/* POSTERN_PAGE_FAULT */
	jmp	postern_leave
SYM_CODE_END(postern_faulted)

/* Calls a function of the kernel's that was found by name, with up to five arguments behind its
 * address. It has no endbr64 if nobody takes its address, so no indirect branch may go to it: a
 * return may. */
SYM_CODE_START(postern_call_found)
	UNWIND_HINT_UNDEFINED
	ENDBR
	pushq	%rdi
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %rcx
	movq	%r9, %r8
	RET
SYM_CODE_END(postern_call_found)
