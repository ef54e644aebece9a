# A variable, an element, a field, through two registers; flags are written before they are read.
	.globl	f
f:
	movl	%fs:x@tpoff, %eax
	addl	%eax, %fs:x@tpoff+4
	movzbl	%fs:bytes@tpoff(%rdi), %ecx
	movq	%fs:longs@tpoff(,%rdi,8), %rdx
	addl	%fs:pairs@tpoff+4(%rax,%rdi,8), %ecx
	pushq	%fs:x@tpoff
	popq	%rsi
	call	*%fs:function@tpoff
	ret
=>
	.globl	f
f:
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	x@tpoff-255(%r11), %r11
	movl	%gs:(%r11d), %eax
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	x@tpoff-251(%r11), %r11
	addl	%eax, %gs:(%r11d)
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	bytes@tpoff-255(%r11,%rdi), %r11
	movzbl	%gs:(%r11d), %ecx
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	longs@tpoff-255(%r11,%rdi,8), %r11
	movq	%gs:(%r11d), %rdx
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	(%r11,%rax), %r11
	leaq	pairs@tpoff-251(%r11,%rdi,8), %r11
	addl	%gs:(%r11d), %ecx
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	x@tpoff-255(%r11), %r11
	movq	%gs:(%r11d), %r11
	movq	%r11, %gs:-16(%r15d)
	movq	%gs:-16(%r15d), %rsi
	leaq	-8(%r15), %r15
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	function@tpoff-255(%r11), %r11
	movl	%gs:(%r11d), %r11d
	cmpq	$0x20841f0f, %gs:(%r11d)
	jne	.Lpostern_t1
	orq	%gs:0x10000(,%eiz), %r11
	call	*%r11
	leaq	8(%r15), %r15
	ret
.Lpostern_t1:
	int3
---
# The thread pointer, and a variable through it.
	movq	%fs:0, %rax
	leaq	x@tpoff(%rax), %rcx
	movl	x@tpoff(%rax), %edx
	movl	table@tpoff(%rax,%rdx,4), %edx
	movq	$x@tpoff, %rsi
	addq	%fs:0, %rsi
	movl	%fs:(%rsi), %esi
	movl	%fs:8(%rsi,%rdi,2), %esi
	ret
=>
	movl	%r15d, %eax
	orl	%gs:__postern_info_stack_mask(,%eiz), %eax
	leaq	-255(%rax), %rax
	leaq	x@tpoff(%rax), %rcx
	leaq	x@tpoff(%rax), %r11
	movl	%gs:(%r11d), %edx
	leaq	table@tpoff(%rax,%rdx,4), %r11
	movl	%gs:(%r11d), %edx
	movq	$x@tpoff, %rsi
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	-255(%r11), %r11
	addq	%r11, %rsi
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	movl	%gs:-255(%r11d,%esi), %esi
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	(%r11,%rsi), %r11
	movl	%gs:-247(%r11d,%edi,2), %esi
	ret
---
# The stack protector.
	.type	f, @function
f:
	subq	$24, %rsp
	movq	%fs:40, %rax
	movq	%rax, 8(%rsp)
	xorl	%eax, %eax
	call	g
	movq	8(%rsp), %rax
	subq	%fs:40, %rax
	jne	.L2
	addq	$24, %rsp
	ret
.L2:
	call	__stack_chk_fail
=>
	.type	f, @function
f:
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	movq	%gs:-215(%r11d), %rax
	movq	%rax, %gs:-24(%r15d)
	xorl	%eax, %eax
	leaq	-32(%r15), %r15
	call	g
	movq	%gs:8(%r15d), %rax
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	subq	%gs:-215(%r11d), %rax
	jne	.L2
	leaq	32(%r15), %r15
	ret
.L2:
	call	__stack_chk_fail
---
# A comparison whose result is wanted after the store, by a jump, a set, an addition with carry; beyond a jump and a label.
	.type	f, @function
f:
	pushq	%rbx
	cmpl	%esi, %edi
	movl	$1, %fs:x@tpoff
	setl	%al
	cmpl	%esi, %edi
	movl	%eax, %fs:x@tpoff
	jmp	.L1
.L2:
	addq	%rsi, %rdi
	adcq	$0, %fs:x@tpoff
	movq	%fs:x@tpoff, %rax
	popq	%rbx
	ret
