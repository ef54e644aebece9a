# The extension of the C tests: one small function for each thing that a host may meet.
# `# export NAME SIGNATURE` and `# import NAME SIGNATURE` say what the image's notes hold.
# import twice i(i)
# import scale d(d)
# import note v(p)
# import judge z(z)
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
# export greedy l(llllllllllllllll)
# export silent
# export truth z(l)
# export shown l(z)
# export seventh l(llllllz)
# export judged z(l)
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
truth:                                  # a _Bool as nobody should make it
    movq    %rdi, %rax
    ret
shown:                                  # all of the register
    movq    %rdi, %rax
    ret
seventh:                                # all of the word on the stack
    movq    %gs:(%r15d), %rax
    ret
judged:                                 # any word for a service's _Bool, and its result with all of the register
    jmp     judge
silent:                                 # as greedy, and the image says nothing of it
greedy:                                 # says that it takes sixteen words, and looks for one of them in all that it got
    movl    $1, %eax
    movabsq $0x6b65792d6b657921, %r10
    cmpq    %r10, %rdx
    je      1f
    cmpq    %r10, %rcx
    je      1f
    cmpq    %r10, %r8
    je      1f
    cmpq    %r10, %r9
    je      1f
    .set    word, 0
    .rept   12
    cmpq    %gs:8+8*word(%r15d), %r10
    je      1f
    .set    word, word+1
    .endr
    leal    (%rdi,%rsi), %eax
    cltq
1:  ret
