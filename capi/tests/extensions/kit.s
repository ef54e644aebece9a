# The extension of the C tests: one small function for each thing that a host may meet.
# `# export NAME SIGNATURE` and `# import NAME SIGNATURE` say what the image's notes hold.
# import twice i(i)
# import scale d(d)
# import note v(p)
# export add l(ii)
# export half d(d)
# export load i(p)
# export store v(pi)
# export spin v()
# export recurse i(i)
# export trap v()
# export twice_plus i(i)
# export scaled d(d)
# export tell v(p)
# export callback p()
# export untyped
# export nine l(lllllllll)
# export wide L(bBhHiI)
# export bss p()
    .text
add:                                    # a + b
    lea     (%rdi,%rsi), %eax
    cltq
    ret
half:                                   # x + x, so as not to need a constant
    addsd   %xmm0, %xmm0
    ret
load:
    movl    %gs:(%edi), %eax
    ret
store:
    movl    %esi, %gs:(%edi)
    ret
spin:
    jmp     spin
recurse:                                # never returns: control stack
    call    recurse
    ret
trap:
    ud2
twice_plus:                             # twice(x) + 1
    call    twice
    addl    $1, %eax
    ret
scaled:
    call    scale
    addsd   %xmm0, %xmm0
    ret
tell:
    jmp     note
callback:
    movl    $added_two, %eax
    ret
    .byte 0x0f, 0x1f, 0x84, 0x20, 0, 0, 0, 0
added_two:
    leal    2(%rdi), %eax
    ret
untyped:
    leal    (%rdi,%rdi), %eax
    ret
nine:                                   # first + eighth + 10 * ninth: the seventh and later arguments are on the data stack
    movq    %gs:8(%r15d), %rax
    addq    %rdi, %rax
    movq    %gs:16(%r15d), %rcx
    leaq    (%rcx,%rcx,4), %rcx
    leaq    (%rax,%rcx,2), %rax
    ret
wide:                                   # every bit that arrives in the six registers: the gate must clear what is no argument
    movq    %rdi, %rax
    orq     %rsi, %rax
    orq     %rdx, %rax
    orq     %rcx, %rax
    orq     %r8, %rax
    orq     %r9, %rax
    ret
bss:
    movl    $DATA, %eax
    ret
