/* What compilers call for operations that the processor does not have: 128-bit division and conversions, bit counts,
 * complex products. */
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

/* To floating point, rounded to nearest even: the leading 64 bits, the last of which says whether anything is below. */
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

/* Complex products and quotients of finite numbers. */
PX _Complex float __mulsc3(float a, float b, float c, float d)
{
    _Complex float z;
    __real__ z = a * c - b * d;
    __imag__ z = a * d + b * c;
    return z;
}
PX _Complex double __muldc3(double a, double b, double c, double d)
{
    _Complex double z;
    __real__ z = a * c - b * d;
    __imag__ z = a * d + b * c;
    return z;
}
PX _Complex double __divdc3(double a, double b, double c, double d)
{
    _Complex double z;
    /* Smith's method: scaled by the larger part of the divisor. */
    if (__builtin_fabs(c) < __builtin_fabs(d)) {
        double ratio = c / d, by = c * ratio + d;
        __real__ z = (a * ratio + b) / by;
        __imag__ z = (b * ratio - a) / by;
    } else {
        double ratio = d / c, by = d * ratio + c;
        __real__ z = (b * ratio + a) / by;
        __imag__ z = (b - a * ratio) / by;
    }
    return z;
}
PX _Complex float __divsc3(float a, float b, float c, float d)
{
    _Complex float z;
    double by = (double)c * c + (double)d * d;
    __real__ z = (float)(((double)a * c + (double)b * d) / by);
    __imag__ z = (float)(((double)b * c - (double)a * d) / by);
    return z;
}

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
