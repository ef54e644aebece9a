# What an extension is told of its processor: what the flags of its link allow the compiler. The
# values are symbols of the link; the compiler's driver has the list (features.rs).

# `cpuid`: %eax is the leaf, %ecx the subleaf. Nothing but these two, %ebx and %edx changes.
	.text
	.weak	__postern_cpuid
	.hidden	__postern_cpuid
	.type	__postern_cpuid, @function
__postern_cpuid:
	testl	%eax, %eax
	je	.Lvendor
	cmpl	$1, %eax
	je	.Lbasic
	cmpl	$7, %eax
	je	.Lmore
	cmpl	$0x80000000, %eax
	je	.Llast
	cmpl	$0x80000001, %eax
	je	.Lextended
.Lnothing:
	xorl	%eax, %eax
	xorl	%ebx, %ebx
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	ret
# The last leaf, and "PosternImage".
.Lvendor:
	movl	$7, %eax
	movl	$0x74736f50, %ebx
	movl	$0x496e7265, %edx
	movl	$0x6567616d, %ecx
	ret
# No family and model; one processor, whose cache has lines of eight times eight bytes.
.Lbasic:
	xorl	%eax, %eax
	movl	$0x10800, %ebx
	movl	$__postern_cpuid_1_ecx, %ecx
	movl	$__postern_cpuid_1_edx, %edx
	ret
.Lmore:
	testl	%ecx, %ecx
	jne	.Lnothing
	xorl	%eax, %eax
	movl	$__postern_cpuid_7_ebx, %ebx
	movl	$__postern_cpuid_7_ecx, %ecx
	xorl	%edx, %edx
	ret
.Llast:
	movl	$0x80000001, %eax
	xorl	%ebx, %ebx
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	ret
# 64-bit code.
.Lextended:
	xorl	%eax, %eax
	xorl	%ebx, %ebx
	movl	$__postern_cpuid_extended_ecx, %ecx
	movl	$0x20000000, %edx
	ret
	.size	__postern_cpuid, .-__postern_cpuid

# `xgetbv`: %ecx is the register. Nothing but %eax and %edx changes.
	.weak	__postern_xgetbv
	.hidden	__postern_xgetbv
	.type	__postern_xgetbv, @function
__postern_xgetbv:
	xorl	%edx, %edx
	movl	$__postern_xgetbv_0_eax, %eax
	testl	%ecx, %ecx
	je	.Lstate
	xorl	%eax, %eax
.Lstate:
	ret
	.size	__postern_xgetbv, .-__postern_xgetbv

# __builtin_cpu_init and __builtin_cpu_supports look here.
	.weak	__cpu_indicator_init
	.hidden	__cpu_indicator_init
	.type	__cpu_indicator_init, @function
__cpu_indicator_init:
	endbr64
	xorl	%eax, %eax
	ret
	.size	__cpu_indicator_init, .-__cpu_indicator_init

	.section .rodata
	.weak	__cpu_model, __cpu_features2
	.hidden	__cpu_model, __cpu_features2
	.p2align 2
# No vendor, type and subtype.
	.type	__cpu_model, @object
	.size	__cpu_model, 16
__cpu_model:
	.long	0, 0, 0, __postern_cpu_features_0
	.type	__cpu_features2, @object
	.size	__cpu_features2, 12
__cpu_features2:
	.long	__postern_cpu_features_1, __postern_cpu_features_2, __postern_cpu_features_3
