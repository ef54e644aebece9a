/* Products and quotients of complex numbers, as Annex G of C wants them: where both parts come out
 * as NaN though an operand is infinite, the infinity is recovered. */
#include <float.h>

#define PX __attribute__((weak, visibility("hidden")))

/* What is left of an infinite operand: its sign, and whether each part was infinite. */
#define UNIT(x) __builtin_copysign(__builtin_isinf(x) ? 1 : 0, x)
#define ZERO_IF_NAN(x) (__builtin_isnan(x) ? __builtin_copysign(0, x) : (x))

#define MULTIPLY(name, type) \
    PX _Complex type name(type a, type b, type c, type d) \
    { \
        type ac = a * c, bd = b * d, ad = a * d, bc = b * c, x = ac - bd, y = ad + bc; \
        if (__builtin_isnan(x) && __builtin_isnan(y)) { \
            int recover = 0; \
            if (__builtin_isinf(a) || __builtin_isinf(b)) { \
                a = (type)UNIT(a), b = (type)UNIT(b), c = (type)ZERO_IF_NAN(c), d = (type)ZERO_IF_NAN(d); \
                recover = 1; \
            } \
            if (__builtin_isinf(c) || __builtin_isinf(d)) { \
                c = (type)UNIT(c), d = (type)UNIT(d), a = (type)ZERO_IF_NAN(a), b = (type)ZERO_IF_NAN(b); \
                recover = 1; \
            } \
            if (!recover && (__builtin_isinf(ac) || __builtin_isinf(bd) || __builtin_isinf(ad) || __builtin_isinf(bc))) { \
                a = (type)ZERO_IF_NAN(a), b = (type)ZERO_IF_NAN(b), c = (type)ZERO_IF_NAN(c), d = (type)ZERO_IF_NAN(d); \
                recover = 1; \
            } \
            if (recover) { \
                x = (type)__builtin_inf() * (a * c - b * d); \
                y = (type)__builtin_inf() * (a * d + b * c); \
            } \
        } \
        _Complex type z; \
        __real__ z = x; \
        __imag__ z = y; \
        return z; \
    }
MULTIPLY(__mulsc3, float)
MULTIPLY(__muldc3, double)
MULTIPLY(__mulxc3, long double)

#define RECOVER_QUOTIENT(type) \
    if (__builtin_isnan(x) && __builtin_isnan(y)) { \
        if (c == 0 && d == 0 && (!__builtin_isnan(a) || !__builtin_isnan(b))) { \
            x = (type)__builtin_copysign(__builtin_inf(), c) * a; \
            y = (type)__builtin_copysign(__builtin_inf(), c) * b; \
        } else if ((__builtin_isinf(a) || __builtin_isinf(b)) && __builtin_isfinite(c) && __builtin_isfinite(d)) { \
            a = (type)UNIT(a), b = (type)UNIT(b); \
            x = (type)__builtin_inf() * (a * c + b * d); \
            y = (type)__builtin_inf() * (b * c - a * d); \
        } else if ((__builtin_isinf(c) || __builtin_isinf(d)) && __builtin_isfinite(a) && __builtin_isfinite(b)) { \
            c = (type)UNIT(c), d = (type)UNIT(d); \
            x = 0 * (a * c + b * d); \
            y = 0 * (b * c - a * d); \
        } \
    }

/* A float's products fit a double. */
PX _Complex float __divsc3(float a, float b, float c, float d)
{
    double by = (double)c * c + (double)d * d;
    float x = (float)(((double)a * c + (double)b * d) / by), y = (float)(((double)b * c - (double)a * d) / by);
    RECOVER_QUOTIENT(float)
    _Complex float z;
    __real__ z = x;
    __imag__ z = y;
    return z;
}

/* Smith's method, scaled by the larger part of the divisor, with the scalings and the other order
 * of operations for ratios that underflow of Baudin and Smith, "A robust complex division in
 * Scilab", 2012. */
#define SCALE(factor) (a *= (factor), b *= (factor), c *= (factor), d *= (factor))
#define DIVIDE(name, type, largest, smallest, epsilon, magnitude) \
    PX _Complex type name(type a, type b, type c, type d) \
    { \
        const type big = (largest) / 2, big_enough = big * (epsilon); \
        type x, y, most = magnitude(c) < magnitude(d) ? magnitude(d) : magnitude(c); \
        if (most >= big) \
            SCALE((type)0.5); \
        most = magnitude(c) < magnitude(d) ? magnitude(d) : magnitude(c); \
        if (most < (epsilon)) \
            SCALE(1 / (epsilon)); \
        else if (((magnitude(a) < (smallest) && magnitude(b) < big_enough) || (magnitude(b) < (smallest) && magnitude(a) < big_enough)) \
                 && most < big_enough) \
            SCALE(1 / (epsilon)); \
        if (magnitude(c) < magnitude(d)) { \
            type ratio = c / d, by = c * ratio + d; \
            if (magnitude(ratio) > (smallest)) { \
                x = (a * ratio + b) / by; \
                y = (b * ratio - a) / by; \
            } else { \
                x = (c * (a / d) + b) / by; \
                y = (c * (b / d) - a) / by; \
            } \
        } else { \
            type ratio = d / c, by = d * ratio + c; \
            if (magnitude(ratio) > (smallest)) { \
                x = (b * ratio + a) / by; \
                y = (b - a * ratio) / by; \
            } else { \
                x = (a + d * (b / c)) / by; \
                y = (b - d * (a / c)) / by; \
            } \
        } \
        RECOVER_QUOTIENT(type) \
        _Complex type z; \
        __real__ z = x; \
        __imag__ z = y; \
        return z; \
    }
DIVIDE(__divdc3, double, DBL_MAX, DBL_MIN, DBL_EPSILON, __builtin_fabs)
DIVIDE(__divxc3, long double, LDBL_MAX, LDBL_MIN, LDBL_EPSILON, __builtin_fabsl)
