# Frame directives stay for an unwinder, and go where they are only for a debugger; alignments become NOPs without a segment or, unreached, int3.
	.text
	.globl	f
	.p2align 4
	.type	f, @function
f:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.p2align 4,,10
	.p2align 3
.L1:
	decl	%edi
	jne	.L1
	.p2align 5
.L2:
	decl	%esi
	jne	.L2
	.balign 2
	popq	%rbx
	ret
	.cfi_endproc
	.p2align 4,,15
	.size	f, .-f
	.section	.rodata
	.align 16
x:	.long	1, 2
	.string	"a;b#c"
=>
	.text
	.globl	f
	.p2align 4,0xcc
	.type	f, @function
f:
	.cfi_startproc
	movq	%rbx, %gs:-16(%r15d)
	.cfi_def_cfa_offset 16
	.p2align 3
	.p2align 4
	.p2align 3
.L1:
	decl	%edi
	jne	.L1
	.p2align 3
	.p2align 4
	.p2alignl 5,0x00401f0f
.L2:
	decl	%esi
	jne	.L2
	.p2align 1
	movq	%gs:-16(%r15d), %rbx
	ret
	.cfi_endproc
	.p2align 4,0xcc,15
	.size	f, .-f
	.section	.rodata
	.align	16
x:
	.long	1, 2
	.string	"a;b#c"
---
# Numeric labels.
1:	decl	%eax
	jne	1b
	jmp	1f
1:	ret
=>
.Lpostern_1_1:
	decl	%eax
	jne	.Lpostern_1_1
	jmp	.Lpostern_1_2
.Lpostern_1_2:
	ret
