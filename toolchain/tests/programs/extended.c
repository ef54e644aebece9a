/* long double: the x87 unit, and a flagged image. */
#include "mix.h"

NOINLINE static long double horner(long double x, int n)
{
    long double y = 1;
    for (int i = n; i > 0; i--)
        y = y * x / i + 1;
    return y;
}
NOINLINE static long double many(long double a, int b, long double c, double d) { return a * b - c / (long double)d; }
NOINLINE static int order(long double a, long double b) { return (a < b) - (a > b); }
/* Compilers ask the unit what kind of number it is. */
NOINLINE static int kind(long double x)
{
    return !!__builtin_signbit(x) + 2 * !!__builtin_isinf(x) + 4 * !!__builtin_isnan(x) + 8 * __builtin_isinf_sign(x);
}
/* Two signs are asked in a row, and the first answer is still in the flags when the second is asked. */
NOINLINE static long double signs(long double a, long double b)
{
    if (__builtin_signbit(a))
        return __builtin_fabsl(b - b) + __builtin_copysignl(a, b);
    return a + __builtin_copysignl(b - b, b);
}
NOINLINE static int examined(long double x)
{
    unsigned short status;
    __asm__("fxam\n\tfnstsw\t%%ax" : "=a"(status) : "t"(x) : "cc");
    __asm__("testl %%eax, %%eax" : : "a"(status) : "cc");
    return status & 0x4700;
}

unsigned long run(unsigned long seed)
{
    unsigned long s = seed;
    volatile long double keep[3];
    for (int i = 1; i < 20; i++) {
        keep[i % 3] = horner(0.125L * i, 25);
        s = mix_double(s, (double)keep[i % 3]);
        s = mix(s, (unsigned long)(keep[i % 3] * 1000));
        s = mix(s, (unsigned long)(int)many(keep[i % 3], i, 2.5L, 0.5));
    }
    static const long double kinds[] = { 0.0L, 1.5L, 3.3e-4932L, 4e-4950L, __builtin_infl(), __builtin_nanl(""), 1e4932L };
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        volatile long double x = kinds[i];
        s = mix(s, (unsigned long)(kind(x) + 64 * kind(-x)));
        s = mix_double(mix_double(s, (double)signs(1.5L, i & 1 ? 2 : -2)), (double)signs(i & 1 ? -1.5L : 2.5L, i & 2 ? -3 : 3));
        s = mix(s, (unsigned long)(examined(x) + 65536 * examined(-x)));
    }
    s = mix(s, (unsigned long)(order(keep[0], keep[1]) + 3 * order(keep[1], keep[2])));
    s = mix_double(s, (double)__builtin_fabsl(-keep[2]));
    return mix(s, (unsigned long)(long)(float)(keep[0] - (long double)(unsigned long)keep[0]));
}