.L1:
	movl	%ecx, %edx
	jle	.L2
	incl	%fs:x@tpoff
	call	g
	popq	%rbx
	ret
=>
	.type	f, @function
f:
	movq	%rbx, %gs:-16(%r15d)
	cmpl	%esi, %edi
	movups	%xmm15, %gs:-32(%r15d)
	movd	%r15d, %xmm15
	por	%gs:__postern_info_stack_mask(,%eiz), %xmm15
	movd	%xmm15, %r11d
	movups	%gs:-32(%r15d), %xmm15
	leaq	x@tpoff-255(%r11), %r11
	movl	$1, %gs:(%r11d)
	setl	%al
	cmpl	%esi, %edi
	movups	%xmm15, %gs:-32(%r15d)
	movd	%r15d, %xmm15
	por	%gs:__postern_info_stack_mask(,%eiz), %xmm15
	movd	%xmm15, %r11d
	movups	%gs:-32(%r15d), %xmm15
	leaq	x@tpoff-255(%r11), %r11
	movl	%eax, %gs:(%r11d)
	leaq	-16(%r15), %r15
	jmp	.L1
.L2:
	addq	%rsi, %rdi
	movups	%xmm15, %gs:-16(%r15d)
	movd	%r15d, %xmm15
	por	%gs:__postern_info_stack_mask(,%eiz), %xmm15
	movd	%xmm15, %r11d
	movups	%gs:-16(%r15d), %xmm15
	leaq	x@tpoff-255(%r11), %r11
	adcq	$0, %gs:(%r11d)
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	x@tpoff-255(%r11), %r11
	movq	%gs:(%r11d), %rax
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
.L1:
	movl	%ecx, %edx
	jle	.L2
	movl	%r15d, %r11d
	orl	%gs:__postern_info_stack_mask(,%eiz), %r11d
	leaq	x@tpoff-255(%r11), %r11
	incl	%gs:(%r11d)
	call	g
	movq	%gs:(%r15d), %rbx
	leaq	16(%r15), %r15
	ret
---
# Sections and common variables.
	.section	.tdata,"awT",@progbits
	.align 4
	.type	x, @object
	.size	x, 4
x:
	.long	7
	.section	.tbss,"awT",@nobits
	.zero	4
	.tls_common	y,4,4
	.text
	ret
=>
	.section	.tdata,"awT",@progbits
	.align	4
	.type	x, @object
	.size	x, 4
x:
	.long	7
	.section	.tbss,"awT",@nobits
	.zero	4
	.tls_common	y,4,4
	.text
	ret
---
# Other models, and what an operand cannot be.
	movq	x@gottpoff(%rip), %rax
	leaq	x@tlsgd(%rip), %rdi
	leaq	x@dtpoff(%rax), %rdi
	movq	x@tpoff, %rax
	leaq	%fs:x@tpoff, %rax
	movl	%fs:0, %eax
	imulq	%fs:0, %rax
	movq	%rax, %fs:0
	movl	%fs:x@tpoff(%rsp), %eax
	movl	%fs:x, %eax
	movq	%fs:0, %rsp
	popq	%fs:x@tpoff
	ret
=>
thread_locals.s:2: error: thread-local variables of another model than local-exec need a loader that places them; compile with -ftls-model=local-exec, and write `%fs:x@tpoff` in assembly (and 2 more)
thread_locals.s:5: error: the offset of a thread-local variable is no address: write `%fs:x@tpoff`
thread_locals.s:6: error: an address is computed without a segment: read the thread pointer from `%fs:0` and add `x@tpoff`
thread_locals.s:7: error: `movl %fs:0, %eax`: the thread pointer can be moved to, added to, subtracted from or compared with a 64-bit register only
thread_locals.s:8: error: `imulq %fs:0, %rax`: the thread pointer can be moved to, added to, subtracted from or compared with a 64-bit register only
thread_locals.s:9: error: `movq %rax, %fs:0`: the thread pointer can be moved to, added to, subtracted from or compared with a 64-bit register only
thread_locals.s:10: error: the stack pointer cannot be part of a thread-local address
thread_locals.s:11: error: %fs is the thread pointer here: a thread-local variable is written `%fs:x@tpoff`
thread_locals.s:12: error: the thread pointer cannot become the stack pointer
thread_locals.s:13: error: `popq %fs:x@tpoff`: this address cannot be popped to
