# kernel: memory through fs, also of loops and of what the frame needs
	.globl f
	.type f, @function
f:
	pushq	%rbp
	movq	%rsp, %rbp
	movl	8(%rdi,%rsi,4), %eax
	movq	x(%rip), %rcx
	lock incl x(%rip)
	rep stosb
	movb	%ah, (%r8)
	leave
	ret
	.data
	.ascii	"%gs:(%edi)"
=>
	.globl	f
	.type	f, @function
f:
	movq	%rbp, %fs:-16(%r15d)
	leaq	-16(%r15), %rbp
	movl	%fs:8(%edi,%esi,4), %eax
	movq	%fs:x(,%eiz), %rcx
	lock incl	%fs:x(,%eiz)
	testq	%rcx, %rcx
	je	.Lpostern_s1e
.Lpostern_s1:
	leaq	1(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	movb	%al, %fs:-1(%edi)
	testq	%rcx, %rcx
	jne	.Lpostern_s1
.Lpostern_s1e:
	xchgb	%ah, %al
	movb	%al, %fs:(%r8d)
	xchgb	%ah, %al
	movq	%fs:(%ebp), %rbp
	ret
	.data
	.ascii	"%gs:(%edi)"
---
# kernel: calls and jumps to functions, of the file or not
f:
	call	g
	jmp	h
g:
	ret
=>
f:
	leaq	-8(%r15), %r15
	call	g
	leaq	8(%r15), %r15
	jmp	h
g:
	ret
---
# kernel: through a pointer
	.globl f
	.type f, @function
f:
	call	*%rax
=>
kernel.s:5: error: `f` makes an indirect call, and a kernel image has direct ones only, so that the depth of its calls is known: call functions by name, for example from a switch over a number that is kept instead of the pointer
---
# kernel: through a table
	.globl f
	.type f, @function
f:
	jmp	*table(,%rdi,8)
=>
kernel.s:5: error: `f` makes an indirect jump, and a kernel image has direct ones only, so that the depth of its calls is known: call functions by name, for example from a switch over a number that is kept instead of the pointer
---
# kernel: a function that may be undefined
	.weak	g
	.globl f
	.type f, @function
f:
	call	g
	ret
=>
kernel.s:6: error: `f` branches to `g`, which may be undefined, and a kernel image has branches to what is there only: define it, or drop `weak`
---
# kernel: a frame that is too large, in two steps
	.globl f
	.type f, @function
f:
	pushq	%rbx
	subq	$1016, %rsp
	subq	$8, %rsp
	addq	$1024, %rsp
	popq	%rbx
	ret
=>
kernel.s:7: error: `f` takes 1032 bytes of stack, and a function of a kernel image at most 1024: make its arrays static, or let its caller give it the memory
---
# kernel: a frame that is as large as it may be
	.globl f
	.type f, @function
f:
	pushq	%rbx
	subq	$1016, %rsp
	movq	%rdi, (%rsp)
	addq	$1016, %rsp
	popq	%rbx
	ret
=>
	.globl	f
	.type	f, @function
f:
	movq	%rbx, %fs:-16(%r15d)
	movq	%rdi, %fs:-1032(%r15d)
	movq	%fs:-16(%r15d), %rbx
	ret
---
# kernel: a variable of a thread
	.globl f
	.type f, @function
f:
	movl	%fs:x@tpoff, %eax
	ret
=>
kernel.s:5: error: `f` uses a thread-local variable or the stack protector, and a kernel image has no threads of its own: make the variable global, or compile without -fstack-protector
