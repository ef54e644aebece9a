# setjmp and longjmp. The buffer, eight words of which seven are used:
#   0 rbx, 8 rbp, 16 r12, 24 r13, 32 r14, 40 data stack pointer at the call, 48 what __postern_setjmp returned:
#   depth of the control stack in the high half, offset of the landing pad behind the call of setjmp in the low half.
# The gate alone moves the control stack pointer; the way back is an ordinary guarded branch. At a function's first
# instruction 8(%rsp) is where the data stack pointer of the ABI is.
	.text
	.weak	setjmp, _setjmp, sigsetjmp, __sigsetjmp
	.hidden	setjmp, _setjmp, sigsetjmp, __sigsetjmp
	.type	setjmp, @function
	.type	_setjmp, @function
	.type	sigsetjmp, @function
	.type	__sigsetjmp, @function
setjmp:
_setjmp:
sigsetjmp:
__sigsetjmp:
	endbr64
	movq	%rbx, (%rdi)
	movq	%rbp, 8(%rdi)
	movq	%r12, 16(%rdi)
	movq	%r13, 24(%rdi)
	movq	%r14, 32(%rdi)
	leaq	8(%rsp), %rax
	movq	%rax, 40(%rdi)
	pushq	%rbx
	movq	%rdi, %rbx
	call	__postern_setjmp
	movq	%rax, 48(%rbx)
	popq	%rbx
	xorl	%eax, %eax
	ret
	.size	setjmp, .-setjmp

	.weak	longjmp, _longjmp, siglongjmp
	.hidden	longjmp, _longjmp, siglongjmp
	.type	longjmp, @function
	.type	_longjmp, @function
	.type	siglongjmp, @function
longjmp:
_longjmp:
siglongjmp:
	endbr64
	movq	%rdi, %rbx
	movl	%esi, %ebp
	movl	52(%rdi), %edi
	pushq	%rax
	call	__postern_longjmp
	movl	$1, %eax
	testl	%ebp, %ebp
	cmovne	%ebp, %eax
	movq	8(%rbx), %rbp
	movq	16(%rbx), %r12
	movq	24(%rbx), %r13
	movq	32(%rbx), %r14
	movq	40(%rbx), %rdx
	movl	48(%rbx), %ecx
	movq	(%rbx), %rbx
	leaq	-8(%rdx), %rsp
	jmp	*%rcx
	.size	longjmp, .-longjmp
