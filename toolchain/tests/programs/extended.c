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
    s = mix(s, (unsigned long)(order(keep[0], keep[1]) + 3 * order(keep[1], keep[2])));
    s = mix_double(s, (double)__builtin_fabsl(-keep[2]));
    return mix(s, (unsigned long)(long)(float)(keep[0] - (long double)(unsigned long)keep[0]));
}
