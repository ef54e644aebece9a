# The memory gate: copies, fills, comparisons and searches of long ranges, for every domain, at the
# host's speed.
#
# A gate slot jumps here as it does to the service gate: r11d = number of the slot, arguments where
# System V puts them, return address into the extension on the control stack. Nothing is pushed and
# nothing of the thread's state changes: the call stays INSIDE, so a fault or a wish ends it at any
# instruction as it would in the extension's own text (`bulk.rs` has the argument).
#
# Registers from the head on: r10 = base of the window, rax = result, rcx, rdx, rsi, rdi, r8, r9
# free. Every range is cut to an offset and compared with the window once, before the base is added.
# What is read is decided from registers: other threads may write the same memory meanwhile, so
# nothing is looked at twice.

    .text

.macro BULK_LABEL name
    .globl  \name
    .hidden \name
\name:
.endm

# Vectors of 32 bytes and of 16. Loads and stores need no alignment; STORE_ALIGNED has it.
.macro LOAD_avx n, at:vararg
    vmovdqu ymm\n, ymmword ptr [\at]
.endm
.macro STORE_avx n, at:vararg
    vmovdqu ymmword ptr [\at], ymm\n
.endm
.macro STORE_ALIGNED_avx n, at:vararg
    vmovdqa ymmword ptr [\at], ymm\n
.endm
.macro EQUAL_avx n, at:vararg
    vpcmpeqb ymm\n, ymm\n, ymmword ptr [\at]
.endm
.macro FIND_avx n, wanted, at:vararg          # at a multiple of the vector's size
    vpcmpeqb ymm\n, ymm\wanted, ymmword ptr [\at]
.endm
.macro BITS_avx register, n
    vpmovmskb \register, ymm\n
.endm
.macro FOUR_avx operation, to                # of 0 to 3, to \to; 6 is free
    vp\operation ymm\to, ymm0, ymm1
    vp\operation ymm6, ymm2, ymm3
    vp\operation ymm\to, ymm\to, ymm6
.endm
.macro SPLAT_avx n, register
    vmovd   xmm\n, \register
    vpbroadcastb ymm\n, xmm\n
.endm
.macro LEAVE_avx                            # no upper half keeps anything, and none slows the extension's SSE code, or the host's
    vzeroupper
.endm

.macro LOAD_sse n, at:vararg
    movdqu  xmm\n, xmmword ptr [\at]
.endm
.macro STORE_sse n, at:vararg
    movdqu  xmmword ptr [\at], xmm\n
.endm
.macro STORE_ALIGNED_sse n, at:vararg
    movdqa  xmmword ptr [\at], xmm\n
.endm
.macro EQUAL_sse n, at:vararg
    movdqu  xmm7, xmmword ptr [\at]
    pcmpeqb xmm\n, xmm7
.endm
.macro FIND_sse n, wanted, at:vararg
    movdqa  xmm\n, xmmword ptr [\at]
    pcmpeqb xmm\n, xmm\wanted
.endm
.macro BITS_sse register, n
    pmovmskb \register, xmm\n
.endm
.macro FOUR_sse operation, to
    movdqa  xmm\to, xmm0
    p\operation xmm\to, xmm1
    movdqa  xmm6, xmm2
    p\operation xmm6, xmm3
    p\operation xmm\to, xmm6
.endm
.macro SPLAT_sse n, register
    movd    xmm\n, \register
    punpcklbw xmm\n, xmm\n
    pshuflw xmm\n, xmm\n, 0
    punpcklqdq xmm\n, xmm\n
.endm
.macro LEAVE_sse
.endm

# Counts the call and finds the window.
.macro HEAD
    mov     rcx, qword ptr [rip + postern_thread@GOTTPOFF]
    mov     r10, fs:[rcx + {T_CONTROL}]
    mov     ecx, r11d
    shl     ecx, 6
    add     rcx, [r10 + {C_SERVICES}]
    inc     qword ptr [rcx + {S_CALLS}]
    xor     ecx, ecx                        # an address of the host's; 0 for the test
    mov     r10, [r10 + {C_BASE}]
.endm

# The one test: offsets below 2^32, so no sum of one with a length below 2^32 wraps, and neither
# does a larger length go unseen.
.macro ONE_RANGE
    mov     edi, edi
    lea     r8, [rdi + rdx]
    or      r8, rdx
    shr     r8, 32
    cmovnz  rdx, rcx                        # also for a processor that guesses: it gets no further than the guards
    jnz     postern_bulk_out
    add     rdi, r10
