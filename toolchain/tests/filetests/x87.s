# What is on top of the stack, as compilers ask it.
	.globl	f
	.type	f, @function
f:
	subq	$24, %rsp
	fldt	32(%rsp)
	fxam
	.loc 1 2 3
	fnstsw	%ax
	fstp	%st(0)
	testb	$2, %ah
	setne	%al
	addq	$24, %rsp
	ret
=>
	.globl	f
	.type	f, @function
f:
	fldt	%gs:(%r15d)
	fstpt	%gs:-48(%r15d)
	fldt	%gs:-48(%r15d)
	fnstsw	%ax
	andw	$0xb8ff, %ax
	movzwl	%gs:-40(%r15d), %r11d
	testw	%r11w, %r11w
	jns	.Lpostern_x1p
	orw	$0x200, %ax
.Lpostern_x1p:
	andl	$0x7fff, %r11d
	je	.Lpostern_x1z
	cmpq	$0, %gs:-48(%r15d)
	jns	.Lpostern_x1e
	cmpl	$0x7fff, %r11d
	je	.Lpostern_x1s
	orw	$0x400, %ax
	jmp	.Lpostern_x1e
.Lpostern_x1s:
	orw	$0x100, %ax
	movq	%gs:-48(%r15d), %r11
	addq	%r11, %r11
	jne	.Lpostern_x1e
	orw	$0x400, %ax
	jmp	.Lpostern_x1e
.Lpostern_x1z:
	orw	$0x4000, %ax
	cmpq	$0, %gs:-48(%r15d)
	je	.Lpostern_x1e
	orw	$0x400, %ax
.Lpostern_x1e:
	.loc 1 2 3
	fstp	%st(0)
	testb	$2, %ah
	setne	%al
	ret
---
# The flags from before are needed behind it.
	fxam
	fnstsw	%ax
	jne	f
	ret
=>
	lahf
	seto	%al
	movw	%ax, %gs:-32(%r15d)
	fstpt	%gs:-24(%r15d)
	fldt	%gs:-24(%r15d)
	fnstsw	%ax
	andw	$0xb8ff, %ax
	movzwl	%gs:-16(%r15d), %r11d
	testw	%r11w, %r11w
	jns	.Lpostern_x1p
	orw	$0x200, %ax
.Lpostern_x1p:
	andl	$0x7fff, %r11d
	je	.Lpostern_x1z
	cmpq	$0, %gs:-24(%r15d)
	jns	.Lpostern_x1e
	cmpl	$0x7fff, %r11d
	je	.Lpostern_x1s
	orw	$0x400, %ax
	jmp	.Lpostern_x1e
.Lpostern_x1s:
	orw	$0x100, %ax
	movq	%gs:-24(%r15d), %r11
	addq	%r11, %r11
	jne	.Lpostern_x1e
	orw	$0x400, %ax
	jmp	.Lpostern_x1e
.Lpostern_x1z:
	orw	$0x4000, %ax
	cmpq	$0, %gs:-24(%r15d)
	je	.Lpostern_x1e
	orw	$0x400, %ax
.Lpostern_x1e:
	movw	%ax, %gs:-40(%r15d)
	movw	%gs:-32(%r15d), %ax
	addb	$127, %al
	sahf
	movw	%gs:-40(%r15d), %ax
	jne	f
	ret
---
# Without its other half.
	fxam
	fstp	%st(0)
	fnstsw	%ax
	ret
=>
x87.s:2: error: `fxam` can be confined only with `fnstsw %ax` right behind it
