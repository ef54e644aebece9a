/* Inline assembly: string instructions, numeric labels, high bytes, lock prefixes, goto, other sections. */
#include <stdint.h>
#include "mix.h"

static uint8_t from[300], to[300];

NOINLINE static unsigned long strings(unsigned long s)
{
    void *d = to, *f = from;
    unsigned long n = 100;
    __asm__ volatile("cld; rep movsb" : "+D"(d), "+S"(f), "+c"(n) : : "memory");
    s = mix(s, (unsigned long)((uint8_t *)d - to) + (unsigned long)((uint8_t *)f - from) + n);
    n = 12;
    __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(0x1122334455667788) : "memory");
    s = mix(s, (unsigned long)((uint8_t *)d - to));
    d = to;
    f = from;
    n = 300;
    uint8_t equal;
    __asm__ volatile("repe cmpsb\n\tsete %0" : "=q"(equal), "+D"(d), "+S"(f), "+c"(n) : : "memory");
    s = mix(s, equal + n);
    d = to;
    n = 300;
    __asm__ volatile("repne scasb\n\tsete %0" : "=q"(equal), "+D"(d), "+c"(n) : "a"(0x88) : "memory");
    s = mix(s, equal + n);
    d = to;
    n = 50;
    __asm__ volatile("repne scasb\n\tsete %0" : "=q"(equal), "+D"(d), "+c"(n) : "a"(0xee) : "memory");
    s = mix(s, equal + n);
    f = from;
    uint64_t a;
    __asm__ volatile("lodsq" : "=a"(a), "+S"(f) : : "memory");
    return mix(s, a + (unsigned long)((uint8_t *)f - from));
}
NOINLINE static unsigned long labels(unsigned long x)
{
    unsigned long n = 0;
    __asm__("1: testq %1, %1\n\tje 2f\n\tincq %0\n\tshrq $1, %1\n\tjmp 1b\n2:" : "+r"(n), "+r"(x));
    return n;
}
NOINLINE static unsigned long high(unsigned x, uint8_t *p, long i)
{
    uint8_t local[16] = { 1, 2, 3 };
    __asm__("movb %%ah, (%1,%2)\n\taddb 3(%1,%2), %%ah\n\tmovb %%ah, %3" : "+a"(x) : "Q"(p), "Q"(i), "m"(local[5]) : "memory");
    return x + p[i] + local[5];
}
NOINLINE static int jumps(long x)
{
    __asm__ goto("testq $1, %0\n\tjne %l1" : : "r"(x) : : odd);
    return 2;
odd:
    return 1;
}
NOINLINE static int atomic(int *p)
{
    int old = 1;
    __asm__ volatile("lock; xaddl %0, %1" : "+r"(old), "+m"(*p));
    __asm__ volatile("lock incl %0" : "+m"(*p));
    return old + *p;
}
/* A routine inside of the assembly, which only calls reach. */
NOINLINE static unsigned long routine(unsigned long x)
{
    int one = (int)x;
    x += (unsigned long)atomic(&one);
    __asm__("jmp 2f\n1:\tleaq 3(%0,%0), %0\n\tpushq %0\n\tnotq %0\n\tpopq %0\n\tret\n2:\tcall 1b\n\tcall 1b" : "+r"(x) : : "memory", "cc");
    return x;
}
__asm__(".text\n.globl by_hand\nby_hand:\n\tpushq %rbx\n\tmovq %rdi, %rbx\n\tcall helper\n\taddq %rbx, %rax\n\tpopq %rbx\n\tret\n"
        "helper:\n\tleaq 1(%rdi,%rdi), %rax\n\tret\n");
long by_hand(long);
__asm__(".text\n.globl loop_by_hand\nloop_by_hand:\n\txorl %eax, %eax\nagain:\n\taddq %rdi, %rax\n\tdecq %rdi\n\tjne again\n\tret\n");
long loop_by_hand(long);
/* An argument on the stack, and a push from memory. */
__asm__(".text\n.globl seventh\nseventh:\n\tpushq 8(%rsp)\n\tpopq %rax\n\tret\n");
long seventh(long, long, long, long, long, long, long);

unsigned long run(unsigned long seed)
{
    unsigned long s = seed;
    for (int i = 0; i < 300; i++)
        from[i] = (uint8_t)(i * 3 + 1);
    s = mix(s, strings(s));
    s = mix(s, labels(s));
    uint8_t bytes[32] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    s = mix(s, high((unsigned)s, bytes, 4));
    s = mix(s, jumps((long)s) + jumps((long)s + 1));
    int x = 5;
    s = mix(s, atomic(&x));
    s = mix(s, routine(s));
    s = mix(s, by_hand(20) + loop_by_hand(10));
    return mix(s, seventh(1, 2, 3, 4, 5, 6, 77));
}
