/* Switches (dense, sparse, before and after the frame is made), computed goto, tail calls, recursion, noreturn. */
#include "mix.h"

NOINLINE static unsigned long dense(unsigned k, unsigned long x)
{
    switch (k) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x ^ 0x55;
    case 3: return x >> 3;
    case 4: return x - k;
    case 5: return ~x;
    case 6: return x << 5;
    case 9: return x / 7;
    default: return x % 1000;
    }
}

NOINLINE static unsigned long other(unsigned long a, unsigned long b) { return a * 31 + b; }

/* A switch after calls, with saved registers and a frame; a second one inside. */
NOINLINE static unsigned long framed(unsigned k, unsigned long x)
{
    unsigned long local[8];
    for (int i = 0; i < 8; i++)
        local[i] = other(x, i);
    switch (k & 15) {
    case 0: x += local[0]; break;
    case 1: x ^= other(local[1], k); /* fall through */
    case 2: x -= local[2]; break;
    case 3:
        switch (x & 7) {
        case 0: x = other(x, 1); break;
        case 1: x = other(x, 9); break;
        case 2: x = local[5]; break;
        case 3: return other(local[6], x);
        case 4: x *= 11; break;
        case 5: x += 13; break;
        default: x = 1;
        }
        break;
    case 4: x = local[3] * local[4]; break;
    case 5: return local[7];
    case 6: x = other(x, x); break;
    case 7: x >>= 7; break;
    case 11: x = other(local[k & 7], 3); break;
    }
    return other(x, local[x & 7]);
}

/* The switch comes before anything is saved: the depth at its jump is that of the entry. */
NOINLINE static unsigned long early(unsigned k, unsigned long x)
{
    switch (k) {
    case 0: return 7;
    case 1: return x;
    case 2: return x * x;
    case 3: return other(x, 3) + other(3, x);
    case 4: return other(other(x, 1), other(x, 2));
    case 5: return x + 5;
    case 6: {
        volatile unsigned long v[16];
        for (int i = 0; i < 16; i++)
            v[i] = other(x, i);
        return v[x & 15];
    }
    }
    return 0;
}

/* What lies in a frame is still there after it. */
NOINLINE static unsigned long around(unsigned k, unsigned long x)
{
    volatile unsigned long kept[4] = { x, x + 1, x + 2, x + 3 };
    unsigned long y = early(k, x);
    return other(other(y, kept[0]), kept[3]);
}

NOINLINE static unsigned long machine(const unsigned char *code, unsigned long x)
{
    static const void *const table[] = { &&add, &&twice, &&call, &&jump, &&end };
    unsigned long stack[4] = { 1, 2, 3, 4 };
    goto *table[*code];
add:
    x += stack[x & 3];
    goto *table[*++code];
twice:
    x *= 2;
    stack[1] = x;
    goto *table[*++code];
call:
    stack[2] = other(x, stack[0]);
    x = stack[2] ^ x;
    goto *table[*++code];
jump:
    if (x & 1)
        code++;
    goto *table[*++code];
end:
    return x;
}

NOINLINE static unsigned long even(unsigned long n, unsigned long sum);
NOINLINE static unsigned long odd(unsigned long n, unsigned long sum) { return n ? even(n - 1, mix(sum, 1)) : sum; }
NOINLINE static unsigned long even(unsigned long n, unsigned long sum) { return n ? odd(n - 1, mix(sum, 2)) : sum; }

typedef unsigned long (*step)(unsigned long, unsigned long);
NOINLINE static unsigned long tail(step f, unsigned long a, unsigned long b) { return f(b, a); }
NOINLINE static unsigned long tail_with_frame(step *fs, unsigned long a)
{
    unsigned long x[6];
    for (int i = 0; i < 6; i++)
        x[i] = fs[i & 1](a, i);
    unsigned long sum = 0;
    for (int i = 0; i < 6; i++)
        sum = sum * 3 + x[i];
    return fs[sum & 1](sum, a);
}

__attribute__((noreturn)) NOINLINE static void never(void) { __builtin_trap(); }
NOINLINE static unsigned long checked(unsigned long x)
{
    if (x == 0xdead)
        never();
    unsigned long y = other(x, 1);
    if (y == 0xbeef)
        never();
    return y;
}
NOINLINE static unsigned long after_checked(unsigned long x) { return checked(x) + other(x, 2); }

unsigned long run(unsigned long seed)
{
    unsigned long sum = seed;
    for (unsigned k = 0; k < 20; k++) {
        sum = mix(sum, dense(k, sum));
        for (int i = 0; i < 10; i++)
            sum = mix(sum, framed(k, sum >> (i * 5)));
        sum = mix(sum, around(k % 8, sum));
    }
    static const unsigned char code[] = { 0, 1, 2, 0, 3, 1, 2, 2, 3, 0, 0, 1, 2, 4, 4 };
    sum = mix(sum, machine(code, sum));
    sum = mix(sum, even(1000, sum));
    step fs[2] = { other, mix };
    sum = mix(sum, tail(fs[0], sum, 9));
    sum = mix(sum, tail_with_frame(fs, sum));
    return mix(sum, after_checked(sum));
}
