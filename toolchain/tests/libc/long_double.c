/* As math.c, for long double: the function, the sign and exponent, the significand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

static void show(const char *name, long double x)
{
    unsigned short top;
    unsigned long significand;
    if (x != x || x == 0) {
        printf("%s %s\n", name, x ? "nan" : "zero");
        return;
    }
    memcpy(&significand, &x, 8);
    memcpy(&top, (char *)&x + 8, 2);
    printf("%s %04x %016lx\n", name, top, significand);
}
static const long double points[] = { 0.0L, -0.0L, 1e-4000L, 1e-10L, 0.1L, 0.25L, 0.5L, 0.75L, 1, 1.01L, 1.5L, 2, 2.5L, 3, 7.3L, 10, 33.3L, 100, 700,
                                      11000, 1e5L, -0.1L, -0.5L, -1, -1.5L, -2.5L, -10, -700, INFINITY, -INFINITY, NAN };
#define COUNT (sizeof points / sizeof *points)
#define ONE(name) \
    for (unsigned i = 0; i < COUNT; i++) \
        show(#name, name##l(points[i]));
#define TWO(name) \
    for (unsigned i = 0; i < COUNT; i++) \
        for (unsigned j = 0; j < COUNT; j++) \
            show(#name, name##l(points[i], points[j]));

int main(void)
{
    ONE(floor) ONE(ceil) ONE(trunc) ONE(round) ONE(rint) ONE(fabs) ONE(logb) ONE(sqrt) ONE(cbrt) ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2)
    ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh)
    TWO(pow) TWO(atan2) TWO(fmod) TWO(remainder) TWO(hypot) TWO(nextafter) TWO(fdim) TWO(fmax) TWO(copysign)
    for (unsigned i = 0; i < COUNT; i++) {
        int exponent;
        long double whole;
        show("frexp", frexpl(points[i], &exponent)), show("modf", modfl(points[i], &whole)), show("whole", whole);
        show("ldexp", ldexpl(points[i], -16400));
    }
    return 0;
}
