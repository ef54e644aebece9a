# Every memory operand gets the segment and 32-bit registers.
	movl	(%rdi), %eax
	movl	%eax, 8(%rdi,%rsi,4)
	addq	$1, table+8(,%rax,8)
	movb	$7, (%r12)
	movzbl	-1(%rbp), %ecx
	ret
=>
	movl	%gs:(%edi), %eax
	movl	%eax, %gs:8(%edi,%esi,4)
	addq	$1, %gs:table+8(,%eax,8)
	movb	$7, %gs:(%r12d)
	movzbl	%gs:-1(%ebp), %ecx
	ret
---
# RIP-relative and absolute operands become absolute with a 32-bit address.
	movl	counter(%rip), %eax
	incl	counter+4(%rip)
	movl	counter, %edx
	movq	0x1000, %rax
	ret
=>
	movl	%gs:counter(,%eiz), %eax
	incl	%gs:counter+4(,%eiz)
	movl	%gs:counter(,%eiz), %edx
	movq	%gs:0x1000(,%eiz), %rax
	ret
---
# An address that would be negative for a 32-bit relocation goes through r11.
	movl	table-4000000(,%rdi,4), %eax
	movl	table-100(,%rdi,4), %eax
	ret
=>
	leaq	table-4000000(,%rdi,4), %r11
	movl	%gs:(%r11d), %eax
	movl	%gs:table-100(,%edi,4), %eax
	ret
---
# lea computes without a segment; its 32-bit form loses the address size prefix.
	leaq	8(%rdi,%rsi,2), %rax
	leal	(%edi,%esi), %eax
	leaq	(%edi,%esi), %rax
	leaq	symbol(%rip), %rcx
	nopw	%cs:0(%rax,%rax,1)
	nopl	8(%rsp)
	ret
=>
	leaq	8(%rdi,%rsi,2), %rax
	leal	(%rdi,%rsi), %eax
	leal	(%rdi,%rsi), %eax
	leaq	symbol, %rcx
	nopw	0(%rax,%rax,1)
	nopl	(%r15)
	ret
---
# %ah cannot stand beside r8..r15: it trades places with %al.
	subq	$16, %rsp
	movb	%ah, 3(%rsp)
	addb	(%rsp), %dh
	movb	%ah, (%rsp,%rax)
	cmpb	%bh, (%rdi)
	addq	$16, %rsp
	ret
=>
	xchgb	%ah, %al
	movb	%al, %gs:-21(%r15d)
	xchgb	%ah, %al
	xchgb	%dh, %dl
	addb	%gs:-24(%r15d), %dl
	xchgb	%dh, %dl
	leaq	-24(%r15,%rax), %r11
	xchgb	%ah, %al
	movb	%al, %gs:(%r11d)
	xchgb	%ah, %al
	cmpb	%bh, %gs:(%edi)
	ret
---
# lock prefixes, in one statement or two.
	lock incl (%rdi)
	lock; xaddq %rax, (%rsi)
	lock
	cmpxchg16b (%rdi)
	ret
=>
	lock incl	%gs:(%edi)
	lock xaddq	%rax, %gs:(%esi)
	lock cmpxchg16b	%gs:(%edi)
	ret
---
# The prefixes of gcc's branches and returns and of its bit scans.
	rep ret
	nop
=>
	ret
	ud2
---
	rep bsfq %rdi, %rax
	rep bsrl (%rdi), %eax
	rep; nop
	bnd ret
=>
	tzcntq	%rdi, %rax
	lzcntl	%gs:(%edi), %eax
	pause
	ret
---
# The numbers of x87 and the vector instructions.
	fldt	8(%rsp)
	fstps	(%rdi)
	fxch	%st(3)
	vfmadd231pd	(%rdi,%rax), %ymm1, %ymm2
	movdqa	table(%rip), %xmm9
	pshufd	$0xe4, (%rdi), %xmm3
	vzeroupper
	ret
=>
	fldt	%gs:(%r15d)
	fstps	%gs:(%edi)
	fxch	%st(3)
	vfmadd231pd	%gs:(%edi,%eax), %ymm1, %ymm2
	movdqa	%gs:table(,%eiz), %xmm9
	pshufd	$0xe4, %gs:(%edi), %xmm3
	vzeroupper
	ret
---
# A mnemonic may have an underscore.
	vcmpeq_uspd	(%rdi), %ymm2, %ymm4
	vcmpneq_oqps	%xmm1, %xmm2, %xmm4
	ret
=>
	vcmpeq_uspd	%gs:(%edi), %ymm2, %ymm4
	vcmpneq_oqps	%xmm1, %xmm2, %xmm4
	ret
