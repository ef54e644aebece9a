/* Mathematics of long double, which newlib has only where it is a double: on the x87 unit, whose
 * instructions do most of the work. Their error is about a unit of the last place; that of powl
 * grows with the result's exponent, that of sinl, cosl and tanl with the argument. The gamma and
 * error functions are those of double. */
#include <complex.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>

#undef CMPLXL
#define CMPLXL(x, y) __builtin_complex((long double)(x), (long double)(y))

typedef long double ld;
union parts {
    ld value;
    struct { uint64_t significand; uint16_t top; } bits;
};

static int exponent_of(ld x)
{
    union parts u = { x };
    return u.bits.top & 0x7fff;
}
static int sign_of(ld x)
{
    union parts u = { x };
    return u.bits.top >> 15;
}
static int special(ld x) { return exponent_of(x) == 0x7fff; }

static ld nearest(ld x) { __asm__("frndint" : "+t"(x)); return x; }
static ld y_log2(ld y, ld x) { ld r; __asm__("fyl2x" : "=t"(r) : "0"(x), "u"(y) : "st(1)"); return r; }
static ld y_log2_1p(ld y, ld x) { ld r; __asm__("fyl2xp1" : "=t"(r) : "0"(x), "u"(y) : "st(1)"); return r; }
static ld two_to_minus_1(ld x) { __asm__("f2xm1" : "+t"(x)); return x; }
static ld scale(ld x, ld n) { ld r; __asm__("fscale" : "=t"(r) : "0"(x), "u"(n)); return r; }
static ld arc(ld y, ld x) { ld r; __asm__("fpatan" : "=t"(r) : "0"(x), "u"(y) : "st(1)"); return r; }

#define LN2 0.693147180559945309417232121458176568L
#define LOG10_2 0.301029995663981195213738894724493027L
#define LOG2_E 1.442695040888963407359924681001892137L
#define HALF_PI 1.570796326794896619231321691639751442L

ld sqrtl(ld x) { __asm__("fsqrt" : "+t"(x)); return x; }
ld fabsl(ld x) { return __builtin_fabsl(x); }
ld copysignl(ld x, ld y)
{
    union parts u = { x };
    u.bits.top = (uint16_t)((u.bits.top & 0x7fff) | sign_of(y) << 15);
    return u.value;
}
ld fmaxl(ld x, ld y) { return x != x ? y : y != y ? x : x < y ? y : x; }
ld fminl(ld x, ld y) { return x != x ? y : y != y ? x : y < x ? y : x; }
ld fdiml(ld x, ld y) { return x != x ? x : y != y ? y : x > y ? x - y : 0; }

ld rintl(ld x) { return nearest(x); }
ld nearbyintl(ld x) { return nearest(x); }
ld floorl(ld x)
{
    ld r = nearest(x);
    return r > x ? r - 1 : r;
}
ld ceill(ld x)
{
    ld r = nearest(x);
    return r < x ? copysignl(r + 1, x) : r;
}
ld truncl(ld x) { return sign_of(x) ? ceill(x) : floorl(x); }
ld roundl(ld x)
{
    ld size = fabsl(x), whole = floorl(size);
    return copysignl(size - whole >= 0.5L ? whole + 1 : whole, x);
}
long lrintl(ld x) { return (long)nearest(x); }
long long llrintl(ld x) { return (long long)nearest(x); }
long lroundl(ld x) { return (long)roundl(x); }
long long llroundl(ld x) { return (long long)roundl(x); }

