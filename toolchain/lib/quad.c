/* Arithmetic of __float128 (binary128 of IEEE 754), rounded to nearest even.
 *
 * A number is unpacked into a sign, an exponent and a significand of 113 bits whose top bit is at
 * TOP, with three bits below for rounding, the last of which is sticky. */
#define PX __attribute__((weak, visibility("hidden")))

typedef __int128 i128;
typedef unsigned __int128 u128;
typedef unsigned long u64;
typedef __float128 quad;

enum { BIAS = 16383, EXPONENT_MAX = 32767, FRACTION = 112, GUARD = 3, TOP = FRACTION + GUARD };
enum kind { ZERO, FINITE, INFINITE, NAN };

struct number {
    enum kind kind;
    int negative, exponent; /* value = significand * 2^(exponent - TOP) */
    u128 significand;
};

static inline u128 bits_of(quad x)
{
    union { quad value; u128 bits; } u = { x };
    return u.bits;
}
static inline quad of_bits(u128 bits)
{
    union { u128 bits; quad value; } u = { bits };
    return u.value;
}

static const u128 ONE = 1;
#define QUIET (ONE << 111)
#define SIGN (ONE << 127)
#define DEFAULT_NAN (SIGN | (u128)EXPONENT_MAX << FRACTION | QUIET)

static int leading_zeros(u128 x) { return x >> 64 ? __builtin_clzl((u64)(x >> 64)) : 64 + __builtin_clzl((u64)x); }

static struct number unpack(quad x)
{
    u128 bits = bits_of(x), fraction = bits & ((ONE << FRACTION) - 1);
    int exponent = (int)(bits >> FRACTION) & EXPONENT_MAX;
    struct number n = { FINITE, (int)(bits >> 127), exponent - BIAS, (fraction | ONE << FRACTION) << GUARD };
    if (exponent == EXPONENT_MAX) {
        n.kind = fraction ? NAN : INFINITE;
    } else if (!exponent) {
        if (!fraction) {
            n.kind = ZERO;
        } else {
            int shift = leading_zeros(fraction) - 15;
            n.exponent = 1 - BIAS - shift;
            n.significand = fraction << (shift + GUARD);
        }
    }
    return n;
}

/* Shifts right; the last bit says whether anything was lost. */
static u128 shift_sticky(u128 x, int by)
{
    if (by <= 0)
        return x;
    if (by > 127)
        return x != 0;
    return x >> by | ((x & ((ONE << by) - 1)) != 0);
}

/* A significand of any height to the nearest number. */
static quad pack(int negative, int exponent, u128 significand)
{
    u128 sign = negative ? SIGN : 0;
    if (!significand)
        return of_bits(sign);
    int shift = 127 - TOP - leading_zeros(significand);
    exponent += shift;
    significand = shift > 0 ? shift_sticky(significand, shift) : significand << -shift;
    int biased = exponent + BIAS;
    if (biased <= 0) {
        significand = shift_sticky(significand, 1 - biased);
        biased = 0;
    }
    u128 kept = significand >> GUARD;
    unsigned rest = (unsigned)significand & 7;
    kept += rest > 4 || (rest == 4 && (kept & 1));
    /* The top bit of the significand counts as one of the exponent, so that carries go where they
     * should. */
    u128 bits = kept + ((u128)(biased ? biased - 1 : 0) << FRACTION);
    if (bits >> FRACTION >= EXPONENT_MAX)
        bits = (u128)EXPONENT_MAX << FRACTION;
    return of_bits(sign | bits);
}

static quad infinity(int negative) { return of_bits((negative ? SIGN : 0) | (u128)EXPONENT_MAX << FRACTION); }
/* The first operand that is a NaN, made quiet. */
static quad nan_of(quad x, quad y) { return of_bits((unpack(x).kind == NAN ? bits_of(x) : bits_of(y)) | QUIET); }

