# Macros, repetitions and conditions are expanded; what they say is confined like all else.
	.macro	load to, from=%rdi, more:vararg
	movq	(\from), \to
	.ifnb	\more
	load	\more
	.endif
	.endm
	.text
	.globl	f
f:
	load	%rax
	load	%rcx, %rsi, %rdx, %rax
	.set	times, 2
	.rept	times
	incq	%rax
	.endr
	.if	times > 2
	rdtsc
	.else
	.irp	r, cx, dx
	addq	%r\r, %rax
	.endr
	.endif
	ret
=>
	.text
	.globl	f
f:
	movq	%gs:(%edi), %rax
	movq	%gs:(%esi), %rcx
	movq	%gs:(%eax), %rdx
	.set	times, 2
	incq	%rax
	incq	%rax
	addq	%rcx, %rax
	addq	%rdx, %rax
	ret
