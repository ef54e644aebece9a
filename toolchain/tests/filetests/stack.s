# A leaf does not move r15 at all.
	.type	f, @function
f:
	endbr64
	pushq	%rbx
	subq	$32, %rsp
	movq	%rdi, 8(%rsp)
	movq	8(%rsp), %rbx
	leaq	16(%rsp), %rax
	movq	48(%rsp), %rcx
	addq	$32, %rsp
	popq	%rbx
	ret
=>
	.type	f, @function
f:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rbx, %gs:-16(%r15d)
	movq	%rdi, %gs:-40(%r15d)
	movq	%gs:-40(%r15d), %rbx
	leaq	-32(%r15), %rax
	movq	%gs:(%r15d), %rcx
	movq	%gs:-16(%r15d), %rbx
	ret
---
# Pushes and the frame are one adjustment before the call; the slot of the return address is in it.
	.type	f, @function
f:
	pushq	%rbp
	pushq	%rbx
	subq	$24, %rsp
	movq	%rdi, (%rsp)
	call	g
	movq	(%rsp), %rdi
	movq	56(%rsp), %rsi
	call	h
	addq	$24, %rsp
	popq	%rbx
	popq	%rbp
	ret
=>
	.type	f, @function
f:
	movq	%rbp, %gs:-16(%r15d)
	movq	%rbx, %gs:-24(%r15d)
	movq	%rdi, %gs:-48(%r15d)
	leaq	-48(%r15), %r15
	call	g
	movq	%gs:(%r15d), %rdi
	movq	%gs:56(%r15d), %rsi
	call	h
	movq	%gs:24(%r15d), %rbx
	movq	%gs:32(%r15d), %rbp
	leaq	48(%r15), %r15
	ret
---
# A path without a frame beside one that has it (shrink wrapping).
	.type	f, @function
f:
	testl	%edi, %edi
	je	.L1
	pushq	%rbx
	movl	%edi, %ebx
	call	g
.L2:
	decl	%ebx
	call	g
	testl	%ebx, %ebx
	jne	.L2
	popq	%rbx
	ret
.L1:
	xorl	%eax, %eax
	ret
=>
	.type	f, @function
f:
	testl	%edi, %edi
	je	.L1
	movq	%rbx, %gs:-16(%r15d)
	movl	%edi, %ebx
	leaq	-16(%r15), %r15
	call	g
.L2:
	decl	%ebx
	call	g
	testl	%ebx, %ebx
	jne	.L2
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
.L1:
	xorl	%eax, %eax
	ret
---
# A frame pointer: leave restores without knowing r15.
	.type	f, @function
f:
	pushq	%rbp
	movq	%rsp, %rbp
	subq	$16, %rsp
	movl	%edi, -4(%rbp)
	call	g
	leave
	ret
=>
	.type	f, @function
f:
	movq	%rbp, %gs:-16(%r15d)
	leaq	-16(%r15), %rbp
	movl	%edi, %gs:-4(%ebp)
	leaq	-32(%r15), %r15
	call	g
	movq	%gs:(%ebp), %rbp
	leaq	32(%r15), %r15
	ret
---
# alloca: from there r15 follows the compiler's stack pointer; leave goes straight back to the entry.
	.type	f, @function
f:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	subq	$8, %rsp
	subq	%rdi, %rsp
	movq	%rsp, %rdi
	call	g
	movq	%rsp, %rbx
	subq	%rax, %rsp
	movq	%rbx, %rsp
	leaq	-8(%rbp), %rsp
	popq	%rbx
	popq	%rbp
	ret
=>
	.type	f, @function
f:
	movq	%rbp, %gs:-16(%r15d)
	leaq	-16(%r15), %rbp
	movq	%rbx, %gs:-24(%r15d)
	leaq	-32(%r15), %r15
	subq	%rdi, %r15
	movq	%r15, %rdi
	call	g
	movq	%r15, %rbx
	subq	%rax, %r15
	movq	%rbx, %r15
	leaq	16(%rbp), %r15
	movq	%gs:-24(%r15d), %rbx
	movq	%gs:-16(%r15d), %rbp
	ret
---
# A realigned frame with arguments on the stack.
	.type	f, @function
f:
	leaq	8(%rsp), %r10
	andq	$-32, %rsp
	pushq	-8(%r10)
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r10
	subq	$40, %rsp
	call	g
	movq	-8(%rbp), %r10
	leave
	leaq	-8(%r10), %rsp
	ret
=>
	.type	f, @function
f:
	leaq	(%r15), %r10
	leaq	-8(%r15), %r15
	andq	$-32, %r15
	movq	%gs:-8(%r10d), %r11
	movq	%r11, %gs:-8(%r15d)
	movq	%rbp, %gs:-16(%r15d)
	leaq	-16(%r15), %rbp
	movq	%r10, %gs:-24(%r15d)
	leaq	-64(%r15), %r15
	call	g
	movq	%gs:-8(%ebp), %r10
	leaq	8(%rbp), %r15
	movq	%gs:(%ebp), %rbp
	movq	%r10, %r15
	ret