ld modfl(ld x, ld *whole)
{
    *whole = truncl(x);
    return copysignl(__builtin_isinf(x) ? 0 : x - *whole, x);
}
ld scalbnl(ld x, int n) { return scale(x, n > 70000 ? 70000 : n < -70000 ? -70000 : n); }
ld scalblnl(ld x, long n) { return scale(x, n > 70000 ? 70000 : n < -70000 ? -70000 : n); }
ld ldexpl(ld x, int n) { return scalbnl(x, n); }
ld frexpl(ld x, int *exponent)
{
    union parts u = { x };
    *exponent = 0;
    if (x == 0 || special(x))
        return x;
    if (!exponent_of(x)) {
        u.value *= 0x1p64L;
        *exponent = -64;
    }
    *exponent += (u.bits.top & 0x7fff) - 16382;
    u.bits.top = (uint16_t)((u.bits.top & 0x8000) | 16382);
    return u.value;
}
ld logbl(ld x)
{
    int exponent;
    if (x == 0)
        return -1 / fabsl(x);
    if (special(x))
        return x * x;
    frexpl(x, &exponent);
    return exponent - 1;
}
int ilogbl(ld x) { return x == 0 ? FP_ILOGB0 : x != x ? FP_ILOGBNAN : special(x) ? INT_MAX : (int)logbl(x); }
ld fmodl(ld x, ld y)
{
    unsigned short status;
    if (x != x || y != y || special(x) || y == 0)
        return (x * y) / (x * y);
    if (special(y))
        return x;
    ld from = x;
    do
        __asm__("fprem\n\tfnstsw %%ax" : "+t"(x), "=a"(status) : "u"(y) : "cc");
    while (status & 0x400);
    return copysignl(x, from);
}
ld remainderl(ld x, ld y)
{
    unsigned short status;
    if (x != x || y != y || special(x) || y == 0)
        return (x * y) / (x * y);
    if (special(y))
        return x;
    do
        __asm__("fprem1\n\tfnstsw %%ax" : "+t"(x), "=a"(status) : "u"(y) : "cc");
    while (status & 0x400);
    return x;
}
ld nextafterl(ld x, ld y)
{
    union parts u = { x };
    if (x != x || y != y)
        return x + y;
    if (x == y)
        return y;
    if (x == 0)
        return copysignl(0x1p-16445L, y);
    if ((x < y) == (x > 0)) {
        if (!++u.bits.significand || (u.bits.significand == 1ul << 63 && !(u.bits.top & 0x7fff))) {
            u.bits.significand = 1ul << 63;
            u.bits.top++;
        }
    } else if ((u.bits.top & 0x7fff) && u.bits.significand == 1ul << 63) {
        u.bits.top--;
        u.bits.significand = u.bits.top & 0x7fff ? ~0ul : ~0ul >> 1;
    } else {
        u.bits.significand--;
    }
    return u.value;
}
ld nexttowardl(ld x, ld y) { return nextafterl(x, y); }
double nexttoward(double x, ld y) { return x == y ? (double)y : nextafter(x, y > x ? HUGE_VAL : y < x ? -HUGE_VAL : (double)y); }
float nexttowardf(float x, ld y) { return x == y ? (float)y : nextafterf(x, y > x ? HUGE_VALF : y < x ? -HUGE_VALF : (float)y); }

ld exp2l(ld x)
{
    if (special(x))
        return x != x ? x : x > 0 ? x : 0;
    if (x > 17000 || x < -17000)
        return x > 0 ? __builtin_infl() : 0;
    ld whole = nearest(x);
    return scale(two_to_minus_1(x - whole) + 1, whole);
}
/* The argument is reduced with the logarithm of 2 in two parts, the first of which has few bits. */
ld expl(ld x)
{
    if (special(x))
        return x != x ? x : x > 0 ? x : 0;
    if (x > 12000 || x < -12000)
        return x > 0 ? __builtin_infl() : 0;
    ld whole = nearest(x * LOG2_E);
    ld rest = (x - whole * 0xb.17217f7d1cp-4L) - whole * 0xf.79abc9e3b39803fp-48L;
    return scale(two_to_minus_1(rest * LOG2_E) + 1, whole);
}
ld expm1l(ld x)
{
    if (x != x || x == 0)
        return x;
    return fabsl(x) < 0.3L ? two_to_minus_1(x * LOG2_E) : expl(x) - 1;
}
ld logl(ld x) { return y_log2(LN2, x); }
ld log2l(ld x) { return y_log2(1, x); }
ld log10l(ld x) { return y_log2(LOG10_2, x); }
ld log1pl(ld x) { return fabsl(x) < 0.29L ? y_log2_1p(LN2, x) : logl(1 + x); }

ld powl(ld x, ld y)
{
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return x + y;
    int odd = truncl(y) == y && fabsl(y) < 0x1p63L && ((long long)y & 1), negative = sign_of(x) && odd;
    if (x < 0 && truncl(y) != y && !special(x))
        return (x - x) / (x - x);
    ld size = fabsl(x), result;
    if (size == 1)
        result = 1;
    else if (special(y))
        result = (size > 1) == (y > 0) ? __builtin_infl() : 0;
    else if (size == 0 || special(size))
        result = (size == 0) == (y > 0) ? 0 : __builtin_infl();
    else
        result = exp2l(y_log2(y, size));
    return negative ? -result : result;
}

