/* setjmp and longjmp: out of deep calls, again and again, from callbacks, with values in registers, floats and large frames. */
#include <setjmp.h>
#include "mix.h"

static jmp_buf outer, inner[8];

NOINLINE static void deep(unsigned n, int value)
{
    volatile char frame[100];
    frame[n % 100] = (char)value;
    if (n == 0)
        longjmp(outer, value);
    deep(n - 1, value);
    frame[0]++;
}

NOINLINE static unsigned long once(unsigned n, int value, unsigned long x)
{
    volatile unsigned long kept = x;
    int code = setjmp(outer);
    if (code == 0) {
        kept = mix(kept, n);
        deep(n, value);
    }
    return mix(kept, (unsigned long)code);
}

/* The callee-saved registers are the caller's again, whatever was in them at longjmp. */
NOINLINE static unsigned long registers(unsigned long x)
{
    unsigned long a = mix(x, 1), b = mix(x, 2), c = mix(x, 3), d = mix(x, 4), e = mix(x, 5), f = mix(x, 6);
    double g = (double)(x & 0xffff) / 3;
    for (unsigned i = 0; i < 5; i++) {
        x = mix(x, once(i * 3, (int)i, a));
        a += b ^ c, b += d, c += e, d += f, e += a, f += b;
        g = g * 1.5 + i;
    }
    return mix_double(mix(x, a ^ b ^ c ^ d ^ e ^ f), g);
}

/* A loop made of jumps, nested buffers, and the value 0, which arrives as 1. */
NOINLINE static unsigned long loops(unsigned long x)
{
    volatile int count = 0;
    volatile unsigned long sum = x;
    int code = setjmp(outer);
    sum = mix(sum, (unsigned long)code);
    if (++count < 20)
        longjmp(outer, count % 5 == 0 ? 0 : -count);
    volatile int back = 8;
    for (volatile int i = 0; i < 8; i++)
        if ((code = setjmp(inner[i])) != 0) {
            sum = mix(sum, (unsigned long)(code + back));
            if (--back == 0)
                return sum;
            longjmp(inner[back - 1], i + back);
        }
    longjmp(inner[7], 1);
}

static int compare(const unsigned *a, const unsigned *b, unsigned *budget)
{
    if (--*budget == 0)
        longjmp(outer, 77);
    return (*a > *b) - (*a < *b);
}

NOINLINE static void sort(unsigned *a, unsigned n, int (*less)(const unsigned *, const unsigned *, unsigned *), unsigned *budget)
{
    for (unsigned i = 1; i < n; i++)
        for (unsigned j = i; j && less(&a[j], &a[j - 1], budget) < 0; j--) {
            unsigned t = a[j];
            a[j] = a[j - 1];
            a[j - 1] = t;
        }
}

NOINLINE static unsigned long callbacks(unsigned long x, volatile unsigned n, volatile unsigned most)
{
    unsigned a[n], budget = most;
    volatile unsigned long sum = x;
    for (unsigned i = 0; i < n; i++)
        a[i] = (unsigned)(x = mix(x, i)) % 1000;
    int code = setjmp(outer);
    if (code == 0)
        sort(a, n, compare, &budget);
    for (unsigned i = 0; i < n; i++)
        sum = mix(sum, a[i]);
    return mix(sum, (unsigned long)code);
}

/* An interpreter's way to handle errors: a chain of handlers in frames. */
struct handler { struct handler *up; jmp_buf where; };
static struct handler *top;
static void throw(int code) { longjmp(top->where, code); }

NOINLINE static unsigned long protect(unsigned depth, unsigned long x)
{
    struct handler here;
    volatile unsigned long sum = x;
    here.up = top;
    top = &here;
    int code = setjmp(here.where);
    if (code == 0) {
        if (depth)
            sum = mix(sum, protect(depth - 1, x + depth));
        throw((int)depth + 1);
    }
    top = here.up;
    sum = mix(sum, (unsigned long)code);
    if (depth % 3 == 1 && top)
        throw((int)(sum & 0xff) + 1);
    return sum;
}

unsigned long run(unsigned long seed)
{
    unsigned long sum = seed;
    for (unsigned i = 0; i < 40; i += 3)
        sum = mix(sum, once(i, (int)i - 7, seed));
    sum = mix(sum, registers(sum));
    sum = mix(sum, loops(sum));
    for (unsigned most = 1; most < 200; most += 7)
        sum = mix(sum, callbacks(sum, 12, most));
    return mix(sum, protect(11, sum));
}