.endm
.macro TWO_RANGES
    mov     edi, edi
    mov     esi, esi
    lea     r8, [rdi + rdx]
    lea     r9, [rsi + rdx]
    or      r8, r9
    or      r8, rdx
    shr     r8, 32
    cmovnz  rdx, rcx                        # also for a processor that guesses: it gets no further than the guards
    jnz     postern_bulk_out
    add     rdi, r10
    add     rsi, r10
.endm

# Four vectors at rdi + rcx and rsi + rcx: to 3 if they differ, with what is equal in 0 to 3.
.macro COMPARE_FOUR kind, v, all
    LOAD_\kind 0, rdi + rcx
    LOAD_\kind 1, rdi + rcx + \v
    LOAD_\kind 2, rdi + rcx + 2 * \v
    LOAD_\kind 3, rdi + rcx + 3 * \v
    EQUAL_\kind 0, rsi + rcx
    EQUAL_\kind 1, rsi + rcx + \v
    EQUAL_\kind 2, rsi + rcx + 2 * \v
    EQUAL_\kind 3, rsi + rcx + 3 * \v
    FOUR_\kind and, 5
    BITS_\kind eax, 5
    cmp     eax, \all
    jne     3f
.endm

.macro BULK kind, v, all

# memmove(rdi, rsi, rdx), and so memcpy. All loads of what overlaps come before the first store.
    .p2align 6
BULK_LABEL postern_move_\kind
    HEAD
    mov     rax, rdi
    TWO_RANGES
    cmp     rdx, 2 * \v
    jbe     3f
    cmp     rdx, 8 * \v
    ja      5f
    LOAD_\kind 0, rsi
    LOAD_\kind 1, rsi + \v
    LOAD_\kind 2, rsi + rdx - 2 * \v
    LOAD_\kind 3, rsi + rdx - \v
    cmp     rdx, 4 * \v
    jbe     2f
    LOAD_\kind 4, rsi + 2 * \v
    LOAD_\kind 5, rsi + 3 * \v
    LOAD_\kind 6, rsi + rdx - 4 * \v
    LOAD_\kind 7, rsi + rdx - 3 * \v
    STORE_\kind 4, rdi + 2 * \v
    STORE_\kind 5, rdi + 3 * \v
    STORE_\kind 6, rdi + rdx - 4 * \v
    STORE_\kind 7, rdi + rdx - 3 * \v
2:
    STORE_\kind 0, rdi
    STORE_\kind 1, rdi + \v
    STORE_\kind 2, rdi + rdx - 2 * \v
    STORE_\kind 3, rdi + rdx - \v
    LEAVE_\kind
    ret
3:
    cmp     rdx, \v
    jb      4f
    LOAD_\kind 0, rsi
    LOAD_\kind 1, rsi + rdx - \v
    STORE_\kind 0, rdi
    STORE_\kind 1, rdi + rdx - \v
    LEAVE_\kind
    ret
4:                                          # few bytes, for which nobody need come here: one by one, from the end that is safe
    mov     rcx, rdi
    sub     rcx, rsi
    cmp     rcx, rdx
    mov     rcx, rdx
    jae     8f
41:
    sub     rdx, 1
    jb      42f
    movzx   ecx, byte ptr [rsi + rdx]
    mov     [rdi + rdx], cl
    jmp     41b
42:
    ret
5:
    mov     rcx, rdi
    sub     rcx, rsi
    cmp     rcx, rdx
    jb      7f                              # the destination begins inside the source
    cmp     rdx, [rip + {MOVE_BY_STRING}]
    jae     71f
51:                                         # forwards, in lines of the destination; head and tail overlap the middle
    LOAD_\kind 4, rsi
    LOAD_\kind 5, rsi + rdx - 4 * \v
    LOAD_\kind 6, rsi + rdx - 3 * \v
    LOAD_\kind 7, rsi + rdx - 2 * \v
    LOAD_\kind 8, rsi + rdx - \v
    lea     r8, [rdi + rdx - 4 * \v]
    mov     r9, rdi
    sub     rsi, rdi
    add     rdi, \v
    and     rdi, -\v
    .p2align 5