static quad add(quad x, quad y, int minus)
{
    struct number a = unpack(x), b = unpack(y);
    if (a.kind == NAN || b.kind == NAN)
        return nan_of(x, y);
    b.negative ^= minus;
    if (a.kind == INFINITE)
        return b.kind == INFINITE && a.negative != b.negative ? of_bits(DEFAULT_NAN) : x;
    if (b.kind == INFINITE)
        return infinity(b.negative);
    if (a.kind == ZERO && b.kind == ZERO)
        return of_bits(a.negative && b.negative ? SIGN : 0);
    if (b.kind == ZERO)
        return x;
    if (a.kind == ZERO)
        return of_bits((bits_of(y) & ~SIGN) | (b.negative ? SIGN : 0));
    if (a.exponent < b.exponent || (a.exponent == b.exponent && a.significand < b.significand)) {
        struct number t = a;
        a = b;
        b = t;
    }
    u128 low = shift_sticky(b.significand, a.exponent - b.exponent);
    if (a.negative == b.negative)
        return pack(a.negative, a.exponent, a.significand + low);
    u128 difference = a.significand - low;
    return difference ? pack(a.negative, a.exponent, difference) : of_bits(0);
}
PX quad __addtf3(quad x, quad y) { return add(x, y, 0); }
PX quad __subtf3(quad x, quad y) { return add(x, y, 1); }

PX quad __multf3(quad x, quad y)
{
    struct number a = unpack(x), b = unpack(y);
    int negative = a.negative ^ b.negative;
    if (a.kind == NAN || b.kind == NAN)
        return nan_of(x, y);
    if (a.kind == INFINITE || b.kind == INFINITE)
        return a.kind == ZERO || b.kind == ZERO ? of_bits(DEFAULT_NAN) : infinity(negative);
    if (a.kind == ZERO || b.kind == ZERO)
        return of_bits(negative ? SIGN : 0);
    u128 p = a.significand >> GUARD, q = b.significand >> GUARD;
    u64 p1 = (u64)(p >> 64), p0 = (u64)p, q1 = (u64)(q >> 64), q0 = (u64)q;
    u128 low = (u128)p0 * q0, high = (u128)p1 * q1, m1 = (u128)p1 * q0, m2 = (u128)p0 * q1;
    u128 middle = (low >> 64) + (u64)m1 + (u64)m2;
    low = (u64)low | middle << 64;
    high += (m1 >> 64) + (m2 >> 64) + (middle >> 64);
    /* 226 bits, of which the top is at 224 or 225: as a 128-bit number whose unit is 2^98. */
    u128 product = high << 30 | low >> 98 | ((low & ((ONE << 98) - 1)) != 0);
    return pack(negative, a.exponent + b.exponent + TOP - (2 * FRACTION - 98), product);
}

PX quad __divtf3(quad x, quad y)
{
    struct number a = unpack(x), b = unpack(y);
    int negative = a.negative ^ b.negative;
    if (a.kind == NAN || b.kind == NAN)
        return nan_of(x, y);
    if (a.kind == INFINITE)
        return b.kind == INFINITE ? of_bits(DEFAULT_NAN) : infinity(negative);
    if (b.kind == INFINITE)
        return of_bits(negative ? SIGN : 0);
    if (b.kind == ZERO)
        return a.kind == ZERO ? of_bits(DEFAULT_NAN) : infinity(negative);
    if (a.kind == ZERO)
        return of_bits(negative ? SIGN : 0);
    u128 rest = a.significand, by = b.significand, quotient = 0;
    int exponent = a.exponent - b.exponent;
    if (rest < by) {
        rest <<= 1;
        exponent--;
    }
    for (int bit = 0; bit <= TOP; bit++) {
        quotient <<= 1;
        if (rest >= by) {
            rest -= by;
            quotient |= 1;
        }
        rest <<= 1;
    }
    return pack(negative, exponent, quotient | (rest != 0));
}
PX quad __negtf2(quad x) { return of_bits(bits_of(x) ^ SIGN); }

