	cld
	movsb
	stosl
	lodsq
	cmpsw
	scasb
	ret
=>
	leaq	1(%rsi), %rsi
	leaq	1(%rdi), %rdi
	movb	%gs:-1(%esi), %r11b
	movb	%r11b, %gs:-1(%edi)
	leaq	4(%rdi), %rdi
	movl	%eax, %gs:-4(%edi)
	leaq	8(%rsi), %rsi
	movq	%gs:-8(%esi), %rax
	leaq	2(%rsi), %rsi
	leaq	2(%rdi), %rdi
	movw	%gs:-2(%esi), %r11w
	cmpw	%gs:-2(%edi), %r11w
	leaq	1(%rdi), %rdi
	cmpb	%gs:-1(%edi), %al
	ret
---
	rep movsq
	repne scasb
	repe cmpsb
	rep stosb
	ret
=>
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
	testq	%rcx, %rcx
	je	.Lpostern_s2e
.Lpostern_s2:
	leaq	1(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	cmpb	%gs:-1(%edi), %al
	je	.Lpostern_s2e
	testq	%rcx, %rcx
	jne	.Lpostern_s2
	cmpb	%gs:-1(%edi), %al
.Lpostern_s2e:
	testq	%rcx, %rcx
	je	.Lpostern_s3e
.Lpostern_s3:
	leaq	1(%rsi), %rsi
	leaq	1(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	movb	%gs:-1(%esi), %r11b
	cmpb	%gs:-1(%edi), %r11b
	jne	.Lpostern_s3e
	testq	%rcx, %rcx
	jne	.Lpostern_s3
	cmpb	%gs:-1(%edi), %r11b
.Lpostern_s3e:
	testq	%rcx, %rcx
	je	.Lpostern_s4e
.Lpostern_s4:
	leaq	1(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	movb	%al, %gs:-1(%edi)
	testq	%rcx, %rcx
	jne	.Lpostern_s4
.Lpostern_s4e:
	ret
---
# The loop of a repeated store loses the flags, so they are kept where they are wanted behind it.
	.globl	f
f:
	cmpl	%esi, %edx
	rep stosb
	setb	%al
	rep stosb
	ret
=>
	.globl	f
f:
	cmpl	%esi, %edx
	movq	%rax, %r11
	lahf
	seto	%al
	movw	%ax, %gs:-32(%r15d)
	movq	%r11, %rax
	testq	%rcx, %rcx
	je	.Lpostern_s1e
.Lpostern_s1:
	leaq	1(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	movb	%al, %gs:-1(%edi)
	testq	%rcx, %rcx
	jne	.Lpostern_s1
.Lpostern_s1e:
	movq	%rax, %r11
	movzwl	%gs:-32(%r15d), %eax
	addb	$127, %al
	sahf
	movq	%r11, %rax
	setb	%al
	testq	%rcx, %rcx
	je	.Lpostern_s2e
.Lpostern_s2:
	leaq	1(%rdi), %rdi
	leaq	-1(%rcx), %rcx
	movb	%al, %gs:-1(%edi)
	testq	%rcx, %rcx
	jne	.Lpostern_s2
.Lpostern_s2e:
	ret
