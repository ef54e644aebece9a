# What the processor can do is a routine's to say; the flags are kept where they are wanted.
	.globl	f
f:
	pushq	%rbx
	cpuid
	xorl	%ecx, %ecx
	.byte	0x0f, 0x01, 0xd0
	cmpl	$5, %edi
	.byte 15,162
	sete	%al
	popq	%rbx
	ret
	.data
	.byte	0x0f, 0xa2
=>
	.globl	f
f:
	movq	%rbx, %gs:-16(%r15d)
	call	__postern_cpuid
	xorl	%ecx, %ecx
	call	__postern_xgetbv
	cmpl	$5, %edi
	movq	%rax, %r11
	lahf
	seto	%al
	movw	%ax, %gs:-40(%r15d)
	movq	%r11, %rax
	call	__postern_cpuid
	movq	%rax, %r11
	movzwl	%gs:-40(%r15d), %eax
	addb	$127, %al
	sahf
	movq	%r11, %rax
	sete	%al
	movq	%gs:-16(%r15d), %rbx
	ret
	.data
	.byte	0x0f, 0xa2
---
# Instructions for ciphers and hashes.
	aesenc	(%rdi), %xmm0
	vaesdeclast	(%rdi), %ymm1, %ymm2
	pclmullqlqdq	%xmm1, %xmm2
	vpclmulqdq	$17, (%rsi), %ymm3, %ymm4
	sha256rnds2	%xmm0, (%rdi), %xmm2
	adcxq	(%rdi), %rax
	adoxl	%ecx, %edx
	gf2p8affineqb	$3, (%rdi), %xmm9
	vgf2p8mulb	(%rdi,%rax,8), %ymm1, %ymm2
	ret
=>
	aesenc	%gs:(%edi), %xmm0
	vaesdeclast	%gs:(%edi), %ymm1, %ymm2
	pclmullqlqdq	%xmm1, %xmm2
	vpclmulqdq	$17, %gs:(%esi), %ymm3, %ymm4
	sha256rnds2	%xmm0, %gs:(%edi), %xmm2
	adcxq	%gs:(%edi), %rax
	adoxl	%ecx, %edx
	gf2p8affineqb	$3, %gs:(%edi), %xmm9
	vgf2p8mulb	%gs:(%edi,%eax,8), %ymm1, %ymm2
	ret