/* -1, 0 or 1, or 2 if they cannot be compared; compilers read a whole register. */
static long order(quad x, quad y)
{
    u128 a = bits_of(x), b = bits_of(y), top = (u128)EXPONENT_MAX << FRACTION;
    if ((a & ~SIGN) > top || (b & ~SIGN) > top)
        return 2;
    if (!((a | b) & ~SIGN) || a == b)
        return 0;
    if ((a ^ b) >> 127)
        return a >> 127 ? -1 : 1;
    return (a < b) != (int)(a >> 127) ? -1 : 1;
}
PX long __eqtf2(quad x, quad y) { return order(x, y) != 0; }
PX long __netf2(quad x, quad y) { return order(x, y) != 0; }
PX long __lttf2(quad x, quad y) { return order(x, y); }
PX long __letf2(quad x, quad y) { return order(x, y); }
PX long __gttf2(quad x, quad y) { return order(x, y) == 2 ? -2 : order(x, y); }
PX long __getf2(quad x, quad y) { return order(x, y) == 2 ? -2 : order(x, y); }
PX long __unordtf2(quad x, quad y) { return order(x, y) == 2; }

/* From other formats: every value of theirs is one of ours. */
PX quad __extendxftf2(long double x)
{
    union { long double value; struct { u64 significand; unsigned short top; } parts; } u = { x };
    int exponent = u.parts.top & EXPONENT_MAX, negative = u.parts.top >> 15;
    u64 significand = u.parts.significand;
    if (exponent == EXPONENT_MAX)
        return significand << 1 ? of_bits((negative ? SIGN : 0) | (u128)EXPONENT_MAX << FRACTION | QUIET | (u128)(significand << 1 >> 1) << 49)
                                : infinity(negative);
    return pack(negative, (exponent ? exponent : 1) - BIAS + TOP - 63, significand);
}
PX quad __extenddftf2(double x) { return __extendxftf2(x); }
PX quad __extendsftf2(float x) { return __extendxftf2(x); }

/* To formats with `digits` bits of significand and exponents up to `most`: the rounded significand
 * and its exponent. */
static u64 narrow(const struct number *n, int digits, int least, int *exponent)
{
    int shift = TOP + 1 - digits;
    if (n->exponent < least)
        shift += least - n->exponent;
    u128 kept = shift > 127 ? 0 : n->significand >> shift;
    u128 rest = shift > 127 ? 1 : n->significand & ((ONE << shift) - 1), half = shift > 127 ? 2 : ONE << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    *exponent = n->exponent < least ? least : n->exponent;
    if (digits < 64 && kept >> digits) {
        kept >>= 1;
        ++*exponent;
    } else if (digits == 64 && kept >> 64) {
        kept = ONE << 63;
        ++*exponent;
    }
    return (u64)kept;
}
PX double __trunctfdf2(quad x)
{
    struct number n = unpack(x);
    u64 bits = 0;
    int exponent;
    if (n.kind == NAN)
        bits = 2047ul << 52 | 1ul << 51 | ((u64)(bits_of(x) >> 60) & ((1ul << 51) - 1));
    else if (n.kind == INFINITE)
        bits = 2047ul << 52;
    else if (n.kind == FINITE) {
        u64 kept = narrow(&n, 53, -1022, &exponent);
        bits = exponent > 1023 ? 2047ul << 52 : kept + ((u64)(exponent + 1022) << 52);
    }
    union { u64 bits; double value; } u = { bits | (u64)n.negative << 63 };
    return u.value;
}
PX float __trunctfsf2(quad x)
{
    struct number n = unpack(x);
    unsigned bits = 0;
    int exponent;
    if (n.kind == NAN)
        bits = 255u << 23 | 1u << 22 | ((unsigned)(bits_of(x) >> 89) & ((1u << 22) - 1));
    else if (n.kind == INFINITE)
        bits = 255u << 23;
    else if (n.kind == FINITE) {
        unsigned kept = (unsigned)narrow(&n, 24, -126, &exponent);
        bits = exponent > 127 ? 255u << 23 : kept + ((unsigned)(exponent + 126) << 23);
    }
    union { unsigned bits; float value; } u = { bits | (unsigned)n.negative << 31 };
    return u.value;
}
PX long double __trunctfxf2(quad x)
{
    struct number n = unpack(x);
    u64 significand = 0;
    int exponent = -BIAS;
    if (n.kind == NAN || n.kind == INFINITE) {
        exponent = EXPONENT_MAX - BIAS;
        significand = 1ul << 63;
        if (n.kind == NAN)
            significand |= 1ul << 62 | ((u64)(bits_of(x) >> 49) & ((1ul << 62) - 1));
    } else if (n.kind == FINITE) {
        significand = narrow(&n, 64, 1 - BIAS, &exponent);
        if (exponent > BIAS) {
            exponent = EXPONENT_MAX - BIAS;
            significand = 1ul << 63;
        } else if (!(significand >> 63)) {
            exponent = -BIAS;
        }
    }
    union { struct { u64 significand; unsigned short top; } parts; long double value; } u = { { significand, 0 } };
    u.parts.top = (unsigned short)(exponent + BIAS + (n.negative << 15));
    return u.value;
}