/* Scaled, so that squares neither overflow nor vanish. */
ld hypotl(ld x, ld y)
{
    ld most = fmaxl(fabsl(x), fabsl(y)), least = fminl(fabsl(x), fabsl(y));
    if (__builtin_isinf(x) || __builtin_isinf(y))
        return __builtin_infl();
    if (x != x || y != y || most == 0)
        return x + y == 0 ? 0 : x + y;
    int exponent;
    frexpl(most, &exponent);
    most = scale(most, -exponent);
    least = scale(least, -exponent);
    return scale(sqrtl(most * most + least * least), exponent);
}

/* The instructions take arguments up to 2^63. */
static ld reduced(ld x) { return fabsl(x) < 0x1p62L ? x : fmodl(x, 4 * HALF_PI); }
ld sinl(ld x)
{
    if (special(x))
        return x - x;
    x = reduced(x);
    __asm__("fsin" : "+t"(x));
    return x;
}
ld cosl(ld x)
{
    if (special(x))
        return x - x;
    x = reduced(x);
    __asm__("fcos" : "+t"(x));
    return x;
}
ld tanl(ld x) { return special(x) ? x - x : sinl(x) / cosl(x); }
ld atan2l(ld y, ld x) { return x != x || y != y ? x + y : arc(y, x); }
ld atanl(ld x) { return arc(x, 1); }
ld asinl(ld x) { return arc(x, sqrtl((1 - x) * (1 + x))); }
ld acosl(ld x) { return arc(sqrtl((1 - x) * (1 + x)), x); }
ld sinhl(ld x)
{
    ld e = expm1l(fabsl(x));
    if (special(e))
        return x != x ? x : copysignl(fabsl(x) > 11000 && fabsl(x) < 11357 ? expl(fabsl(x) - LN2) : e, x);
    return copysignl((e + e / (e + 1)) / 2, x);
}
ld coshl(ld x)
{
    ld e = expl(fabsl(x));
    return special(e) ? (x != x ? x : expl(fabsl(x) - LN2)) : (e + 1 / e) / 2;
}
ld tanhl(ld x)
{
    if (x != x || x == 0)
        return x;
    if (fabsl(x) > 25)
        return copysignl(1, x);
    ld e = expm1l(2 * fabsl(x));
    return copysignl(e / (e + 2), x);
}
ld asinhl(ld x)
{
    ld size = fabsl(x);
    if (special(x) || x == 0)
        return x;
    return copysignl(size > 0x1p33L ? logl(size) + LN2 : log1pl(size + size * size / (1 + sqrtl(size * size + 1))), x);
}
ld acoshl(ld x) { return x > 0x1p33L ? logl(x) + LN2 : log1pl((x - 1) + sqrtl((x - 1) * (x + 1))); }
ld atanhl(ld x) { return copysignl(log1pl(2 * fabsl(x) / (1 - fabsl(x))) / 2, x); }
ld cbrtl(ld x)
{
    int exponent;
    if (special(x) || x == 0)
        return x;
    ld part = frexpl(fabsl(x), &exponent);
    while (exponent % 3) {
        part /= 2;
        exponent++;
    }
    ld root = cbrt((double)part);
    root -= (root - part / (root * root)) / 3;
    root -= (root - part / (root * root)) / 3;
    return copysignl(scale(root, exponent / 3), x);
}
ld fmal(ld x, ld y, ld z) { return x * y + z; }
ld tgammal(ld x) { return tgamma((double)x); }
ld lgammal(ld x) { return lgamma((double)x); }
ld erfl(ld x) { return erf((double)x); }
ld erfcl(ld x) { return erfc((double)x); }

/* newlib's square root of a complex number asks for the kind of a number in a way that cannot be
 * confined. */
long double complex csqrtl(long double complex z)
{
    ld x = creall(z), y = cimagl(z), size = hypotl(x, y);
    if (x == 0 && y == 0)
        return CMPLXL(0, y);
    if (__builtin_isinf(y))
        return CMPLXL(__builtin_infl(), y);
    ld real = sqrtl((size + fabsl(x)) / 2), other = y / (2 * real);
    if (x >= 0)
        return CMPLXL(real, other);
    return CMPLXL(fabsl(other), copysignl(real, y));
}
void sincosl(ld x, ld *sine, ld *cosine)
{
    *sine = sinl(x);
    *cosine = cosl(x);
}
