# Direct calls and jumps; relocation suffixes mean nothing here.
	call	g@PLT
	jmp	h@PLT
=>
	leaq	-8(%r15), %r15
	call	g
	leaq	8(%r15), %r15
	jmp	h
---
# A call through a register and one through memory.
	.type	f, @function
f:
	subq	$8, %rsp
	call	*%rax
	call	*16(%rdi)
	addq	$8, %rsp
	ret
=>
	.type	f, @function
f:
	leaq	-16(%r15), %r15
	movl	%eax, %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	call	*%r11
	movl	%gs:16(%edi), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t2
	orq	%gs:0x10000(,%eiz), %r11
	call	*%r11
	leaq	16(%r15), %r15
	ret
.Lpostern_t1:
	int3
.Lpostern_t2:
	int3
---
# A tail call through a register.
	.type	f, @function
f:
	movq	%rdi, %rax
	notrack jmp	*%rax
=>
	.type	f, @function
f:
	movq	%rdi, %rax
	movl	%eax, %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	jmp	*%r11
.Lpostern_t1:
	int3
---
# A switch in a function with a frame: the labels of the table are at the jump's depth.
	.type	f, @function
f:
	endbr64
	pushq	%rbx
	call	g
	jmp	*.L4(,%rax,8)
	.section	.rodata
	.align 8
.L4:
	.quad	.L5
	.quad	.L6
	.text
	.p2align 4,,10
	.p2align 3
.L5:
	endbr64
	call	h
.L6:
	endbr64
	popq	%rbx
	ret
=>
	.type	f, @function
f:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rbx, %gs:-16(%r15d)
	leaq	-16(%r15), %r15
	call	g
	movl	%gs:.L4(,%eax,8), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	jmp	*%r11
.Lpostern_t1:
	int3
	.section	.rodata
	.align	8
.L4:
	.quad	.L5
	.quad	.L6
	.text
	.p2align 4,0xcc,10
	.p2align 3,0xcc
.L5:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	call	h
.L6:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
---
# A function that may be undefined is called through its address.
	.weak	maybe
	.type	f, @function
f:
	cmpq	$maybe, %rdi
	jmp	maybe
=>
	.weak	maybe
	.type	f, @function
f:
	cmpq	$maybe, %rdi
	movl	%gs:.Lpostern_w1(,%eiz), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t2
	orq	%gs:0x10000(,%eiz), %r11
	jmp	*%r11
.Lpostern_t2:
	int3
	.section	.rodata.postern_weak,"a",@progbits
	.p2align 3
.Lpostern_w1:
	.quad	maybe
---
# Where nothing leads is a trap.
	.type	f, @function
f:
	ret
	movl	$1, %eax
	ret
	.size	f, .-f
=>
	.type	f, @function
f:
	ret
	ud2
	.size	f, .-f
---
# Several guards, one trap each, with their lines.
	.file	1 "a.c"
	.type	f, @function
f:
	.loc 1 3 5
	subq	$8, %rsp
	call	*%rax
	.loc 1 4 5
	call	*%rbx
	addq	$8, %rsp
	ret
=>
	.file	1 "a.c"
	.type	f, @function
f:
	.loc 1 3 5
	leaq	-16(%r15), %r15
	movl	%eax, %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	call	*%r11
	.loc 1 4 5
	movl	%ebx, %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t2
	orq	%gs:0x10000(,%eiz), %r11
	call	*%r11
	leaq	16(%r15), %r15
	ret
	.loc 1 3 5
.Lpostern_t1:
	int3
	.loc 1 4 5
.Lpostern_t2:
	int3
---
# The adjustment goes before a comparison, so that comparison and jump stay together; not if the comparison looks at the stack.
	.type	f, @function
f:
	pushq	%rbx
	cmpl	%esi, %edi
	.loc 1 1
	jle	.L1
	call	g
.L1:
	popq	%rbx
	ret
	.type	h, @function
h:
	pushq	%rbx
	cmpl	16(%rsp), %edi
	jle	.L2
	call	g
.L2:
	popq	%rbx
	ret
=>
	.type	f, @function
f:
	movq	%rbx, %gs:-16(%r15d)
	leaq	-16(%r15), %r15
	cmpl	%esi, %edi
	.loc 1 1
	jle	.L1
	call	g
.L1:
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
	.type	h, @function
h:
	movq	%rbx, %gs:-16(%r15d)
	cmpl	%gs:(%r15d), %edi
	leaq	-16(%r15), %r15
	jle	.L2
	call	g
.L2:
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
---
# A comparison before a switch of which a case uses the flags: the jump keeps them, and the case fetches them.
	.globl	f
	.type	f, @function
f:
	endbr64
	pushq	%rbx
	cmpl	$2, %eax
	ja	.L4
	jmp	*.L2(,%rax,8)
	.section	.rodata
.L2:
	.quad	.L3
	.quad	.L4
	.quad	.L5
	.text
.L3:
	endbr64
	testl	%ecx, %ecx
	je	.L4
	xorl	%edx, %edx
.L4:
	.loc 1 2 3
	endbr64
	pxor	%xmm0, %xmm0
	jne	.L5
	popq	%rbx
	ret
.L5:
	endbr64
	shrl	$3, %eax
	jne	.L4
	popq	%rbx
	ret
=>
	.globl	f
	.type	f, @function
f:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rbx, %gs:-16(%r15d)
	cmpl	$2, %eax
	ja	.Lpostern_f21
	movq	%rax, %r11
	lahf
	seto	%al
	movw	%ax, %gs:-40(%r15d)
	movq	%r11, %rax
	movl	%gs:.L2(,%eax,8), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	jmp	*%r11
.Lpostern_t1:
	int3
	.section	.rodata
.L2:
	.quad	.L3
	.quad	.L4
	.quad	.L5
	.text
.L3:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	testl	%ecx, %ecx
	je	.Lpostern_f21
	xorl	%edx, %edx
	jmp	.Lpostern_f21
.L4:
	.loc 1 2 3
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rax, %r11
	movzwl	%gs:-40(%r15d), %eax
	addb	$127, %al
	sahf
	movq	%r11, %rax
.Lpostern_f21:
	pxor	%xmm0, %xmm0
	jne	.L5
	movq	%gs:-16(%r15d), %rbx
	ret
.L5:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	shrl	$3, %eax
	jne	.Lpostern_f21
	movq	%gs:-16(%r15d), %rbx
	ret
---
# A routine inside of a function, which only calls reach.
	.type	f, @function
f:
	jmp	.L2
.L1:
	pushq	%rdi
	addq	$1, %rdi
	popq	%rsi
	ret
.L2:
	call	.L1
	call	.L1
	movq	%rdi, %rax
	ret
=>
	.type	f, @function
f:
	jmp	.L2
.L1:
	movq	%rdi, %gs:-16(%r15d)
	addq	$1, %rdi
	movq	%gs:-16(%r15d), %rsi
	ret
.L2:
	leaq	-8(%r15), %r15
	call	.L1
	call	.L1
	movq	%rdi, %rax
	leaq	8(%r15), %r15
	ret