---
# A tail call: the frame is gone.
	.type	f, @function
f:
	subq	$8, %rsp
	call	g
	addq	$8, %rsp
	jmp	h
=>
	.type	f, @function
f:
	leaq	-16(%r15), %r15
	call	g
	leaq	16(%r15), %r15
	jmp	h
---
# A call that does not return, and the next function behind it.
	.type	f, @function
f:
	subq	$8, %rsp
	call	abort
	.p2align 4
	.type	g, @function
g:
	ret
=>
	.type	f, @function
f:
	leaq	-16(%r15), %r15
	call	abort
	.p2align 3
	.p2align 4
	.type	g, @function
g:
	ret
---
# After a call that does not return, a block at another depth.
	.type	f, @function
f:
	testl	%edi, %edi
	je	.L1
	pushq	%rbx
	call	abort
.L1:
	movl	$1, %eax
	ret
=>
	.type	f, @function
f:
	testl	%edi, %edi
	je	.L1
	movq	%rbx, %gs:-16(%r15d)
	leaq	-16(%r15), %r15
	call	abort
.L1:
	movl	$1, %eax
	ret
---
# Pushes from memory and of numbers; pops to memory.
	.type	f, @function
f:
	pushq	16(%rsp)
	pushq	$symbol
	pushq	$-1
	popq	%rax
	popq	8(%rdi)
	popq	%rcx
	ret
=>
	.type	f, @function
f:
	movq	%gs:8(%r15d), %r11
	movq	%r11, %gs:-16(%r15d)
	movq	$symbol, %gs:-24(%r15d)
	movq	$-1, %gs:-32(%r15d)
	movq	%gs:-32(%r15d), %rax
	movq	%gs:-24(%r15d), %r11
	movq	%r11, %gs:8(%edi)
	movq	%gs:-16(%r15d), %rcx
	ret
---
# The stack pointer as a value.
	.type	f, @function
f:
	pushq	%rbx
	movq	%rsp, %rax
	cmpq	%rsp, %rdi
	xchgq	%rsp, %rcx
	ret
=>
	.type	f, @function
f:
	movq	%rbx, %gs:-16(%r15d)
	leaq	-16(%r15), %rax
	leaq	-16(%r15), %r15
	cmpq	%r15, %rdi
	xchgq	%r15, %rcx
	leaq	8(%r15), %r15
	ret
---
# fixed
# The other scheme, for comparison.
	.type	f, @function
f:
	pushq	%rbx
	subq	$16, %rsp
	call	g
	addq	$16, %rsp
	popq	%rbx
	ret
=>
	.type	f, @function
f:
	movq	%rbx, %gs:-16(%r15d)
	leaq	-16(%r15), %r15
	leaq	-16(%r15), %r15
	call	g
	leaq	16(%r15), %r15
	movq	%gs:(%r15d), %rbx
	leaq	8(%r15), %r15
	leaq	8(%r15), %r15
	ret
---
# fixed
# A jump through a table before anything is saved, beside a direct one: both arrive with the same stack.
	.type	f, @function
f:
	addl	$1, %edi
	cmpl	$1, %edi
	ja	.L2
	jmp	*.L9(,%rdi,8)
	.section	.rodata
.L9:
	.quad	.L2
	.quad	.L3
	.text
.L2:
	endbr64
	ret
.L3:
	endbr64
	call	g
	ret
=>
	.type	f, @function
f:
	addl	$1, %edi
	leaq	-8(%r15), %r15
	leaq	8(%r15), %r15
	cmpl	$1, %edi
	ja	.L2
	leaq	-8(%r15), %r15
	leaq	8(%r15), %r15
	movl	%gs:.L9(,%edi,8), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	jmp	*%r11
.Lpostern_t1:
	int3
	.section	.rodata
.L9:
	.quad	.L2
	.quad	.L3
	.text
.L2:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	ret
.L3:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	leaq	-8(%r15), %r15
	call	g
	leaq	8(%r15), %r15
	ret
---
# A function in two sections.
	.text
	.type	f, @function
f:
	pushq	%rbx
	call	g
	testl	%eax, %eax
	jne	.L5
	popq	%rbx
	ret
	.section	.text.unlikely,"ax",@progbits
	.type	f.cold, @function
f.cold:
.L5:
	movl	%eax, 8(%rsp)
	call	h
	popq	%rbx
	ret
	.text
	.size	f, .-f
=>
	.text
	.type	f, @function
f:
	movq	%rbx, %gs:-16(%r15d)
	leaq	-16(%r15), %r15
	call	g
	testl	%eax, %eax
	jne	.L5
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
	.section	.text.unlikely,"ax",@progbits
	.type	f.cold, @function
f.cold:
.L5:
	movl	%eax, %gs:8(%r15d)
	call	h
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
	.text
	.size	f, .-f
