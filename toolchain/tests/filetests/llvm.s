# llvm: addresses in the global offset table are constants.
	.globl	f
	.prefalign	4, .Lend, nop
	.type	f,@function
f:
	movq	g@GOTPCREL(%rip), %rax
	cmpq	g@GOTPCREL(%rip), %rdi
	cmpq	%rdi, g@GOTPCREL(%rip)
	testq	%rdi, g@GOTPCREL(%rip)
	cmoveq	g@GOTPCREL(%rip), %rax
	addq	x@GOTTPOFF(%rip), %rax
	movl	%fs:(%rax), %eax
	callq	*g@GOTPCREL(%rip)
	retq
.Lend:
=>
	.globl	f
	.p2align 4,0xcc
	.type	f,@function
f:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	$g, %rax
	cmpq	$g, %rdi
	cmpq	%rdi, %gs:.Lpostern_got_g(,%eiz)
	testq	$g, %rdi
	cmoveq	%gs:.Lpostern_got_g(,%eiz), %rax
	addq	$x@tpoff, %rax
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	movl	%gs:-255(%r11d,%eax), %eax
	leaq	-8(%r15), %r15
	call	g
	leaq	8(%r15), %r15
	ret
.Lend:
	.section	.rodata.postern_got,"a",@progbits
	.p2align	3
.Lpostern_got_g:
	.quad	g
---
# llvm: a large frame is one subtraction, and the labels of debug information stay.
	.type	f,@function
f:
	movq	%rsp, %r11
	subq	$98304, %r11
.Ltmp0:
.LBB0_1:
	subq	$4096, %rsp
	movq	$0, (%rsp)
	cmpq	%r11, %rsp
	jne	.LBB0_1
	subq	$1704, %rsp
	callq	g
	addq	$100008, %rsp
	retq
=>
	.type	f,@function
f:
.Ltmp0:
	leaq	-100016(%r15), %r15
	call	g
	leaq	100016(%r15), %r15
	ret
---
# llvm: any other use of the register is refused.
	.type	f,@function
f:
	movq	%rsp, %r11
	subq	$98304, %r11
	movq	%r11, (%rdi)
	retq
=>
llvm.s:4: error: %r11 is reserved for guarded branches and gates (and 2 more, in `f`)
---
# llvm: labels in tables get landing pads, and so does a second return.
	.type	f,@function
f:
	pushq	%rax
	callq	_setjmp
	jmpq	*.LJTI0_0(,%rax,8)
.LBB0_1:
	popq	%rax
	retq
.LBB0_2:
	popq	%rax
	jne	g
	retq
	.section	.rodata,"a",@progbits
.LJTI0_0:
	.quad	.LBB0_1
	.quad	.LBB0_2
=>
	.type	f,@function
f:
	movq	%rax, %gs:-16(%r15d)
	leaq	-16(%r15), %r15
	call	_setjmp
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rax, %r11
	lahf
	seto	%al
	movw	%ax, %gs:-152(%r15d)
	movq	%r11, %rax
	movl	%gs:.LJTI0_0(,%eax,8), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	jmp	*%r11
.Lpostern_t1:
	int3
.LBB0_1:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%gs:(%r15d), %rax
	leaq	16(%r15), %r15
	ret
.LBB0_2:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rax, %r11
	movzwl	%gs:-152(%r15d), %eax
	addb	$127, %al
	sahf
	movq	%r11, %rax
.Lpostern_f11:
	movq	%gs:(%r15d), %rax
	leaq	16(%r15), %r15
	je	.Lpostern_behind10
	jmp	g
.Lpostern_behind10:
	ret
	.section	.rodata,"a",@progbits
.LJTI0_0:
	.quad	.LBB0_1
	.quad	.LBB0_2
---
# llvm: what the rewriter keeps below the stack lies under the red zone.
	.type	f,@function
f:
	movq	%rdi, -8(%rsp)
	cmpq	%rsi, %rdi
	movq	%fs:0, %rax
	je	.L1
	movq	-8(%rsp), %rax
.L1:
	retq
=>
	.type	f,@function
f:
	movq	%rdi, %gs:-16(%r15d)
	cmpq	%rsi, %rdi
	movups	%xmm15, %gs:-152(%r15d)
	movd	%r15d, %xmm15
	por	%gs:__postern_info_stack_mask(,%eiz), %xmm15
	movd	%xmm15, %eax
	movups	%gs:-152(%r15d), %xmm15
	leaq	-255(%rax), %rax
	je	.L1
	movq	%gs:-16(%r15d), %rax
.L1:
	ret
---
# llvm: string instructions name their operands.
	.type	f,@function
f:
	rep;movsq	(%rsi), %es:(%rdi)
	movsd	(%rsi), %xmm0
	retq
=>
	.type	f,@function
f:
	testq	%rcx, %rcx
	je	.Lpostern_s1e
.Lpostern_s1:
	leaq	8(%rsi), %rsi
	leaq	8(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	movq	%gs:-8(%esi), %r11
	movq	%r11, %gs:-8(%edi)
	testq	%rcx, %rcx
	jne	.Lpostern_s1
.Lpostern_s1e:
	movsd	%gs:(%esi), %xmm0
	ret
