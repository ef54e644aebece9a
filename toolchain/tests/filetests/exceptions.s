# A landing pad has the stack of the calls that it belongs to, wherever it lies, and %r15 is what the compiler takes for %rsp there.
	.section	.text._Z1fi,"ax",@progbits
	.globl	_Z1fi
	.type	_Z1fi, @function
_Z1fi:
.LFB1219:
	.cfi_startproc
	.cfi_personality 0x3,__gxx_personality_v0
	.cfi_lsda 0x3,.LLSDA1219
	endbr64
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	subq	$16, %rsp
	.cfi_def_cfa_offset 32
	movl	%edi, 12(%rsp)
.LEHB0:
	call	_Z1gi
.LEHE0:
	movl	$7, %edi
.LEHB1:
	call	_Z1gi
.LEHE1:
	movl	$2, %ebx
.L4:
	leaq	12(%rsp), %rdi
	call	_ZN1DD1Ev
	addq	$16, %rsp
	.cfi_remember_state
	.cfi_def_cfa_offset 16
	movl	%ebx, %eax
	popq	%rbx
	.cfi_restore 3
	.cfi_def_cfa_offset 8
	ret
.L7:
	.cfi_restore_state
	endbr64
	movq	%rax, %rdi
	movq	%rdx, %rax
	jmp	.L2
.L8:
	endbr64
	movq	%rax, %rbx
	jmp	.L6
	.globl	__gxx_personality_v0
	.section	.gcc_except_table._Z1fi,"a",@progbits
	.align 4
.LLSDA1219:
	.byte	0xff
	.byte	0x3
	.uleb128 .LLSDATT1219-.LLSDATTD1219
.LLSDATTD1219:
	.byte	0x1
	.uleb128 .LLSDACSE1219-.LLSDACSB1219
.LLSDACSB1219:
	.uleb128 .LEHB0-.LFB1219
	.uleb128 .LEHE0-.LEHB0
	.uleb128 .L7-.LFB1219
	.uleb128 0x3
	.uleb128 .LEHB1-.LFB1219
	.uleb128 .LEHE1-.LEHB1
	.uleb128 .L8-.LFB1219
	.uleb128 0
.LLSDACSE1219:
	.byte	0x2
	.byte	0
	.byte	0x1
	.byte	0x7d
	.align 4
	.long	0

	.long	_ZTISt13runtime_error
.LLSDATT1219:
	.section	.text._Z1fi
	.cfi_endproc
	.section	.text.unlikely._Z1fi
	.cfi_startproc
	.cfi_personality 0x3,__gxx_personality_v0
	.cfi_lsda 0x3,.LLSDAC1219
	.type	_Z1fi.cold, @function
_Z1fi.cold:
.LFSB1219:
.L2:
	.cfi_def_cfa_offset 32
	.cfi_offset 3, -16
	subq	$1, %rax
	je	.L13
	call	__cxa_begin_catch
	movl	$3, %edi
.LEHB2:
	call	_Z1gi
	call	__cxa_rethrow
.LEHE2:
.L9:
	endbr64
	movq	%rax, %rbx
	call	__cxa_end_catch
.L6:
	leaq	12(%rsp), %rdi
	call	_ZN1DD1Ev
	movq	%rbx, %rdi
.LEHB3:
	call	_Unwind_Resume
.LEHE3:
.L13:
	call	__cxa_begin_catch
	movl	$1, %ebx
	call	__cxa_end_catch
	jmp	.L4
	.cfi_endproc
.LFE1219:
	.section	.gcc_except_table._Z1fi
	.align 4
.LLSDAC1219:
	.byte	0xff
	.byte	0x3
	.uleb128 .LLSDATTC1219-.LLSDATTDC1219
.LLSDATTDC1219:
	.byte	0x1
	.uleb128 .LLSDACSEC1219-.LLSDACSBC1219
.LLSDACSBC1219:
	.uleb128 .LEHB2-.LFSB1219
	.uleb128 .LEHE2-.LEHB2
	.uleb128 .L9-.LFSB1219
	.uleb128 0
	.uleb128 .LEHB3-.LFSB1219
	.uleb128 .LEHE3-.LEHB3
	.uleb128 0
	.uleb128 0
.LLSDACSEC1219:
	.byte	0x2
	.byte	0
	.byte	0x1
	.byte	0x7d
	.align 4
	.long	0

	.long	_ZTISt13runtime_error
.LLSDATTC1219:
	.section	.text.unlikely._Z1fi
	.section	.text._Z1fi
=>
	.section	.text._Z1fi,"ax",@progbits
	.globl	_Z1fi
	.type	_Z1fi, @function
