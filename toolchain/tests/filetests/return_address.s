# The return address, at entry, in a frame and through the frame pointer, is 0; a local next to it is itself.
	.type	f, @function
f:
	movq	(%rsp), %rax
	subq	$24, %rsp
	movq	24(%rsp), %rdi
	movq	16(%rsp), %rsi
	call	g
	addq	$24, %rsp
	ret
	.type	h, @function
h:
	pushq	%rbp
	movq	%rsp, %rbp
	movq	8(%rbp), %rdi
	movq	16(%rbp), %rsi
	movq	(%rbp), %rdx
	popq	%rbp
	ret
=>
	.type	f, @function
f:
	movl	$0, %eax
	movl	$0, %edi
	movq	%gs:-16(%r15d), %rsi
	leaq	-32(%r15), %r15
	call	g
	leaq	32(%r15), %r15
	ret
	.type	h, @function
h:
	movq	%rbp, %gs:-16(%r15d)
	leaq	-16(%r15), %rbp
	movl	$0, %edi
	movq	%gs:16(%ebp), %rsi
	movq	%gs:(%ebp), %rdx
	movq	%gs:-16(%r15d), %rbp
	ret
---
# Jumps that set the stack pointer behind the gate's back.
	movq	buf(%rip), %rbp
	movq	buf+8(%rip), %rax
	movq	buf+16(%rip), %rsp
	jmp	*%rax
=>
return_address.s:5: error: __builtin_longjmp and jumps out of nested functions cannot be confined: they set the stack pointer without the gate's knowledge; use setjmp and longjmp of <setjmp.h>
---
# Games with the stack pointer and the flags.
	pushfq
	pushw	%ax
	enter	$16, $0
	movl	%esp, %ds
	pushq	%ds
	lcall	*(%rdi)
	ret	$16
=>
return_address.s:2: error: `pushfq` cannot be confined: the flags register as a whole holds the direction, trap and alignment flags
return_address.s:3: error: `pushw` cannot be confined: it moves 16 bits on a stack of 64-bit slots
return_address.s:4: error: `enter` cannot be confined: it reaches memory through a register that it does not name, outside the window
return_address.s:5: error: segment registers cannot be confined: they are the confinement (and 1 more)
return_address.s:7: error: `lcall` cannot be confined: far control transfers change segments
return_address.s:8: error: `ret` with a number cannot be confined: it moves the control stack
