/* Thread-local variables: with and without initial values, aligned, large, static and global, through pointers, in loops that need
   the flags, beside arrays on the stack, and the way errno is used. */
#include "mix.h"

static __thread int counter = 7;
__thread unsigned char bytes[300] = { 1, 2, 3 };
_Thread_local unsigned long zero;
static _Thread_local double real = 2.5;
static __thread long table[64][8];
static __thread struct { char c; long double x; short s; } mixed = { 'c', 1.25L, -3 };
__thread float vector[16] __attribute__((aligned(64))) = { 1, 2, 3, 4 };
static __thread char aligned_zero __attribute__((aligned(128)));
static __thread unsigned long *chain;
static __thread int error;
const char *const names[] = { "a", "b" };
static __thread const char *name = "first";
static __thread unsigned long (*function)(unsigned long);

NOINLINE static int *error_location(void) { return &error; }
#define ERROR (*error_location())

NOINLINE static long may_fail(long x)
{
    if (x % 3 == 0) {
        ERROR = (int)(x % 100);
        return -1;
    }
    return x;
}

NOINLINE static unsigned long flags(long a, long b)
{
    /* The comparison's result is wanted after the store. */
    unsigned long less = a < b;
    counter = less ? (int)a : counter + 1;
    zero += less;
    int carry = (unsigned long)a + (unsigned long)b < (unsigned long)a;
    bytes[(unsigned)a % 300] = (unsigned char)(carry + bytes[(unsigned)b % 300]);
    return less * 2 + (unsigned)carry + (unsigned)counter;
}

NOINLINE static unsigned long wide(unsigned __int128 x, unsigned __int128 y)
{
    zero = (unsigned long)(x + y);
    unsigned __int128 z = x + y + counter;
    table[3][1] = (long)(z >> 64);
    return (unsigned long)(z >> 64) ^ zero;
}

NOINLINE static unsigned long twice(unsigned long x) { return x * 2 + zero; }

NOINLINE static void step(unsigned i, unsigned long x)
{
    table[i % 64][x % 8] += (long)x;
    bytes[x % 300]++;
    bytes[i % 300] ^= (unsigned char)x;
    real = real * 1.01 + vector[i % 16];
    vector[x % 16] += (float)i;
    mixed.x += mixed.s;
    mixed.s = (short)(mixed.s + mixed.c + i);
    zero -= i;
    if (i & 1)
        name = names[x & 1];
}

NOINLINE static unsigned long sum_of(const unsigned char *p, unsigned n, unsigned long x)
{
    while (n--)
        x = mix(x, *p++);
    return x;
}

unsigned long run(unsigned long seed)
{
    unsigned long x = seed, local[20];
    chain = local;
    function = twice;
    for (unsigned i = 0; i < 20; i++)
        local[i] = x = mix(x, i);
    for (unsigned i = 0; i < 500; i++) {
        step(i, x);
        x = mix(x, chain[i % 20] + *name);
        if (may_fail((long)(x >> 1)) < 0)
            x = mix(x, (unsigned)ERROR);
        x = mix(x, flags((long)x % 50, (long)(x >> 20) % 50));
        x = mix(x, function(x));
    }
    x = mix(x, wide((unsigned __int128)x << 60 | x, (unsigned __int128)~x << 3));
    x = sum_of(bytes, sizeof bytes, x);
    for (unsigned i = 0; i < 64 * 8; i++)
        x = mix(x, (unsigned long)table[i / 8][i % 8]);
    for (unsigned i = 0; i < 16; i++)
        x = mix_double(x, vector[i]);
    x = mix_double(x, real);
    x = mix_double(x, (double)mixed.x);
    x = mix(x, (unsigned long)&vector % 64 + (unsigned long)&aligned_zero % 128 + (unsigned char)aligned_zero);
    return mix(x, (unsigned)counter + zero);
}
