# The way into the unwinder and out of it. `struct frame` of unwind.c:
#   0 rbx, 8 rbp, 16 r12, 24 r13, 32 r14, 40 data stack pointer at the call, 48 what __postern_setjmp returned: depth of the
#   control stack in the high half, offset of the return address in the low half; 56 rax, 64 rdx.
# As in longjmp, the gate alone moves the control stack pointer; the way to a landing pad is an ordinary guarded branch.
	.text
	.globl	_Unwind_RaiseException
	.type	_Unwind_RaiseException, @function
_Unwind_RaiseException:
	endbr64
	movl	$__postern_raise, %eax
	jmp	unwind_from_here
	.size	_Unwind_RaiseException, .-_Unwind_RaiseException

	.globl	_Unwind_Resume
	.type	_Unwind_Resume, @function
_Unwind_Resume:
	endbr64
	movl	$__postern_resume, %eax
	jmp	unwind_from_here
	.size	_Unwind_Resume, .-_Unwind_Resume

	.globl	_Unwind_Resume_or_Rethrow
	.type	_Unwind_Resume_or_Rethrow, @function
_Unwind_Resume_or_Rethrow:
	endbr64
	movl	$__postern_raise, %eax
	jmp	unwind_from_here
	.size	_Unwind_Resume_or_Rethrow, .-_Unwind_Resume_or_Rethrow

	.globl	_Unwind_Backtrace
	.type	_Unwind_Backtrace, @function
_Unwind_Backtrace:
	endbr64
	movl	$__postern_backtrace, %eax
	jmp	unwind_from_here
	.size	_Unwind_Backtrace, .-_Unwind_Backtrace

	.type	unwind_from_here, @function
unwind_from_here:
	subq	$104, %rsp
	movq	%rbx, (%rsp)
	movq	%rbp, 8(%rsp)
	movq	%r12, 16(%rsp)
	movq	%r13, 24(%rsp)
	movq	%r14, 32(%rsp)
	leaq	112(%rsp), %rcx
	movq	%rcx, 40(%rsp)
	movq	%rdi, %rbx
	movq	%rsi, %rbp
	movq	%rax, %r12
	call	__postern_setjmp
	movq	%rax, 48(%rsp)
	movq	%rsp, %rdi
	movq	%rbx, %rsi
	movq	%rbp, %rdx
	call	*%r12
	movq	(%rsp), %rbx
	movq	8(%rsp), %rbp
	movq	16(%rsp), %r12
	addq	$104, %rsp
	ret
	.size	unwind_from_here, .-unwind_from_here

	.globl	__postern_land
	.hidden	__postern_land
	.type	__postern_land, @function
__postern_land:
	movq	%rdi, %rbx
	movl	52(%rdi), %edi
	pushq	%rax
	call	__postern_longjmp
	movq	8(%rbx), %rbp
	movq	16(%rbx), %r12
	movq	24(%rbx), %r13
	movq	32(%rbx), %r14
	movq	40(%rbx), %rsi
	movl	48(%rbx), %ecx
	movq	56(%rbx), %rax
	movq	64(%rbx), %rdx
	movq	(%rbx), %rbx
	leaq	-8(%rsi), %rsp
	jmp	*%rcx
	.size	__postern_land, .-__postern_land
