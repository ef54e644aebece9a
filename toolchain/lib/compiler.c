/* What compilers call for operations that the processor does not have: 128-bit division and
 * conversions, bit counts, integer powers. */
#define PX __attribute__((weak, visibility("hidden")))

typedef __int128 i128;
typedef unsigned __int128 u128;
typedef unsigned long u64;

PX int __popcountdi2(long x)
{
    u64 v = (u64)x;
    v -= v >> 1 & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int)(v * 0x0101010101010101u >> 56);
}
PX int __popcountti2(i128 x) { return __popcountdi2((long)x) + __popcountdi2((long)(x >> 64)); }
PX int __paritydi2(long x) { return __popcountdi2(x) & 1; }
PX int __parityti2(i128 x) { return __popcountti2(x) & 1; }
PX int __clzdi2(u64 x) { return __builtin_clzl(x); }
PX int __clzti2(u128 x) { return x >> 64 ? __builtin_clzl((u64)(x >> 64)) : 64 + __builtin_clzl((u64)x); }
PX int __ctzdi2(u64 x) { return __builtin_ctzl(x); }
PX int __ctzti2(u128 x) { return (u64)x ? __builtin_ctzl((u64)x) : 64 + __builtin_ctzl((u64)(x >> 64)); }
PX int __ffsdi2(long x) { return x ? __builtin_ctzl((u64)x) + 1 : 0; }
PX int __ffsti2(i128 x) { return x ? __ctzti2((u128)x) + 1 : 0; }
PX int __clrsbdi2(long x) { return x < 0 ? (~x ? __builtin_clzl((u64)~x) - 1 : 63) : x ? __builtin_clzl((u64)x) - 1 : 63; }
PX int __clrsbti2(i128 x)
{
    u128 magnitude = (u128)(x < 0 ? ~x : x);
    return magnitude ? __clzti2(magnitude) - 1 : 127;
}
PX int __bswapsi2(int x) { return (int)__builtin_bswap32((unsigned)x); }
PX long __bswapdi2(long x) { return (long)__builtin_bswap64((u64)x); }

/* -ftrapv: a trap where the result does not fit. */
#define TRAPPING(name, type, builtin) \
    PX type name(type a, type b) \
    { \
        type result; \
        if (builtin(a, b, &result)) \
            __builtin_trap(); \
        return result; \
    }
TRAPPING(__addvsi3, int, __builtin_add_overflow)
TRAPPING(__addvdi3, long, __builtin_add_overflow)
TRAPPING(__addvti3, i128, __builtin_add_overflow)
TRAPPING(__subvsi3, int, __builtin_sub_overflow)
TRAPPING(__subvdi3, long, __builtin_sub_overflow)
TRAPPING(__subvti3, i128, __builtin_sub_overflow)
TRAPPING(__mulvsi3, int, __builtin_mul_overflow)
TRAPPING(__mulvdi3, long, __builtin_mul_overflow)
PX int __negvsi2(int a) { return __subvsi3(0, a); }
PX long __negvdi2(long a) { return __subvdi3(0, a); }
PX i128 __negvti2(i128 a) { return __subvti3(0, a); }
PX int __absvsi2(int a) { return a < 0 ? __negvsi2(a) : a; }
PX long __absvdi2(long a) { return a < 0 ? __negvdi2(a) : a; }

/* The product of 128-bit integers and whether it does not fit. */
PX i128 __muloti4(i128 a, i128 b, int *overflow)
{
    u128 x = a < 0 ? -(u128)a : (u128)a, y = b < 0 ? -(u128)b : (u128)b;
    u64 x1 = (u64)(x >> 64), x0 = (u64)x, y1 = (u64)(y >> 64), y0 = (u64)y;
    u128 cross = (u128)x1 * y0 + (u128)x0 * y1, low = (u128)x0 * y0, product = low + (cross << 64);
    int negative = (a < 0) != (b < 0);
    *overflow = (x1 && y1) || cross >> 64 || product < low || product > ((u128)1 << 127) - !negative;
    return (i128)(negative ? -product : product);
}
PX i128 __mulvti3(i128 a, i128 b)
{
    int overflow;
    i128 product = __muloti4(a, b, &overflow);
    if (overflow)
        __builtin_trap();
    return product;
}

/* The processor's division, where the quotient is known to fit. */
static inline u64 divide(u64 high, u64 low, u64 by, u64 *rest)
{
    u64 quotient;
    __asm__("divq %4" : "=a"(quotient), "=d"(*rest) : "a"(low), "d"(high), "r"(by) : "cc");
    return quotient;
}

static u128 divide_u128(u128 n, u128 d, u128 *rest)
{
    u64 n1 = (u64)(n >> 64), n0 = (u64)n, d1 = (u64)(d >> 64), d0 = (u64)d, r;
    if (!d1) {
        u64 q1 = 0;
        if (n1 >= d0) {
            q1 = n1 / d0; /* by zero faults, as it should */
            n1 %= d0;
        }
        u64 q0 = divide(n1, n0, d0, &r);
        *rest = r;
        return (u128)q1 << 64 | q0;
    }
    if (n < d) {
        *rest = n;
        return 0;
    }
    int shift = __builtin_clzl(d1);
    if (!shift) {
        /* The divisor has its top bit set: the quotient is one. */
        *rest = n - d;
        return 1;
    }
    /* One word of quotient, at most one too large, from the leading 64 bits of the divisor. */
    u64 top = (u64)(d << shift >> 64);
    u128 half = n >> 1;
    u64 q = divide((u64)(half >> 64), (u64)half, top, &r) >> (63 - shift);
    if (q)
        q--;
    u128 left = n - (u128)q * d;
    if (left >= d) {
        left -= d;
        q++;
    }
    *rest = left;
    return q;
}

