/* The digits of floating-point numbers for printf, in place of newlib's ldtoa.c, which knows 42
 * digits: here they are exact, as in other C libraries. What is a double goes to newlib's dtoa. Any
 * other long double is a 64-bit integer times a power of two: an exact decimal number, held in
 * limbs of nine digits and rounded once, half to even. */
#include <float.h>
#include <limits.h>
#include <reent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

char *_dtoa_r(struct _reent *, double, int, int, int *, int *, char **);
struct _Bigint *_Balloc(struct _reent *, int);
void _Bfree(struct _reent *, struct _Bigint *);

enum { LIMB = 1000000000, DIGITS = 9, INTEGER = 552, FRACTION = 1840 };

struct decimal {
    uint32_t limb[INTEGER + FRACTION]; /* the point is before limb[INTEGER] */
    int first, end;                    /* limbs that may not be zero */
};

/* 0 for a number, 1 for NaN, 2 for an infinity. */
int _ldcheck(long double *x) { return __builtin_isnan(*x) ? 1 : __builtin_isinf(*x) ? 2 : 0; }

static void make(struct decimal *out, uint64_t significand, int exponent)
{
    out->first = out->end = INTEGER;
    for (; significand; significand /= LIMB)
        out->limb[--out->first] = (uint32_t)(significand % LIMB);
    while (exponent > 0) {
        int by = exponent < 29 ? exponent : 29;
        uint64_t carry = 0;
        for (int k = out->end - 1; k >= out->first; k--) {
            carry += (uint64_t)out->limb[k] << by;
            out->limb[k] = (uint32_t)(carry % LIMB);
            carry /= LIMB;
        }
        if (carry)
            out->limb[--out->first] = (uint32_t)carry;
        exponent -= by;
    }
    while (exponent < 0) {
        int by = exponent > -9 ? -exponent : 9;
        uint32_t rest = 0;
        for (int k = out->first; k < out->end; k++) {
            uint32_t value = out->limb[k];
            out->limb[k] = (value >> by) + rest;
            rest = (value & ((1u << by) - 1)) * (uint32_t)(LIMB >> by);
        }
        if (rest)
            out->limb[out->end++] = rest;
        while (out->first < out->end && !out->limb[out->first])
            out->first++;
        exponent += by;
    }
}

/* A buffer of the thread's that lives until the next number. */
static char *buffer(struct _reent *reent, size_t n)
{
    int k = 0;
    while ((sizeof(uint32_t) << k) < n)
        k++;
    _REENT_MP_RESULT(reent) = _Balloc(reent, k);
    _REENT_MP_RESULT_K(reent) = k;
    return (char *)_REENT_MP_RESULT(reent);
}

char *_ldtoa_r(struct _reent *reent, long double x, int mode, int wanted, int *point, int *sign, char **end)
{
    if (_ldcheck(&x) || (double)x == x)
        return _dtoa_r(reent, (double)x, mode, wanted, point, sign, end);
    union { long double value; struct { uint64_t significand; uint16_t top; } parts; } u = { x };
    int exponent = u.parts.top & 0x7fff;
    struct decimal number;
    *sign = u.parts.top >> 15;
    make(&number, u.parts.significand, (exponent ? exponent : 1) - 16383 - 63);

    _REENT_CHECK_MP(reent);
    if (_REENT_MP_RESULT(reent)) {
        _REENT_MP_RESULT(reent)->_k = _REENT_MP_RESULT_K(reent);
        _REENT_MP_RESULT(reent)->_maxwds = 1 << _REENT_MP_RESULT_K(reent);
        _Bfree(reent, _REENT_MP_RESULT(reent));
        _REENT_MP_RESULT(reent) = 0;
    }
    if (mode != 2 && mode != 3) {
        mode = 2;
        wanted = LDBL_DECIMAL_DIG;
    }
    /* All digits, then those that are asked for; printf fills the buffer up with zeros behind
     * them. */
    size_t all = (size_t)(number.end - number.first) * DIGITS;
    char *text = buffer(reent, all + (wanted > 0 ? (size_t)wanted : 0) + 16), *digit = text + 1;
    text[0] = '0';
    for (int k = number.first; k < number.end; k++, digit += DIGITS) {
        uint32_t value = number.limb[k];
        for (int i = DIGITS; i--; value /= 10)
            digit[i] = (char)('0' + value % 10);
    }
    char *first = text + 1;
    int where = (INTEGER - number.first) * DIGITS;
    while (first < digit && *first == '0')
        first++, where--;
    long keep = mode == 3 ? (long)where + wanted : wanted > 0 ? wanted : 1;
    if (keep < 0) {
        first = digit = text + 1;
        where = -wanted;
    } else if (keep < digit - first) {
        char *cut = first + keep;
        int up = *cut > '5';
        if (*cut == '5') {
            char *rest = cut + 1;
            while (rest < digit && *rest == '0')
                rest++;
            up = rest < digit || (keep > 0 && (cut[-1] & 1));
        }
        digit = cut;
        if (up) {
            char *at = cut;
            while (at > first && at[-1] == '9')
                *--at = '0';
            if (at > first) {
                at[-1]++;
            } else {
                *--first = '1';
                where++;
            }
        }
    }
    while (digit > first && digit[-1] == '0')
        digit--;
    *digit = 0;
    *point = where;
    memmove(text, first, (size_t)(digit - first) + 1);
    if (end)
        *end = text + (digit - first);
    return text;
}