6:
    LOAD_\kind 0, rsi + rdi
    LOAD_\kind 1, rsi + rdi + \v
    LOAD_\kind 2, rsi + rdi + 2 * \v
    LOAD_\kind 3, rsi + rdi + 3 * \v
    STORE_ALIGNED_\kind 0, rdi
    STORE_ALIGNED_\kind 1, rdi + \v
    STORE_ALIGNED_\kind 2, rdi + 2 * \v
    STORE_ALIGNED_\kind 3, rdi + 3 * \v
    add     rdi, 4 * \v
    cmp     rdi, r8
    jb      6b
    STORE_\kind 5, r8
    STORE_\kind 6, r8 + \v
    STORE_\kind 7, r8 + 2 * \v
    STORE_\kind 8, r8 + 3 * \v
    STORE_\kind 4, r9
    LEAVE_\kind
    ret
7:                                          # backwards
    LOAD_\kind 4, rsi + rdx - \v
    LOAD_\kind 5, rsi
    LOAD_\kind 6, rsi + \v
    LOAD_\kind 7, rsi + 2 * \v
    LOAD_\kind 8, rsi + 3 * \v
    lea     rcx, [rdi + rdx - \v]
    lea     r8, [rdi + 4 * \v]
    mov     r9, rdi
    sub     rsi, rdi
    add     rdi, rdx
    and     rdi, -\v
    .p2align 5
72:
    LOAD_\kind 0, rsi + rdi - \v
    LOAD_\kind 1, rsi + rdi - 2 * \v
    LOAD_\kind 2, rsi + rdi - 3 * \v
    LOAD_\kind 3, rsi + rdi - 4 * \v
    STORE_ALIGNED_\kind 0, rdi - \v
    STORE_ALIGNED_\kind 1, rdi - 2 * \v
    STORE_ALIGNED_\kind 2, rdi - 3 * \v
    STORE_ALIGNED_\kind 3, rdi - 4 * \v
    sub     rdi, 4 * \v
    cmp     rdi, r8
    ja      72b
    STORE_\kind 4, rcx
    STORE_\kind 5, r9
    STORE_\kind 6, r9 + \v
    STORE_\kind 7, r9 + 2 * \v
    STORE_\kind 8, r9 + 3 * \v
    LEAVE_\kind
    ret
71:
    neg     rcx
    cmp     rcx, rdx
    jb      51b                             # the source begins inside the destination: slow for the processor's own
    neg     ecx
    dec     ecx
    and     ecx, 4095
    cmp     ecx, 63
    jb      51b                             # and so is a destination that is a few bytes further into its page
    mov     rcx, rdx
8:                                          # no vector was touched
    rep movsb
    ret

# memset(rdi, sil, rdx).
    .p2align 6
BULK_LABEL postern_fill_\kind
    HEAD
    mov     rax, rdi
    ONE_RANGE
    cmp     rdx, \v
    jb      3f
    cmp     rdx, [rip + {FILL_BY_STRING}]
    jae     3f
    SPLAT_\kind 0, esi
    lea     r8, [rdi + rdx]
    STORE_\kind 0, rdi
    cmp     rdx, 8 * \v
    ja      4f
    STORE_\kind 0, r8 - \v
    cmp     rdx, 2 * \v
    jbe     2f
    STORE_\kind 0, rdi + \v
    STORE_\kind 0, r8 - 2 * \v
    cmp     rdx, 4 * \v
    jbe     2f
    STORE_\kind 0, rdi + 2 * \v
    STORE_\kind 0, rdi + 3 * \v
    STORE_\kind 0, r8 - 4 * \v
    STORE_\kind 0, r8 - 3 * \v
2:
    LEAVE_\kind
    ret
4:
    sub     r8, 4 * \v
    add     rdi, \v
    and     rdi, -\v
    .p2align 5
1:
    STORE_ALIGNED_\kind 0, rdi
    STORE_ALIGNED_\kind 0, rdi + \v
    STORE_ALIGNED_\kind 0, rdi + 2 * \v
    STORE_ALIGNED_\kind 0, rdi + 3 * \v
    add     rdi, 4 * \v
    cmp     rdi, r8
    jb      1b
    STORE_\kind 0, r8
    STORE_\kind 0, r8 + \v
    STORE_\kind 0, r8 + 2 * \v
    STORE_\kind 0, r8 + 3 * \v
    LEAVE_\kind
    ret
3:
    mov     r8, rax
    mov     rcx, rdx
    mov     eax, esi
    rep stosb
    mov     rax, r8
    ret

# memcmp(rdi, rsi, rdx). Behind the first four vectors the left ones lie at multiples of their size.
    .p2align 6
BULK_LABEL postern_compare_\kind
    HEAD
    TWO_RANGES
    mov     r8, rdx
    sub     r8, 4 * \v
    jb      5f
    jz      2f
    COMPARE_FOUR \kind, \v, \all
    mov     eax, edi
    and     eax, \v - 1
    mov     ecx, 4 * \v
    sub     ecx, eax
    cmp     rcx, r8
    jae     11f
    .p2align 5