PX u128 __udivti3(u128 n, u128 d)
{
    u128 rest;
    return divide_u128(n, d, &rest);
}
PX u128 __umodti3(u128 n, u128 d)
{
    u128 rest;
    divide_u128(n, d, &rest);
    return rest;
}
PX u128 __udivmodti4(u128 n, u128 d, u128 *out)
{
    u128 rest, q = divide_u128(n, d, &rest);
    if (out)
        *out = rest;
    return q;
}
PX i128 __divti3(i128 n, i128 d)
{
    u128 rest, q = divide_u128(n < 0 ? -(u128)n : (u128)n, d < 0 ? -(u128)d : (u128)d, &rest);
    return (i128)((n < 0) != (d < 0) ? -q : q);
}
PX i128 __modti3(i128 n, i128 d)
{
    u128 rest;
    divide_u128(n < 0 ? -(u128)n : (u128)n, d < 0 ? -(u128)d : (u128)d, &rest);
    return (i128)(n < 0 ? -rest : rest);
}

PX i128 __divmodti4(i128 n, i128 d, i128 *out)
{
    u128 rest, q = divide_u128(n < 0 ? -(u128)n : (u128)n, d < 0 ? -(u128)d : (u128)d, &rest);
    *out = (i128)(n < 0 ? -rest : rest);
    return (i128)((n < 0) != (d < 0) ? -q : q);
}

/* To floating point, rounded to nearest even: the leading 64 bits, the last of which says whether
 * anything is below. */
static u64 leading(u128 x, int *exponent)
{
    int shift = (int)(64 - __builtin_clzl((u64)(x >> 64)));
    u64 lead = (u64)(x >> shift);
    if (x & (((u128)1 << shift) - 1))
        lead |= 1;
    *exponent = shift;
    return lead;
}
static double power_of_two(int n)
{
    union { u64 bits; double value; } u = { (u64)(1023 + n) << 52 };
    return u.value;
}
PX double __floatuntidf(u128 x)
{
    int exponent;
    if (!(x >> 64))
        return (double)(u64)x;
    u64 lead = leading(x, &exponent);
    return (double)lead * power_of_two(exponent);
}
PX float __floatuntisf(u128 x)
{
    int exponent;
    if (!(x >> 64))
        return (float)(u64)x;
    u64 lead = leading(x, &exponent);
    return (float)lead * (float)power_of_two(exponent);
}
PX double __floattidf(i128 x) { return x < 0 ? -__floatuntidf(-(u128)x) : __floatuntidf((u128)x); }
PX float __floattisf(i128 x) { return x < 0 ? -__floatuntisf(-(u128)x) : __floatuntisf((u128)x); }

PX u128 __fixunsdfti(double x)
{
    if (x < 18446744073709551616.0)
        return x > 0 ? (u64)x : 0;
    u64 high = (u64)(x * power_of_two(-64));
    return (u128)high << 64 | (u64)(x - (double)high * 18446744073709551616.0);
}
PX i128 __fixdfti(double x) { return x < 0 ? -(i128)__fixunsdfti(-x) : (i128)__fixunsdfti(x); }
PX u128 __fixunssfti(float x) { return __fixunsdfti(x); }
PX i128 __fixsfti(float x) { return __fixdfti(x); }

/* Between 128-bit integers and long double, whose significand has 64 bits. */
PX long double __floatuntixf(u128 x)
{
    /* Both halves are exact, and their sum is rounded once. */
    return (long double)(u64)(x >> 64) * 18446744073709551616.0L + (long double)(u64)x;
}
PX long double __floattixf(i128 x) { return x < 0 ? -__floatuntixf(-(u128)x) : __floatuntixf((u128)x); }
PX u128 __fixunsxfti(long double x)
{
    if (x < 18446744073709551616.0L)
        return x > 0 ? (u64)x : 0;
    u64 high = (u64)(x * 0x1p-64L);
    return (u128)high << 64 | (u64)(x - (long double)high * 18446744073709551616.0L);
}
PX i128 __fixxfti(long double x) { return x < 0 ? -(i128)__fixunsxfti(-x) : (i128)__fixunsxfti(x); }

PX double __powidf2(double x, int n)
{
    unsigned k = n < 0 ? -(unsigned)n : (unsigned)n;
    double y = k & 1 ? x : 1;
    while (k >>= 1) {
        x *= x;
        if (k & 1)
            y *= x;
    }
    return n < 0 ? 1 / y : y;
}
PX float __powisf2(float x, int n)
{
    unsigned k = n < 0 ? -(unsigned)n : (unsigned)n;
    float y = k & 1 ? x : 1;
    while (k >>= 1) {
        x *= x;
        if (k & 1)
            y *= x;
    }
    return n < 0 ? 1 / y : y;
}
PX long double __powixf2(long double x, int n)
{
    unsigned k = n < 0 ? -(unsigned)n : (unsigned)n;
    long double y = k & 1 ? x : 1;
    while (k >>= 1) {
        x *= x;
        if (k & 1)
            y *= x;
    }
    return n < 0 ? 1 / y : y;
}
