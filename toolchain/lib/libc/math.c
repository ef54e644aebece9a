/* Functions of libm whose versions in newlib are not what C asks for (a fused product that is not,
 * infinities and NaNs that are lost), or what the processor does in one instruction. */
#include <math.h>
#include <stdint.h>

double __ieee754_gamma_r(double, int *);
float __ieee754_gammaf_r(float, int *);

/* The processor's square root, exact to the last bit as theirs, which goes bit by bit. */
double __ieee754_sqrt(double x)
{
    __asm__("sqrtsd %1, %0" : "=x"(x) : "x"(x));
    return x;
}
float __ieee754_sqrtf(float x)
{
    __asm__("sqrtss %1, %0" : "=x"(x) : "x"(x));
    return x;
}

double modf(double x, double *whole)
{
    union { double value; uint64_t bits; } u = { x };
    int exponent = (int)(u.bits >> 52 & 2047) - 1023;
    if (exponent >= 52) {
        *whole = x;
        return x != x ? x : __builtin_copysign(0, x);
    }
    u.bits &= exponent < 0 ? (uint64_t)1 << 63 : ~(uint64_t)0 << (52 - exponent);
    *whole = u.value;
    return __builtin_copysign(x - u.value, x);
}

double fdim(double x, double y) { return x != x ? x : y != y ? y : x > y ? x - y : 0; }
float fdimf(float x, float y) { return x != x ? x : y != y ? y : x > y ? x - y : 0; }

/* The product is exact in binary128; the sum is rounded to odd there, so that the second rounding
 * is the only one that counts. */
double fma(double x, double y, double z)
{
    if (!(x - x == 0 && y - y == 0 && z - z == 0) || x == 0 || y == 0 || z == 0)
        return x * y + z;
    __float128 product = (__float128)x * y, sum = product + z;
    __float128 part = sum - product, error = (product - (sum - part)) + (z - part);
    union { __float128 value; unsigned __int128 bits; } u = { sum };
    if (error != 0 && !(u.bits & 1))
        u.bits += (error > 0) == (sum > 0) ? 1 : -1;
    return (double)u.value;
}
float fmaf(float x, float y, float z)
{
    double product = (double)x * y, sum = product + z, part = sum - product, error = (product - (sum - part)) + (z - part);
    union { double value; uint64_t bits; } u = { sum };
    if (sum - sum == 0 && error != 0 && !(u.bits & 1))
        u.bits += (error > 0) == (sum > 0) ? 1 : -1;
    return (float)u.value;
}

double tgamma(double x)
{
    int sign;
    if (x == 0)
        return 1 / x;
    if (x < 0 && (x - x != 0 || floor(x) == x))
        return (x - x) / 0.0;
    double y = __ieee754_gamma_r(x, &sign);
    return sign < 0 ? -y : y;
}
float tgammaf(float x)
{
    int sign;
    if (x == 0)
        return 1 / x;
    if (x < 0 && (x - x != 0 || floorf(x) == x))
        return (x - x) / 0.0f;
    float y = __ieee754_gammaf_r(x, &sign);
    return sign < 0 ? -y : y;
}