1:
    COMPARE_FOUR \kind, \v, \all
    add     rcx, 4 * \v
    cmp     rcx, r8
    jb      1b
11:
    mov     rcx, r8                         # the last four overlap those before
2:
    COMPARE_FOUR \kind, \v, \all
    xor     eax, eax
    LEAVE_\kind
    ret
3:
    .irp    n, 0, 1, 2
    BITS_\kind eax, \n
    xor     eax, \all
    jnz     4f
    add     rcx, \v
    .endr
    BITS_\kind eax, 3
    xor     eax, \all
4:
    bsf     eax, eax
    add     rcx, rax
    movzx   eax, byte ptr [rdi + rcx]
    movzx   ecx, byte ptr [rsi + rcx]
    sub     eax, ecx
    LEAVE_\kind
    ret
5:                                          # few bytes
    xor     eax, eax
6:
    cmp     rcx, rdx
    jae     7f
    movzx   eax, byte ptr [rdi + rcx]
    movzx   r9d, byte ptr [rsi + rcx]
    add     rcx, 1
    sub     eax, r9d
    jz      6b
7:
    ret

# strlen(rdi), of which the first esi bytes are said not to be 0: a search up to the window's end,
# whose result is relative to rdi.
    .p2align 6
BULK_LABEL postern_length_\kind
    HEAD
    mov     r9d, edi
    add     r9, r10
    lea     edi, [rdi + rsi]
    mov     edx, 1
    shl     rdx, 32
    sub     rdx, rdi
    xor     esi, esi
    mov     r8d, 1
    add     rdi, r10
    jmp     1f

# memchr(rdi, sil, rdx): of a length that goes beyond the window, what is in the window. r8d = there
# is more. r9 = what the result is relative to. rsi = what is looked at, a multiple of the vectors'
# size, so that it touches no page that the range does not.
    .p2align 5
BULK_LABEL postern_find_\kind
    HEAD
    mov     edi, edi
    mov     r9d, 1
    shl     r9, 32
    sub     r9, rdi
    xor     r8d, r8d
    cmp     rdx, r9
    seta    r8b
    cmova   rdx, r9
    mov     r9, r10
    xor     eax, eax
    test    rdx, rdx
    jz      8f
    add     rdi, r10
1:
    SPLAT_\kind 4, esi
    add     rdx, rdi                        # behind the last byte
    mov     ecx, edi
    and     ecx, \v - 1
    mov     rsi, rdi
    and     rsi, -\v
    FIND_\kind 0, 4, rsi
    BITS_\kind eax, 0
    shr     eax, cl
    shl     eax, cl
    jmp     3f
2:
    add     rsi, \v
    cmp     rsi, rdx
    jae     7f
    test    esi, 4 * \v - 1
    jz      4f
    FIND_\kind 0, 4, rsi
    BITS_\kind eax, 0
3:
    test    eax, eax
    jz      2b
    jmp     6f
    .p2align 5
4:
    FIND_\kind 0, 4, rsi
    FIND_\kind 1, 4, rsi + \v
    FIND_\kind 2, 4, rsi + 2 * \v
    FIND_\kind 3, 4, rsi + 3 * \v
    FOUR_\kind or, 5
    BITS_\kind eax, 5
    test    eax, eax
    jnz     5f
    add     rsi, 4 * \v
    cmp     rsi, rdx
    jb      4b
    jmp     7f
5:
    .irp    n, 0, 1, 2
    BITS_\kind eax, \n
    test    eax, eax
    jnz     6f
    add     rsi, \v
    .endr
    BITS_\kind eax, 3
6:
    bsf     eax, eax
    add     rax, rsi
    cmp     rax, rdx
    jae     7f
    sub     rax, r9
    LEAVE_\kind
    ret
7:
    xor     eax, eax
    test    r8d, r8d
    jnz     postern_bulk_out
8:
    LEAVE_\kind
    ret
.endm

    .p2align 6
BULK_LABEL postern_bulk
BULK sse, 16, 0xffff
BULK avx, 32, -1

# A range that leaves the window: what is above it is never mapped, so this is an access there.
# r10 = base.
BULK_LABEL postern_bulk_out
    mov     ecx, 1
    shl     rcx, 32
    movzx   eax, byte ptr [r10 + rcx]
    ud2
BULK_LABEL postern_bulk_end
    nop
