/* alloca, arrays of variable length, aligned locals, many arguments, structures by value, large frames. */
#include <stdarg.h>
#include "mix.h"

NOINLINE static unsigned long fill(unsigned long *a, unsigned n, unsigned long x)
{
    for (unsigned i = 0; i < n; i++)
        a[i] = x = mix(x, i);
    return x;
}

NOINLINE static unsigned long vla(unsigned n, unsigned long x)
{
    unsigned long a[n];
    x = fill(a, n, x);
    for (unsigned i = 1; i < n; i++) {
        unsigned long b[i];
        x = mix(x, fill(b, i, a[i]));
        x ^= b[i / 2];
    }
    return x;
}

NOINLINE static unsigned long allocas(unsigned n, unsigned long x)
{
    unsigned long *p = &x;
    for (unsigned i = 1; i < n; i++) {
        unsigned long *q = __builtin_alloca(i * 8);
        fill(q, i, *p);
        p = q + i / 3;
    }
    return mix(x, *p);
}

NOINLINE static unsigned long aligned(unsigned long x, unsigned long seven, long a, long b, long c, long d, long e)
{
    _Alignas(64) unsigned long big[16];
    _Alignas(128) volatile char small[3];
    fill(big, 16, x);
    small[1] = (char)x;
    unsigned long misaligned = (unsigned long)big % 64 + (unsigned long)small % 128;
    return big[seven & 15] + (unsigned char)small[1] + misaligned + a + b * 3 + c * 5 + d * 7 + e * 11;
}

NOINLINE static unsigned long aligned_vla(unsigned n, unsigned long x, long a, long b, long c, long d, long e)
{
    _Alignas(32) unsigned long big[4];
    unsigned long v[n];
    fill(v, n, x);
    fill(big, 4, v[n - 1]);
    return mix(big[n & 3], v[n / 2]) + a + b + c * d - e + (unsigned long)big % 32;
}

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, char h, short i, int j, long k, double l, float m)
{
    return a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h + 19 * i + 23 * j + 29 * k + (long)(l * 31) + (long)(m * 37);
}

struct big { long a[9]; };
struct pair { long a; double b; };
struct small { char c[3]; };

NOINLINE static struct big make(long x)
{
    struct big b;
    for (int i = 0; i < 9; i++)
        b.a[i] = x * i;
    return b;
}
NOINLINE static long take(long x, struct big b, struct pair p, struct small s)
{
    long sum = x + s.c[0] * 3 + s.c[2];
    for (int i = 0; i < 9; i++)
        sum = sum * 7 + b.a[i];
    return sum + p.a + (long)p.b;
}
NOINLINE static struct pair swap(struct pair p) { return (struct pair){ (long)p.b, (double)p.a }; }

NOINLINE static long sum(int n, ...)
{
    va_list list;
    va_start(list, n);
    long total = 0;
    for (int i = 0; i < n; i++)
        total += i % 3 == 2 ? (long)va_arg(list, double) : va_arg(list, long) * (i + 1);
    va_end(list);
    return total;
}
NOINLINE static long forward(int n, va_list list)
{
    va_list copy;
    va_copy(copy, list);
    long total = 0;
    for (int i = 0; i < n; i++)
        total = total * 3 + va_arg(copy, int);
    va_end(copy);
    return total;
}
NOINLINE static long through(int n, ...)
{
    va_list list;
    va_start(list, n);
    long x = forward(n, list) + va_arg(list, int);
    va_end(list);
    return x;
}

NOINLINE static unsigned long huge(unsigned long x)
{
    unsigned long a[4096];
    fill(a, 4096, x);
    return a[x % 4096] ^ a[17];
}

/* gcc's nested functions need a static chain only. */
NOINLINE static long nested(long x)
{
    long total = 0;
    auto long inner(long y);
    long inner(long y) { total += y; return y ? inner(y - 1) : total; }
    return inner(x) * total;
}

unsigned long run(unsigned long seed)
{
    unsigned long s = seed;
    for (unsigned n = 1; n < 30; n += 4) {
        s = mix(s, vla(n, s));
        s = mix(s, allocas(n, s));
        s = mix(s, aligned(s, n, 1, 2, 3, 4, 5));
        s = mix(s, aligned_vla(n, s, 1, 2, 3, 4, 5));
    }
    s = mix(s, many(1, 2, 3, 4, 5, 6, 7, -8, -9, 10, 11, 12.5, 13.25f));
    s = mix(s, take(3, make(5), (struct pair){ 4, 5.5 }, (struct small){ { 1, 2, 3 } }));
    struct pair p = swap((struct pair){ (long)(s & 0xffff), 7.0 });
    s = mix(s, p.a + (long)p.b);
    s = mix(s, sum(9, 1l, 2l, 3.5, 4l, 5l, 6.5, 7l, 8l, 9.5));
    s = mix(s, sum(12, 1l, 2l, 3.0, 4l, 5l, 6.0, 7l, 8l, 9.0, 10l, 11l, 12.0));
    s = mix(s, through(4, 1, 2, 3, 4));
    s = mix(s, huge(s));
    return mix(s, nested(10));
}
