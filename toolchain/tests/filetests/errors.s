	syscall
	int	$0x80
	sidt	(%rdi)
	rdtsc
	hlt
	ret
=>
errors.s:1: error: `syscall` cannot be confined: an extension makes no system calls; import a function of the host instead
errors.s:2: error: `int` cannot be confined: an extension makes no system calls; import a function of the host instead
errors.s:3: error: `sidt` cannot be confined: where the kernel's tables lie is not an extension's to ask
errors.s:4: error: `rdtsc` cannot be confined: time is the host's to tell; import a clock service
errors.s:5: error: `hlt` cannot be confined: it is privileged
---
	movq	%fs:0, %rax
	movq	x@tpoff, %rax
	movq	%gs:8, %rax
	movl	%ds:(%rax), %eax
	mov	%ds, %eax
	push	%fs
	ret
=>
errors.s:2: error: the offset of a thread-local variable is no address: write `%fs:x@tpoff`
errors.s:3: error: %gs cannot be named: it is the window's own segment
errors.s:4: error: the segment override %ds cannot be confined
errors.s:5: error: segment registers cannot be confined: they are the confinement (and 1 more)
---
	movq	%r15, %rax
	movl	$1, %r11d
	movl	(%r15), %eax
	jmp	*%r11
=>
errors.s:1: error: %r15 is reserved: it is the data stack pointer (and 1 more)
errors.s:2: error: %r11 is reserved for guarded branches and gates (and 1 more)
---
	frobnicate %eax
	vaddps	%zmm0, %zmm1, %zmm2
	movd	%mm0, %eax
	vgatherdps %xmm0, (%rax,%xmm1,4), %xmm2
	movabsq	0x1122334455667788, %rax
	ret	$8
	ldmxcsr	(%rdi)
	xlat
	fnstenv	(%rdi)
	std
	pushfq
	loop	f
	endbr32
	ret
=>
errors.s:1: error: unknown instruction `frobnicate`: only instructions of the allow list can be confined
errors.s:2: error: AVX-512 registers are not in the allow list; compile with -march=x86-64-v3
errors.s:3: error: MMX registers would stay behind in the host's floating-point state; use SSE2
errors.s:4: error: `vgatherdps` cannot be confined: gathers are not in the allow list; compile with -mtune-ctrl=^use_gather
errors.s:5: error: `movabs` with a memory operand cannot be confined: its address has 64 bits
errors.s:6: error: `ret` with a number cannot be confined: it moves the control stack
errors.s:7: error: `ldmxcsr` cannot be confined: the control bits of MXCSR belong to the host
errors.s:8: error: `xlat` cannot be confined: it reaches memory through a register that it does not name, outside the window
errors.s:9: error: `fnstenv` cannot be confined: it reads or replaces floating-point state that may be the host's
errors.s:10: error: `std` cannot be confined: the flags register as a whole holds the direction, trap and alignment flags
errors.s:11: error: `pushfq` cannot be confined: the flags register as a whole holds the direction, trap and alignment flags
errors.s:12: error: `loop` cannot be confined: branches on rcx are not in the allow list; test the register and use jne or je
errors.s:13: error: `endbr32` cannot be confined: the shadow stack belongs to the host
---
	movl	x@GOTPCREL(%rip), %eax
	movl	8(%rip), %eax
	movl	(%eip), %eax
	movl	(%esp), %eax
	movl	(%ax), %eax
	ret
=>
errors.s:1: error: the relocation @GOTPCREL belongs to position-independent code; extensions are linked at fixed offsets
errors.s:2: error: an operand relative to the instruction pointer without a symbol cannot be confined (and 1 more)
errors.s:4: error: a part of the stack pointer cannot be an address
errors.s:5: error: %ax cannot be part of an address
---
	.macro	foo
=>
errors.s:1: error: `.macro` without `.endm`
---
	.macro	bar	a, b=%rax
	movq	(\a), \b
	syscall
	.endm
	nop
	bar	%rdi
=>
errors.s:6: error: `syscall` cannot be confined: an extension makes no system calls; import a function of the host instead
---
a:	.if	. - a
	.endif
=>
errors.s:1: error: `. - a` is not a number when this line is read
---
	.intel_syntax noprefix
	.section .tdata,"awT",@progbits
	.section .foo,"awx",@progbits
	.type	f, @gnu_indirect_function
	.foo
	.org 8
	.p2align 14
=>
errors.s:1: error: `.intel_syntax`: only AT&T syntax is understood; compile without -masm=intel
errors.s:3: error: the section `.foo` is writable and executable: text is never writable
errors.s:4: error: functions chosen at load time (ifunc) are not supported in extensions
errors.s:5: error: the directive `.foo` is not understood
errors.s:6: error: `.org`: it moves the location counter past what can be checked
errors.s:7: error: `.p2align 14`: an alignment of more than a page cannot be kept
---
	.data
	movl	%eax, %ebx
=>
errors.s:2: error: an instruction in the section `.data`, which is not executable
---
	movl	8(%rax, %ecx
=>
errors.s:1: error: a `)` is missing in `8(%rax, %ecx`
---
# A lock where none can be.
	lock jmp f
	rep addl %eax, %ebx
	addr32 movl (%eax), %eax
	ret
=>
errors.s:2: error: the prefix `lock` of `lock jmp f` cannot be confined
errors.s:3: error: the prefix of `rep addl %eax, %ebx` does not fit the instruction
errors.s:4: error: the prefix `addr32` of `addr32 movl (%eax), %eax` cannot be confined
---
# Lines of inline assembly.
	.file	1 "dir" "a.c"
	.loc 1 10 2
	nop
#APP
# 12 "a.c" 1
	nop
	syscall
# 0 "" 2
#NO_APP
	rdtsc
=>
a.c:13: error: `syscall` cannot be confined: an extension makes no system calls; import a function of the host instead
a.c:10: error: `rdtsc` cannot be confined: time is the host's to tell; import a clock service
---
# Out of a nested function into the frame of another one.
f:
	pushq	%rbp
	movl	$.L2, %eax
	movq	(%r10), %rdx
	movq	8(%r10), %rsp
	movq	%rdx, %rbp
	jmp	*%rax
=>
errors.s:8: error: __builtin_longjmp and jumps out of nested functions cannot be confined: they set the stack pointer without the gate's knowledge; use setjmp and longjmp of <setjmp.h>
---
# One error for a cause: the first place, how many there are besides, and where.
	.globl	f, g, h, i, j
f:
	rdtsc
	rdtsc
	ret
g:
	rdtsc
	rdrand	%rax
	ret
h:
	rdtsc
	ret
i:
	rdtsc
	ret
j:
	rdtsc
	ret
=>
errors.s:4: error: `rdtsc` cannot be confined: time is the host's to tell; import a clock service (and 5 more, in `f`, `g`, `h` and 2 more functions)
errors.s:9: error: `rdrand` cannot be confined: random numbers are the host's to give; import a service