/* To integers, cut off; what does not fit becomes the nearest that does. */
static u128 magnitude(quad x, int bits, int *negative)
{
    struct number n = unpack(x);
    *negative = n.negative;
    if (n.kind == ZERO || (n.kind == FINITE && n.exponent < 0))
        return 0;
    if (n.kind != FINITE || n.exponent >= bits)
        return ~(u128)0;
    return n.exponent <= TOP ? n.significand >> (TOP - n.exponent) : n.significand << (n.exponent - TOP);
}
#define TO_INTEGER(name, type, unsigned_name, unsigned_type, bits) \
    PX type name(quad x) \
    { \
        int negative; \
        u128 value = magnitude(x, bits, &negative), most = (ONE << (bits - 1)) - 1 + (u128)negative; \
        if (value > most) \
            value = most; \
        return (type)(negative ? -value : value); \
    } \
    PX unsigned_type unsigned_name(quad x) \
    { \
        int negative; \
        u128 value = magnitude(x, bits, &negative); \
        if (negative) \
            return 0; \
        return value > (unsigned_type)-1 ? (unsigned_type)-1 : (unsigned_type)value; \
    }
TO_INTEGER(__fixtfsi, int, __fixunstfsi, unsigned, 32)
TO_INTEGER(__fixtfdi, long, __fixunstfdi, u64, 64)
TO_INTEGER(__fixtfti, i128, __fixunstfti, u128, 128)

PX quad __floatuntitf(u128 x) { return pack(0, TOP, x); }
PX quad __floattitf(i128 x) { return pack(x < 0, TOP, x < 0 ? -(u128)x : (u128)x); }
PX quad __floatunditf(u64 x) { return pack(0, TOP, x); }
PX quad __floatditf(long x) { return __floattitf(x); }
PX quad __floatunsitf(unsigned x) { return pack(0, TOP, x); }
PX quad __floatsitf(int x) { return __floattitf(x); }

PX quad __powitf2(quad x, int n)
{
    unsigned k = n < 0 ? -(unsigned)n : (unsigned)n;
    quad y = k & 1 ? x : 1;
    while (k >>= 1) {
        x *= x;
        if (k & 1)
            y *= x;
    }
    return n < 0 ? 1 / y : y;
}

PX _Complex _Float128 __multc3(quad a, quad b, quad c, quad d)
{
    _Complex _Float128 z;
    __real__ z = a * c - b * d;
    __imag__ z = a * d + b * c;
    return z;
}
PX _Complex _Float128 __divtc3(quad a, quad b, quad c, quad d)
{
    quad size_c = c < 0 ? -c : c, size_d = d < 0 ? -d : d;
    _Complex _Float128 z;
    if (size_c < size_d) {
        quad ratio = c / d, by = c * ratio + d;
        __real__ z = (a * ratio + b) / by;
        __imag__ z = (b * ratio - a) / by;
    } else {
        quad ratio = d / c, by = d * ratio + c;
        __real__ z = (b * ratio + a) / by;
        __imag__ z = (b - a * ratio) / by;
    }
    return z;
}
