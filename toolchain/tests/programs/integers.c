/* 128-bit arithmetic, bit-fields, bytes in the second byte of a register, shifts, divisions, atomics, bit scans. */
#include <stdint.h>
#include "mix.h"

typedef unsigned __int128 u128;
NOINLINE static u128 multiply(u128 a, u128 b) { return a * b + (a >> 3) - (b << 7); }
NOINLINE static __int128 shift(__int128 a, int n) { return (a >> n) ^ (a << (127 - n)); }

NOINLINE static u128 divide(u128 a, u128 b) { return a / b * 3 + a % b; }
NOINLINE static __int128 divide_signed(__int128 a, __int128 b) { return a / b * 3 + a % b; }
NOINLINE static unsigned long to_double(u128 a)
{
    union { double d; unsigned long u; } x = { (double)a }, y = { (double)(__int128)a };
    union { float f; unsigned u; } z = { (float)a };
    return x.u + y.u * 3 + z.u + (unsigned long)((u128)(x.d / 3) >> 60) + (unsigned long)((__int128)(y.d / 5) >> 50);
}

struct bits { unsigned a : 3, b : 11, c : 18; long d : 40; unsigned e : 1; };
NOINLINE static void bits(struct bits *p, unsigned x) { p->a += x; p->b ^= x * 3; p->c -= x; p->d = p->d * 5 + x; p->e ^= x; }

struct bytes { uint8_t a, b, c, d; };
NOINLINE static void halves(uint16_t *x, uint8_t *out, int i)
{
    unsigned v = x[i];
    out[0] += v >> 8;
    out[1] = (v >> 8) & 0xff;
    out[2] = v;
    x[i + 1] = (uint16_t)((out[1] << 8) | out[0]);
}
NOINLINE static int compare_high(const uint32_t *a, const uint8_t *b, int n)
{
    volatile uint8_t local[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += (uint8_t)(a[i] >> 8) == b[i];
        count += (uint8_t)(a[i] >> 8) > local[i & 7];
        local[i & 7] = (uint8_t)(a[i] >> 8);
    }
    return count + local[3];
}

NOINLINE static long atomics(long *p, int *q, char *c)
{
    long x = __atomic_fetch_add(p, 5, __ATOMIC_SEQ_CST);
    x ^= __atomic_exchange_n(q, 7, __ATOMIC_SEQ_CST);
    long expected = x;
    __atomic_compare_exchange_n(p, &expected, x * 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    __sync_fetch_and_or(c, 3);
    __atomic_sub_fetch(p, 2, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(q, &(int){ 7 }, 9, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
    return x + *p + *q + *c + expected + __atomic_fetch_xor(p, 99, __ATOMIC_SEQ_CST);
}

static const uint32_t table[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
NOINLINE static uint32_t far_index(long i) { return table[i - 1000000]; }
NOINLINE static uint32_t negative(const uint32_t *end, int i) { return end[-i]; }

unsigned long run(unsigned long seed)
{
    unsigned long s = seed | 1;
    u128 a = ((u128)s << 64) | ~s, b = 12345678901234567ul;
    for (int i = 0; i < 40; i++) {
        a = multiply(a, b ^ i);
        b = (u128)shift((__int128)a, i + 1);
        s = mix(s, (unsigned long)(a >> 64) ^ (unsigned long)b);
    }
    static const u128 edges[] = { 1, 2, 3, 7, (u128)1 << 63, ~0ul, (u128)1 << 64, ((u128)1 << 64) + 1, (u128)~0ul << 64, ~(u128)0, (u128)1 << 127,
                                  ((u128)0x8000000000000000 << 64) - 1, (u128)0xfedcba9876543210 << 32 };
    for (int i = 0; i < 13; i++)
        for (int j = 0; j < 13; j++) {
            u128 q = divide(edges[i], edges[j]) ^ divide(a ^ edges[i], edges[j]) ^ (u128)divide_signed((__int128)edges[i], (__int128)(edges[j] | 2));
            s = mix(s, (unsigned long)q ^ (unsigned long)(q >> 64) * 3);
            s = mix(s, to_double(edges[i] ^ edges[j]));
        }
    struct bits x = { 0 };
    for (unsigned i = 0; i < 50; i++)
        bits(&x, i);
    s = mix(s, x.a + x.b * 3 + x.c * 5 + (unsigned long)x.d + x.e);
    uint16_t h[20] = { (uint16_t)s };
    uint8_t out[4] = { 0 };
    for (int i = 0; i < 19; i++)
        halves(h, out, i);
    s = mix(s, h[19] + out[0] + out[1] + out[2]);
    uint32_t words[16];
    uint8_t bytes[16];
    for (int i = 0; i < 16; i++) {
        words[i] = (uint32_t)(s >> i);
        bytes[i] = (uint8_t)(s >> (i + 8));
    }
    s = mix(s, compare_high(words, bytes, 16));
    long p = 10;
    int q = 3;
    char c = 64;
    s = mix(s, atomics(&p, &q, &c));
    s = mix(s, far_index(1000007) + negative(table + 9, 4));
    int32_t d = (int32_t)s | 1;
    s = mix(s, (unsigned)(1000000007 / d) + (unsigned)(d % 13) + s / 1000003 + s % 12289);
    s = mix(s, __builtin_ctzl(s | 4096) + __builtin_clzl(s | 1) + __builtin_popcountl(s) + __builtin_bswap32((unsigned)s));
    s = mix(s, (s << 13) | (s >> 51));
    unsigned carry;
    s = mix(s, __builtin_add_overflow((unsigned)s, 0x80000000u, &carry) + carry);
    return s;
}
