/* Prints one line for each result: the function, the width and the bits. The test compares them within a few units of the last place. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void show(const char *name, double x)
{
    int64_t bits;
    memcpy(&bits, &x, 8);
    if (x != x)
        bits = 0x7ff8000000000000;
    printf("%s d %016llx\n", name, (unsigned long long)bits);
}
static void showf(const char *name, float x)
{
    int32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x)
        bits = 0x7fc00000;
    printf("%s f %08x\n", name, (unsigned)bits);
}

static const double points[] = { 0.0, -0.0, 1e-300, 1e-10, 0.1, 0.25, 0.5, 0.75, 0.99, 1.0, 1.01, 1.5, 2.0, 2.5, 3.0, 3.14159, 7.3, 10.0, 33.3, 100.0,
                                 700.0, 1e5, 1e10, 1e300, -0.1, -0.5, -1.0, -1.5, -2.5, -10.0, -700.0, -1e10, INFINITY, -INFINITY, NAN };
#define COUNT (sizeof points / sizeof *points)

#define ONE(name) \
    for (unsigned i = 0; i < COUNT; i++) \
        show(#name, name(points[i])), showf(#name "f", name##f((float)points[i]));
#define TWO(name) \
    for (unsigned i = 0; i < COUNT; i++) \
        for (unsigned j = 0; j < COUNT; j += 2) \
            show(#name, name(points[i], points[j])), showf(#name "f", name##f((float)points[i], (float)points[j]));

int main(void)
{
    ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh)
    ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sqrt) ONE(cbrt) ONE(floor) ONE(ceil) ONE(trunc) ONE(round)
    ONE(rint) ONE(nearbyint) ONE(fabs) ONE(erf) ONE(erfc) ONE(lgamma) ONE(tgamma) ONE(logb)
    TWO(pow) TWO(atan2) TWO(fmod) TWO(remainder) TWO(hypot) TWO(copysign) TWO(nextafter) TWO(fdim) TWO(fmax) TWO(fmin)
    for (unsigned i = 0; i < COUNT; i++) {
        int e = 0;
        double whole;
        show("frexp", frexp(points[i], &e));
        printf("exponent = %d\n", isfinite(points[i]) ? e : 0);
        show("modf", modf(points[i], &whole));
        show("modf whole", whole);
        show("ldexp", ldexp(points[i], 3));
        show("scalbn", scalbn(points[i], -1040));
        show("fma", fma(points[i], 3.7, -1.0 / 3));
        if (fabs(points[i]) < 1e15)
            printf("rounded = %ld %ld %lld\n", lrint(points[i]), lround(points[i]), llround(points[i]));
        printf("class = %d %d %d %d\n", !!isnan(points[i]), !!isinf(points[i]), !!isfinite(points[i]), !!signbit(points[i]));
    }
    for (int i = 0; i < 2000; i++) {
        double x = (i - 1000) * 0.37 + 0.001;
        show("sin", sin(x)), show("cos", cos(x)), show("tan", tan(x)), show("exp", exp(x / 10)), show("atan", atan(x));
        show("log", log(fabs(x))), show("pow", pow(fabs(x), x / 100)), showf("sinf", sinf((float)x)), showf("expf", expf((float)x / 10));
        show("cbrt", cbrt(x)), show("tanh", tanh(x / 50)), show("lgamma", lgamma(fabs(x) + 0.5));
    }
    double complex values[] = { 1 + 2 * I, -0.5 + 0.25 * I, 3 - 4 * I, -2 - I, 0.001 + 10 * I };
    for (int i = 0; i < 5; i++) {
        double complex z = values[i];
        show("cabs", cabs(z)), show("carg", carg(z));
        double complex all[] = { csqrt(z), cexp(z), clog(z), cpow(z, 1.5), csin(z), ccos(z), ctan(z), csinh(z), ccosh(z), ctanh(z), conj(z), z * z, z / (1 - 3 * I) };
        for (int k = 0; k < 13; k++)
            show("complex", creal(all[k])), show("complex", cimag(all[k]));
    }
    return 0;
}