_Z1fi:
.LFB1219:
	.cfi_startproc
	.cfi_personality 0x3,__gxx_personality_v0
	.cfi_lsda 0x3,.LLSDA1219
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rbx, %gs:-16(%r15d)
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
	.cfi_def_cfa_offset 32
	movl	%edi, %gs:-20(%r15d)
.LEHB0:
	leaq	-32(%r15), %r15
	call	_Z1gi
.LEHE0:
	movl	$7, %edi
.LEHB1:
	call	_Z1gi
.LEHE1:
	movl	$2, %ebx
.L4:
	leaq	12(%r15), %rdi
	call	_ZN1DD1Ev
	.cfi_remember_state
	.cfi_def_cfa_offset 16
	movl	%ebx, %eax
	movq	%gs:16(%r15d), %rbx
	.cfi_restore 3
	.cfi_def_cfa_offset 8
	leaq	32(%r15), %r15
	ret
.L7:
	.cfi_restore_state
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rax, %rdi
	movq	%rdx, %rax
	jmp	.L2
.L8:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rax, %rbx
	jmp	.L6
	.globl	__gxx_personality_v0
	.section	.gcc_except_table._Z1fi,"a",@progbits
	.align	4
.LLSDA1219:
	.byte	0xff
	.byte	0x3
	.uleb128	.LLSDATT1219-.LLSDATTD1219
.LLSDATTD1219:
	.byte	0x1
	.uleb128	.LLSDACSE1219-.LLSDACSB1219
.LLSDACSB1219:
	.uleb128	.LEHB0-.LFB1219
	.uleb128	.LEHE0-.LEHB0
	.uleb128	.L7-.LFB1219
	.uleb128	0x3
	.uleb128	.LEHB1-.LFB1219
	.uleb128	.LEHE1-.LEHB1
	.uleb128	.L8-.LFB1219
	.uleb128	0
.LLSDACSE1219:
	.byte	0x2
	.byte	0
	.byte	0x1
	.byte	0x7d
	.align	4
	.long	0
	.long	_ZTISt13runtime_error
.LLSDATT1219:
	.section	.text._Z1fi
	.cfi_endproc
	.section	.text.unlikely._Z1fi
	.cfi_startproc
	.cfi_personality 0x3,__gxx_personality_v0
	.cfi_lsda 0x3,.LLSDAC1219
	.type	_Z1fi.cold, @function
_Z1fi.cold:
.LFSB1219:
.L2:
	.cfi_def_cfa_offset 32
	.cfi_offset 3, -16
	subq	$1, %rax
	je	.L13
	call	__cxa_begin_catch
	movl	$3, %edi
.LEHB2:
	call	_Z1gi
	call	__cxa_rethrow
.LEHE2:
.L9:
	.byte	0x0f,0x1f,0x84,0x20,0,0,0,0
	movq	%rax, %rbx
	call	__cxa_end_catch
.L6:
	leaq	12(%r15), %rdi
	call	_ZN1DD1Ev
	movq	%rbx, %rdi
.LEHB3:
	call	_Unwind_Resume
.LEHE3:
.L13:
	call	__cxa_begin_catch
	movl	$1, %ebx
	call	__cxa_end_catch
	jmp	.L4
	.cfi_endproc
.LFE1219:
	.section	.gcc_except_table._Z1fi
	.align	4
.LLSDAC1219:
	.byte	0xff
	.byte	0x3
	.uleb128	.LLSDATTC1219-.LLSDATTDC1219
.LLSDATTDC1219:
	.byte	0x1
	.uleb128	.LLSDACSEC1219-.LLSDACSBC1219
.LLSDACSBC1219:
	.uleb128	.LEHB2-.LFSB1219
	.uleb128	.LEHE2-.LEHB2
	.uleb128	.L9-.LFSB1219
	.uleb128	0
	.uleb128	.LEHB3-.LFSB1219
	.uleb128	.LEHE3-.LEHB3
	.uleb128	0
	.uleb128	0
.LLSDACSEC1219:
	.byte	0x2
	.byte	0
	.byte	0x1
	.byte	0x7d
	.align	4
	.long	0
	.long	_ZTISt13runtime_error
.LLSDATTC1219:
	.section	.text.unlikely._Z1fi
	.section	.text._Z1fi
---
# For a debugger only.
	.cfi_sections	.debug_frame
	.globl	f
f:
	.cfi_startproc
	subq	$24, %rsp
	.cfi_def_cfa_offset 32
	call	g
	addq	$24, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
=>
	.globl	f
f:
	leaq	-32(%r15), %r15
	call	g
	leaq	32(%r15), %r15
	ret
